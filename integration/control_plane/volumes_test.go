package controlplane_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// testVolumes: the scheduler selects local volumes. It must write the selection, wait for the volume controller, and
// only then bind the pods. Two of three claims find a volume.
func (c *cluster) testVolumes(t *testing.T) {
	const class = "local"
	node := controlplane.FakeNode(3).Name
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	_, err := c.client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	storage := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	for _, name := range []string{"local-1", "local-2"} {
		if _, err := c.client.CoreV1().PersistentVolumes().Create(t.Context(), localVolume(name, class, node, storage),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"with-volume-1", "with-volume-2", "with-volume-3"}
	for _, name := range names {
		if _, err := c.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: new(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: storage},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		spec := podSpec(ourScheduler, "1m")
		spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "volumes"}}, Spec: spec}
		if _, err := c.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	volumes := map[string]string{}
	eventually(t, func(ctx context.Context) error { return c.twoBoundOneWaits(ctx, t, node, volumes) })
	err = c.client.CoreV1().Pods("default").DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
		metav1.ListOptions{LabelSelector: "app=volumes"})
	if err != nil {
		t.Fatal(err)
	}
}

func localVolume(name, class, node string, capacity corev1.ResourceList) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: capacity, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/" + name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
}

// twoBoundOneWaits records the volume of each bound pod's claim.
func (c *cluster) twoBoundOneWaits(ctx context.Context, t *testing.T, node string, volumes map[string]string) error {
	clear(volumes)
	waiting := ""
	for _, pod := range c.pods(ctx, t, "app=volumes") {
		if pod.Spec.NodeName == "" {
			for _, condition := range pod.Status.Conditions {
				waiting += condition.Message
			}
			continue
		}
		if pod.Spec.NodeName != node {
			t.Fatalf("pod %s is on %s, its volume on %s", pod.Name, pod.Spec.NodeName, node)
		}
		claim, err := c.client.CoreV1().PersistentVolumeClaims("default").Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			t.Fatalf("pod %s is bound before its claim", pod.Name)
		}
		volumes[pod.Name] = claim.Spec.VolumeName
	}
	const reason = "didn't find available persistent volumes to bind"
	if len(volumes) != 2 || !strings.Contains(waiting, reason) {
		return fmt.Errorf("bound: %v; message of the other: %q", volumes, waiting)
	}
	seen := map[string]bool{}
	for pod, volume := range volumes {
		if seen[volume] {
			t.Fatalf("volume %s of pod %s belongs to another pod, too", volume, pod)
		}
		seen[volume] = true
	}
	return nil
}
