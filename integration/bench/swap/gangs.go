package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"outboard.dev/integration/bench/load"
)

const gangSize = 4

// gangs are groups of pods. All but one member wait at Permit while the host is replaced; the last is created
// afterwards. The result is read from the API server.
type gangs struct {
	client kubernetes.Interface

	whole   int // bound, all of them, in time
	across  int // of which all but one had a node reserved before the host was replaced
	partial int // had a bound member while one was missing
	late    int // were not all bound a second after the last member was created

	// Updated by a watch: frequent lists of the namespace would take a large part of the API server's time.
	mu      sync.Mutex
	members map[string]map[string]*corev1.Pod // by gang and name
}

// watchGangs watches until the context ends. The API server may end a watch at any time.
func watchGangs(ctx context.Context, client kubernetes.Interface) *gangs {
	g := &gangs{client: client, members: map[string]map[string]*corev1.Pod{}}
	pods := &cache.ListWatch{
		ListFunc: func(options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = "job-name"
			return client.CoreV1().Pods(namespace).List(ctx, options)
		},
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = "job-name"
			return client.CoreV1().Pods(namespace).Watch(ctx, options)
		},
	}
	see := func(object any) {
		pod := object.(*corev1.Pod)
		g.mu.Lock()
		defer g.mu.Unlock()
		gang := pod.Labels["job-name"]
		if g.members[gang] == nil {
			g.members[gang] = map[string]*corev1.Pod{}
		}
		g.members[gang][pod.Name] = pod
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: pods, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }}})
	go controller.RunWithContext(ctx)
	return g
}

// begin creates all but one member of gang i.
func (g *gangs) begin(ctx context.Context, i int) error {
	for member := range gangSize - 1 {
		if err := g.create(ctx, i, member); err != nil {
			return err
		}
	}
	return nil
}

func (g *gangs) create(ctx context.Context, i, member int) error {
	pod := load.NewPod(podName(i, member))
	pod.Labels = map[string]string{"job-name": gangName(i)}
	pod.Annotations = map[string]string{"outboard/min-replicas": strconv.Itoa(gangSize)}
	_, err := g.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func gangName(i int) string { return fmt.Sprintf("gang-%04d", i) }

func podName(i, member int) string { return fmt.Sprintf("gang-%04d-%d", i, member) }

// look returns how many members of gang i are bound, and how many wait.
func (g *gangs) look(i int) (bound, reserved int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, pod := range g.members[gangName(i)] {
		if pod.Spec.NodeName != "" {
			bound++
		}
		// Set when it begins to wait.
		if pod.Status.NominatedNodeName != "" {
			reserved++
		}
	}
	return bound, reserved
}

// complete creates the missing member of gang i, and waits until all are bound or the time is over.
func (g *gangs) complete(ctx context.Context, i int) error {
	bound, reserved := g.look(i)
	if bound > 0 {
		g.partial++
	}
	if reserved == gangSize-1 {
		g.across++
	}
	if err := g.create(ctx, i, gangSize-1); err != nil {
		return err
	}
	limit := time.Now().Add(tooLate)
	for {
		if bound, _ := g.look(i); bound == gangSize {
			g.whole++
			for member := range gangSize {
				if err := g.client.CoreV1().Pods(namespace).Delete(ctx, podName(i, member), metav1.DeleteOptions{}); err != nil {
					return err
				}
			}
			return nil
		}
		if time.Now().After(limit) {
			g.late++ // If it never is, the checker reports its members as lost.
			return nil
		}
		if err := load.SleepUntil(ctx, time.Now().Add(20*time.Millisecond)); err != nil {
			return err
		}
	}
}
