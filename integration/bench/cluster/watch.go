package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// podWatcher records when it first saw each pod bound.
type podWatcher struct {
	mu     sync.Mutex
	bound  map[string]time.Time
	failed error // the error that ended the watch
}

func newPodWatcher(ctx context.Context, client kubernetes.Interface) (*podWatcher, error) {
	// Only pods with a node are sent, so watching costs the API server and this program one object for each pod.
	options := metav1.ListOptions{FieldSelector: "spec.nodeName!="}
	list, err := client.CoreV1().Pods(benchNamespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &podWatcher{bound: map[string]time.Time{}}
	options.ResourceVersion = list.ResourceVersion
	go func() {
		// The API server closes the watch of a client that is slow for a moment. Resume at its last version.
		for ctx.Err() == nil {
			version, err := w.watch(ctx, client, options)
			if err != nil {
				w.mu.Lock()
				w.failed = err
				w.mu.Unlock()
				return
			}
			options.ResourceVersion = version
		}
	}()
	return w, nil
}

// watch returns the version at which to resume when the stream ends.
func (w *podWatcher) watch(ctx context.Context, client kubernetes.Interface, options metav1.ListOptions) (string, error) {
	watcher, err := client.CoreV1().Pods(benchNamespace).Watch(ctx, options)
	if err != nil {
		return "", err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return "", apierrors.FromObject(event.Object)
		}
		now := time.Now()
		w.mu.Lock()
		if _, seen := w.bound[pod.Name]; !seen && pod.Spec.NodeName != "" {
			w.bound[pod.Name] = now
		}
		w.mu.Unlock()
		options.ResourceVersion = pod.ResourceVersion
	}
	return options.ResourceVersion, nil
}

func (w *podWatcher) count(prefix string, n int) (bound int, failed error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range n {
		if _, ok := w.bound[podName(prefix, i)]; ok {
			bound++
		}
	}
	return bound, w.failed
}

// waitFor waits until all pods with the prefix are bound. It fails without progress.
func (w *podWatcher) waitFor(ctx context.Context, prefix string, n int) error {
	const patience = time.Minute
	last, lastProgress := -1, time.Now()
	for {
		bound, failed := w.count(prefix, n)
		switch {
		case bound == n:
			return nil
		case failed != nil:
			return fmt.Errorf("the watch of pods failed, %d of %d bound: %w", bound, n, failed)
		case bound > last:
			last, lastProgress = bound, time.Now()
		case time.Since(lastProgress) > patience:
			return fmt.Errorf("%d of %d pods bound, none of them in the last %v", bound, n, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *podWatcher) boundAt(prefix string, n int) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	times := make([]time.Time, n)
	for i := range n {
		times[i] = w.bound[podName(prefix, i)]
	}
	return times
}

// waitForEvents waits until there are n events, or no more arrive: they belong to the scheduler's CPU time. The
// checker counts them.
func waitForEvents(ctx context.Context, client kubernetes.Interface, n int) error {
	const patience = 3 * time.Second
	last, lastProgress := int64(-1), time.Now()
	for time.Since(lastProgress) < patience {
		list, err := client.EventsV1().Events(benchNamespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		count := int64(len(list.Items))
		if list.RemainingItemCount != nil {
			count += *list.RemainingItemCount
		}
		if count >= int64(n) {
			return nil
		}
		if count > last {
			last, lastProgress = count, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}
