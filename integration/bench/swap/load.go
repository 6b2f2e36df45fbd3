package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// load is a steady stream of pods.
type load struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	created map[string]time.Time
	seen    map[string]time.Time // bound
	failed  error
}

func startLoad(ctx context.Context, client kubernetes.Interface) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{client: client, cancel: cancel, created: map[string]time.Time{}, seen: map[string]time.Time{}}
	watching := make(chan struct{})
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		l.fail(l.watch(ctx, watching))
		cancel()
	}()
	select {
	case <-watching:
	case <-ctx.Done(): // It failed at once.
	}
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		l.fail(l.create(ctx))
	}()
	return l
}

func (l *load) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
}

// create makes pods at the rate, each in its time, whatever the others do.
func (l *load) create(ctx context.Context) error {
	var under sync.WaitGroup
	defer under.Wait()
	began := time.Now()
	for i := 0; ; i++ {
		if err := sleepUntil(ctx, began.Add(time.Duration(i)*time.Second/time.Duration(*rate))); err != nil {
			return nil
		}
		name := fmt.Sprintf("pod-%06d", i)
		l.mu.Lock()
		l.created[name] = time.Now()
		l.mu.Unlock()
		under.Add(1)
		go func() {
			defer under.Done()
			// Not cut short by the end: every pod that was counted is to be there.
			_, err := l.client.CoreV1().Pods(namespace).Create(context.WithoutCancel(ctx), newPod(name), metav1.CreateOptions{})
			l.fail(err)
		}()
	}
}

// watch notes when pods are bound, and deletes those that have been for long enough. The API server may end a watch at any time.
func (l *load) watch(ctx context.Context, watching chan<- struct{}) error {
	for began := false; ctx.Err() == nil; began = true {
		options := metav1.ListOptions{FieldSelector: "spec.nodeName!="}
		list, err := l.client.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			l.see(ctx, &list.Items[i])
		}
		options.ResourceVersion = list.ResourceVersion
		watcher, err := l.client.CoreV1().Pods(namespace).Watch(ctx, options)
		if err != nil {
			return err
		}
		if !began {
			close(watching)
		}
		for event := range watcher.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				l.see(ctx, pod)
			}
		}
		watcher.Stop()
	}
	return nil
}

func (l *load) see(ctx context.Context, pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, seen := l.seen[pod.Name]
	_, ours := l.created[pod.Name]
	if !ours || seen {
		return
	}
	l.seen[pod.Name] = time.Now()
	time.AfterFunc(stay, func() {
		if ctx.Err() == nil {
			l.fail(l.client.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}))
		}
	})
}

// end stops creating and waits until every pod is bound.
func (l *load) end(ctx context.Context) error {
	const patience = 30 * time.Second
	limit := time.Now().Add(patience)
	for {
		l.mu.Lock()
		missing, failed := len(l.created)-len(l.seen), l.failed
		l.mu.Unlock()
		// The creator goes on until the end; what it made since is not waited for.
		if failed != nil || missing <= *rate/10 || time.Now().After(limit) {
			break
		}
		if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return err
		}
	}
	l.cancel()
	l.done.Wait()
	return errors.Join(l.failed, l.waitForAll(ctx, limit))
}

// waitForAll waits until the pods that exist are bound.
func (l *load) waitForAll(ctx context.Context, limit time.Time) error {
	for {
		pending, err := l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
		if err != nil {
			return err
		}
		if len(pending.Items) == 0 || time.Now().After(limit) {
			return nil // What is left the checker counts as lost.
		}
		if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return err
		}
	}
}

// latencies is how long pods took from their creation until they were seen bound, by when they were created.
func (l *load) latencies() (all []sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, created := range l.created {
		// Those that are missing are among the last; what is lost the checker tells.
		if seen, ok := l.seen[name]; ok {
			all = append(all, sample{began: created, took: seen.Sub(created)})
		}
	}
	return all
}
