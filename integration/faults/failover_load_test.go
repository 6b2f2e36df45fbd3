package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

// load creates pods at a steady pace, and deletes each at the end of its life, bound or not.
type load struct {
	client  kubernetes.Interface
	context context.Context // until the load ends
	end     context.CancelFunc
	group   sync.WaitGroup
	created atomic.Int64
	failed  chan error
}

func startLoad(t *testing.T, client kubernetes.Interface) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{client: client, context: ctx, end: cancel, failed: make(chan error, 1)}
	l.group.Go(func() {
		pace := time.NewTicker(time.Second / podsASecond)
		defer pace.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
				l.live()
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		l.group.Wait()
	})
	return l
}

// live creates a pod and deletes it at the end of its life, or keeps it if the load ends before.
func (l *load) live() {
	pods := l.client.CoreV1().Pods(namespace)
	name := fmt.Sprintf("pod-%06d", l.created.Add(1))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/app",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}
	if err := answered(func(ctx context.Context) error {
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil // By the request before, whose answer was lost.
	}); err != nil {
		l.fail(err)
		return
	}
	l.group.Go(func() {
		select {
		case <-l.context.Done():
			return
		case <-time.After(podLife):
		}
		if err := answered(func(ctx context.Context) error {
			return pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		}); err != nil && !apierrors.IsNotFound(err) {
			l.fail(err)
		}
	})
}

// answered sends a request again until the API server answers it, for a minute: some faults stop the server.
func answered(send func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := send(ctx)
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // Poll interval.
	}
}

func (l *load) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

// burst creates many pods at once.
func (l *load) burst(t *testing.T) {
	t.Helper()
	if err := controlplane.InParallel(t.Context(), 30, burst, func(context.Context, int) error {
		l.live()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// stop ends the load, waits until all pods are bound, and returns the total number of pods.
func (l *load) stop(t *testing.T) int {
	t.Helper()
	l.end()
	l.group.Wait()
	select {
	case err := <-l.failed:
		t.Fatal(err)
	default:
	}
	list, err := l.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitForBound(t.Context(), t, l.client, len(list.Items))
	return int(l.created.Load())
}
