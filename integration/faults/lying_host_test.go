package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// A host that has the volume of another tenant bound to its pod's claim: with the data, after that tenant's claim was
// deleted. The shim refuses, and the pod waits until the host tells the truth.
func TestALyingHostTakesNoVolume(t *testing.T) {
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no host")
	}
	faulty := BuildFaultyHost(t)
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	c := controlplane.ForTest(t, controlplane.Options{Controllers: []string{"persistentvolume-binder-controller"}})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := controlplane.CreateFakeNodes(ctx, client, 1); err != nil {
		t.Fatal(err)
	}
	class, wait := "local", storagev1.VolumeBindingWaitForFirstConsumer
	if _, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	storage := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	createVolume := func(name string, claim *corev1.ObjectReference, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		t.Helper()
		if _, err := client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: class, Capacity: storage, AccessModes: modes, ClaimRef: claim,
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/" + name}},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var volume *corev1.PersistentVolume
		soon(t, func() error {
			volume, err = client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
			if err == nil && volume.Status.Phase != phase {
				err = fmt.Errorf("volume %s is %s, not %s", name, volume.Status.Phase, phase)
			}
			return err
		})
		return volume
	}
	createVolume("free", nil, corev1.VolumeAvailable)
	secrets := &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "tenant", Name: "secrets", UID: "00000000-0000-4000-8000-000000000001"}
	stolen := createVolume("secrets", secrets, corev1.VolumeReleased)
	claim, err := client.CoreV1().PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: storage}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	lie := filepath.Join(t.TempDir(), "lie")
	if err := os.WriteFile(lie, bindVolume(stolen, claim), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartOutboard(ctx, controlplane.OutboardOptions{HostProgram: faulty, HostArgs: []string{
		"--host", filepath.Join(directory, "outboard-host"), "--fault", "lying-reserve", "--lie", lie}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "thief"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Whichever comes first: the shim's refusal, or the theft.
	checkVolume := func() error {
		volume, err := client.CoreV1().PersistentVolumes().Get(ctx, stolen.Name, metav1.GetOptions{})
		if err == nil && volume.Spec.ClaimRef.UID != secrets.UID {
			t.Fatalf("the volume of %s/%s is now of %s/%s", secrets.Namespace, secrets.Name, volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
		}
		return err
	}
	soon(t, func() error {
		if err := checkVolume(); err != nil {
			return err
		}
		pod, err := client.CoreV1().Pods("default").Get(ctx, "thief", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if strings.Contains(condition.Message, "it is reserved for claim tenant/secrets") {
				return nil
			}
		}
		return fmt.Errorf("no refusal in the pod's conditions: %v", pod.Status.Conditions)
	})

	if err := os.Remove(lie); err != nil {
		t.Fatal(err)
	}
	soon(t, func() error {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "thief", metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName == "" {
			err = fmt.Errorf("not bound: %v", pod.Status.Conditions)
		}
		return err
	})
	if err := checkVolume(); err != nil {
		t.Fatal(err)
	}
	bound, err := client.CoreV1().PersistentVolumeClaims("default").Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil || bound.Spec.VolumeName != "free" {
		t.Fatalf("the claim has volume %q, want free (%v)", bound.Spec.VolumeName, err)
	}
}

// soon waits until the check succeeds.
func soon(t *testing.T, check func() error) {
	t.Helper()
	within(t, 30*time.Second, "what is expected", check)
}

// bindVolume encodes a ReserveResponse with one effect.
func bindVolume(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) []byte {
	text := func(message []byte, field protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(message, field, protowire.BytesType), value)
	}
	reference := text(text(text(nil, 1, claim.Namespace), 2, claim.Name), 3, string(claim.UID))
	bind := text(text(text(nil, 1, volume.Name), 2, string(volume.UID)), 3, volume.ResourceVersion)
	bind = text(text(bind, 4, string(reference)), 5, claim.ResourceVersion)
	bind = protowire.AppendVarint(protowire.AppendTag(bind, 6, protowire.VarintType), 1) // bound_by_controller
	effect := text(text(text(nil, 1, "volume-1"), 2, "VolumeBinding"), 3, string(bind))
	return text(nil, 2, string(effect))
}
