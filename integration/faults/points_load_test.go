package faults

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	mixedNodes = 6
	// Pods of 200m that fill all nodes exactly.
	mixedRoom = mixedNodes * 20
	// The load keeps more, so that some pods wait, and those of high priority evict others.
	mixedMost   = mixedRoom + 10
	gangSize    = 3
	gangLabel   = "pod-group.scheduling.sigs.k8s.io/name"
	localClass  = "local"
	urgentClass = "urgent"
	// How long a pod with a volume exists if it is deleted early: its volume is being bound, which takes a second.
	volumeLife = 600 * time.Millisecond
)

// mixedLoad creates and deletes pods that lead the shim everywhere: plain ones, ones that evict others, gangs, which
// wait at Permit, and pods with volumes, which are written before the bind. Not safe for concurrent use.
type mixedLoad struct {
	client kubernetes.Interface
	random *rand.Rand
	pods   []string
	doomed map[string]time.Time // pods with volumes, and when they are deleted

	made, gangs, volumes int
}

func (l *mixedLoad) prepare(ctx context.Context) error {
	l.doomed = map[string]time.Time{}
	if _, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := l.client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: urgentClass}, Value: 1000}, metav1.CreateOptions{}); err != nil {
		return err
	}
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	if _, err := l.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: localClass}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait,
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return controlplane.CreateFakeNodes(ctx, l.client, mixedNodes)
}

// run creates and deletes until the context ends.
func (l *mixedLoad) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.step(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond) // The rate of the load.
	}
	return nil
}

func (l *mixedLoad) step(ctx context.Context) error {
	for name, due := range l.doomed {
		if time.Now().Before(due) {
			continue
		}
		delete(l.doomed, name)
		if err := l.remove(ctx, name); err != nil {
			return err
		}
	}
	if len(l.pods) >= mixedMost {
		i := l.random.Intn(len(l.pods))
		name := l.pods[i]
		l.pods = append(l.pods[:i], l.pods[i+1:]...)
		return l.remove(ctx, name)
	}
	switch kind := l.random.Intn(40); {
	case kind < 4:
		l.gangs++
		for range gangSize {
			if err := l.create(ctx, func(pod *corev1.Pod) {
				pod.Labels = map[string]string{
					gangLabel: fmt.Sprintf("gang-%d", l.gangs),
					"pod-group.scheduling.sigs.k8s.io/min-available": fmt.Sprint(gangSize),
				}
			}); err != nil {
				return err
			}
		}
		return nil
	case kind < 6:
		return l.createWithVolume(ctx)
	case kind < 14:
		return l.create(ctx, func(pod *corev1.Pod) { pod.Spec.PriorityClassName = urgentClass })
	}
	return l.create(ctx, func(*corev1.Pod) {})
}

func (l *mixedLoad) create(ctx context.Context, change func(*corev1.Pod)) error {
	l.made++
	name := fmt.Sprintf("pod-%05d", l.made)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			// No kubelet confirms the end of an evicted pod.
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}},
			}},
		},
	}
	change(pod)
	l.pods = append(l.pods, name)
	_, err := l.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// createWithVolume creates a pod, its claim and a volume. The pod is urgent, so that it need not wait for room. Each
// second one is deleted while its volume is being bound.
func (l *mixedLoad) createWithVolume(ctx context.Context) error {
	l.volumes++
	name := fmt.Sprintf("data-%05d", l.volumes)
	storage := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if _, err := l.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: localClass, Capacity: storage, AccessModes: modes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/" + name}}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := l.client.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new(localClass), AccessModes: modes,
			Resources: corev1.VolumeResourceRequirements{Requests: storage}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := l.create(ctx, func(pod *corev1.Pod) {
		pod.Spec.PriorityClassName = urgentClass
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	})
	if l.volumes%2 == 0 {
		l.doomed[l.pods[len(l.pods)-1]] = time.Now().Add(volumeLife)
	}
	return err
}

// remove deletes a pod, bound or not, at once, because no kubelet runs. It may have been evicted.
func (l *mixedLoad) remove(ctx context.Context, name string) error {
	err := l.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// finish makes room for all pods, and waits until they are bound. Then it fills the nodes: a place that the shim forgot
// to give back would be missing.
func (l *mixedLoad) finish(t *testing.T) {
	t.Helper()
	list, err := l.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Pods without a node stay: none of them may be lost.
	left, waited := 0, 0
	for _, pod := range list.Items {
		if pod.Spec.NodeName == "" {
			waited++
		} else if left >= mixedRoom/2 {
			if err := l.remove(t.Context(), pod.Name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		left++
	}
	began := time.Now()
	l.waitUntilBound(t)
	t.Logf("%d pods were kept, %d of them without a node; all had one after %.1f s", left, waited, time.Since(began).Seconds())
	if list, err = l.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for range mixedRoom - len(list.Items) {
		if err := l.create(t.Context(), func(*corev1.Pod) {}); err != nil {
			t.Fatal(err)
		}
	}
	l.waitUntilBound(t)
	if bound := countBound(t.Context(), t, l.client); bound != mixedRoom {
		t.Errorf("%d pods are bound, want %d: as many as there is room for", bound, mixedRoom)
	}
}

// waitUntilBound waits until every pod that exists has a node. It removes pods that can never have one: those of gangs
// that have lost members.
func (l *mixedLoad) waitUntilBound(t *testing.T) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { // Poll interval.
		list, err := l.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		members := map[string]int{}
		for _, pod := range list.Items {
			members[pod.Labels[gangLabel]]++
		}
		var waiting []string
		for _, pod := range list.Items {
			if pod.Spec.NodeName != "" {
				continue
			}
			if gang := pod.Labels[gangLabel]; gang != "" && members[gang] < gangSize {
				if err := l.remove(t.Context(), pod.Name); err != nil {
					t.Fatal(err)
				}
				continue
			}
			text := pod.Name
			for _, condition := range pod.Status.Conditions {
				text += ": " + condition.Message
			}
			waiting = append(waiting, text)
		}
		if len(waiting) == 0 {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%d of %d pods have no node: %q", len(waiting), len(list.Items), waiting)
		}
	}
}
