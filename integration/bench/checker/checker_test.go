package checker_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

// world is a control plane without a scheduler: the tests make correct and wrong binds themselves.
type world struct {
	*testing.T
	c      *controlplane.ControlPlane
	client kubernetes.Interface
}

// TestEveryFaultIsFound commits each fault once and expects exactly that one in the report. All on one control plane,
// in an order in which no fault hides another.
func TestEveryFaultIsFound(t *testing.T) {
	w := &world{T: t, c: controlplane.ForTest(t, controlplane.Options{})}
	var err error
	if w.client, err = w.c.Client(); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), w.client, 3); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}

	w.pod("good", "3")
	w.bind("good", "node-00000")
	w.scheduled("good", "node-00000", "")
	w.expect("all is well", want)

	w.pod("pending", "1")
	want["Unbound"]++
	w.expect("a pod is not bound", want)

	w.bind("pending", "node-00001")
	want["Unbound"]--
	want["NoEvent"]++
	w.expect("a bound pod has no event", want)

	w.scheduled("pending", "node-00002", "")
	want["NoEvent"]--
	want["EventWrongNode"]++
	w.expect("the event names another node", want)

	w.scheduled("good", "node-00000", "again")
	want["SeveralEvents"]++
	w.expect("a second event", want)

	w.pod("too-much", "1100m")
	w.bind("too-much", "node-00000")
	w.scheduled("too-much", "node-00000", "")
	want["Overcommitted"]++
	w.expect("more CPU than there is", want)

	w.delete("too-much") // A fault of the past stays a fault.
	w.pod("fills-up", "1")
	w.bind("fills-up", "node-00000")
	w.scheduled("fills-up", "node-00000", "")
	w.expect("a deleted pod frees its room", want)

	w.pod("nowhere", "1")
	w.bind("nowhere", "no-such-node")
	w.scheduled("nowhere", "no-such-node", "")
	want["UnknownNode"]++
	w.expect("an unknown node", want)

	w.pod("twice", "1")
	w.bind("twice", "node-00001")
	w.scheduled("twice", "node-00001", "")
	w.move("twice", "node-00002") // The API server rejects this, so the test writes to etcd.
	want["BoundTwice"]++
	want["EventWrongNode"]++
	w.expect("a pod moves", want)

	w.compact()
	report, err := checker.Check(t.Context(), w.c.EtcdURL, w.client)
	if err == nil {
		t.Errorf("a compacted history was accepted: %v", report)
	}
}

// expect compares the faults, by the names of the report's fields.
func (w *world) expect(what string, want map[string]int) {
	w.Helper()
	report, err := checker.Check(w.Context(), w.c.EtcdURL, w.client)
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
	total := 0
	for _, field := range []string{"Unbound", "BoundTwice", "UnknownNode", "Overcommitted", "NoEvent", "SeveralEvents",
		"EventOfUnbound", "EventWrongNode", "HistoryDiffers"} {
		got := int(reflect.ValueOf(report).Elem().FieldByName(field).Int())
		total += got
		if got != want[field] {
			w.Errorf("%s: %s is %d, want %d\n%v", what, field, got, want[field], report)
		}
	}
	if total != report.Faults() {
		w.Errorf("%s: Faults() is %d, the fields say %d", what, report.Faults(), total)
	}
}

func (w *world) pod(name, cpu string) {
	w.Helper()
	_, err := w.client.CoreV1().Pods("default").Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/app",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) bind(name, node string) {
	w.Helper()
	err := w.client.CoreV1().Pods("default").Bind(w.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) scheduled(name, node, suffix string) {
	w.Helper()
	pod, err := w.client.CoreV1().Pods("default").Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	_, err = w.client.EventsV1().Events("default").Create(w.Context(), &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: name + ".event" + suffix, Namespace: "default"},
		EventTime:           metav1.NewMicroTime(time.Now()),
		ReportingController: "test", ReportingInstance: "test-1",
		Action: "Binding", Reason: "Scheduled", Type: corev1.EventTypeNormal,
		Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: name, UID: pod.UID},
		Note:      fmt.Sprintf("Successfully assigned default/%s to %s", name, node),
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) delete(name string) {
	w.Helper()
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := w.client.CoreV1().Pods("default").Delete(w.Context(), name, options); err != nil {
		w.Fatal(err)
	}
}

func (w *world) etcd() *clientv3.Client {
	w.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{w.c.EtcdURL}})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client
}

func (w *world) move(name, node string) {
	w.Helper()
	etcd, key := w.etcd(), "/registry/pods/default/"+name
	response, err := etcd.Get(w.Context(), key)
	if err != nil || len(response.Kvs) != 1 {
		w.Fatal(err, response)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(response.Kvs[0].Value, nil, nil)
	if err != nil {
		w.Fatal(err)
	}
	pod := object.(*corev1.Pod)
	pod.Spec.NodeName = node
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	data, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), pod)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := etcd.Put(w.Context(), key, string(data)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) compact() {
	w.Helper()
	etcd := w.etcd()
	response, err := etcd.Get(w.Context(), "/")
	if err != nil {
		w.Fatal(err)
	}
	if _, err := etcd.Compact(context.Background(), response.Header.Revision-1, clientv3.WithCompactPhysical()); err != nil {
		w.Fatal(err)
	}
}
