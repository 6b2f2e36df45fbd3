// Command bind_at_once is the upper limit for schedulers: it binds every pod as soon as it sees it, to the next node
// in turn, and writes a scheduler's Scheduled event. It decides nothing and checks nothing. With --victims it first
// makes room, with the requests of a scheduler that preempts.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	kubeconfig    = flag.String("kubeconfig", "", "kubeconfig of the cluster")
	schedulerName = flag.String("scheduler-name", "default-scheduler", "bind pods of this scheduler")
	inFlight      = flag.Int("in-flight", 32, "number of concurrent requests")
	victims       = flag.Int("victims", 0, "number of pods of the node to evict before a pod with a priority above 0 is bound")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		log.Fatal("bind_at_once: ", err)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodeList, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(nodeList.Items) == 0 {
		return fmt.Errorf("no nodes")
	}
	nodes := make([]string, len(nodeList.Items))
	for i := range nodeList.Items {
		nodes[i] = nodeList.Items[i].Name
	}
	var evicting *evictor
	if *victims > 0 {
		if evicting, err = newEvictor(ctx, client); err != nil {
			return err
		}
	}
	pending := metav1.ListOptions{FieldSelector: "spec.nodeName=,spec.schedulerName=" + *schedulerName}
	pods, err := client.CoreV1().Pods("").List(ctx, pending)
	if err != nil {
		return err
	}
	pending.ResourceVersion = pods.ResourceVersion

	work := make(chan func(), 100_000)
	for range *inFlight {
		go func() {
			for do := range work {
				do()
			}
		}()
	}
	next := 0
	schedule := func(pod *corev1.Pod) {
		node := nodes[next%len(nodes)]
		next++
		work <- func() {
			if evicting != nil && pod.Spec.Priority != nil && *pod.Spec.Priority > 0 {
				if err := evicting.makeRoom(ctx, pod, node); err != nil {
					log.Printf("eviction for %s failed: %v", pod.Name, err)
					return
				}
			}
			if err := bind(ctx, client, pod, node); err != nil {
				log.Printf("bind %s: %v", pod.Name, err)
				return
			}
			work <- func() {
				if err := recordScheduled(ctx, client, pod, node); err != nil {
					log.Printf("event of %s failed: %v", pod.Name, err)
				}
			}
		}
	}
	for i := range pods.Items {
		schedule(&pods.Items[i])
	}
	for {
		watcher, err := client.CoreV1().Pods("").Watch(ctx, pending)
		if err != nil {
			return err
		}
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				return apierrors.FromObject(event.Object)
			}
			pending.ResourceVersion = pod.ResourceVersion
			if event.Type == watch.Added {
				schedule(pod)
			}
		}
		// The API server closes the watch of a client that is slow for a moment. Resume at its last version.
	}
}

func bind(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, node string) error {
	return client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

var hostname, _ = os.Hostname()

func recordScheduled(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, node string) error {
	return record(ctx, client, pod, nil, corev1.EventTypeNormal, "Scheduled", "Binding",
		fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node))
}

// record writes an event as a scheduler does.
func record(ctx context.Context, client kubernetes.Interface, pod, related *corev1.Pod, kind, reason, action, note string) error {
	now := time.Now()
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", pod.Name, now.UnixNano())},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: *schedulerName,
		ReportingInstance:   *schedulerName + "-" + hostname,
		Action:              action,
		Reason:              reason,
		Regarding:           *reference(pod),
		Note:                note,
		Type:                kind,
	}
	if related != nil {
		event.Related = reference(related)
	}
	_, err := client.EventsV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}

func reference(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name,
		UID: pod.UID, ResourceVersion: pod.ResourceVersion}
}
