package gangs

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Limit for a partly bound gang whose members are being bound. (A gang that lost members may be partly bound for
// longer.)
const bindsTake = 4 * time.Second

// judge has its own watch and shares nothing with the scheduler.
type judge struct {
	mutex sync.Mutex
	gangs map[string]*judged
	used  map[string]int64 // GPUs by node
	said  []string
}

type judged struct {
	min, bound int
	excused    bool      // the test deleted members
	partial    time.Time // since when a part of it is bound
	reported   bool
}

func newJudge() *judge { return &judge{gangs: map[string]*judged{}, used: map[string]int64{}} }

func (j *judge) start(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		// A pod is bound when it is first seen if the watch was interrupted in between.
		AddFunc:    func(object any) { j.count(object.(*corev1.Pod), 1) },
		UpdateFunc: func(old, changed any) { j.update(old.(*corev1.Pod), changed.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			j.count(object.(*corev1.Pod), -1)
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		for ctx.Err() == nil {
			j.look()
			time.Sleep(pause)
		}
	}()
	return nil
}

func (j *judge) update(old, changed *corev1.Pod) {
	if old.UID != changed.UID {
		j.count(old, -1)
		j.count(changed, 1)
		return
	}
	if old.Spec.NodeName == "" {
		j.count(changed, 1)
	} else if old.Spec.NodeName != changed.Spec.NodeName {
		j.complain("pod %s was bound to %s and then to %s", old.Name, old.Spec.NodeName, changed.Spec.NodeName)
	}
}

func (j *judge) count(pod *corev1.Pod, sign int) {
	if pod.Spec.NodeName == "" {
		return
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	limits := pod.Spec.Containers[0].Resources.Limits[gpu]
	j.used[pod.Spec.NodeName] += int64(sign) * limits.Value()
	if used := j.used[pod.Spec.NodeName]; used > gpusOfNode {
		j.said = append(j.said, fmt.Sprintf("node %s has %d of %d GPUs in use with %s", pod.Spec.NodeName, used, gpusOfNode, pod.Name))
	}
	j.gangs[pod.Labels["gang"]].bound += sign
}

func (j *judge) complain(format string, args ...any) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.said = append(j.said, fmt.Sprintf(format, args...))
}

func (j *judge) look() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for name, g := range j.gangs {
		if g.bound == 0 || g.bound >= g.min || g.excused {
			g.partial = time.Time{}
			continue
		}
		if g.partial.IsZero() {
			g.partial = time.Now()
		}
		if since := time.Since(g.partial); since > bindsTake && !g.reported {
			g.reported = true
			j.said = append(j.said, fmt.Sprintf("gang %s: %d of %d have been bound for %v", name, g.bound, g.min, since.Round(time.Millisecond)))
		}
	}
}

func (j *judge) expect(gang string, min int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.gangs[gang] = &judged{min: min}
}

// excuse announces that the test deletes members.
func (j *judge) excuse(gang string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.gangs[gang].excused = true
}

func (j *judge) bound(gang string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.gangs[gang].bound
}

func (j *judge) await(ctx context.Context, gang string, want int) error {
	for limit := time.Now().Add(patience); ; time.Sleep(pause) {
		bound := j.bound(gang)
		if bound >= want {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(limit) {
			return fmt.Errorf("gang %s: %d of %d are bound after %v", gang, bound, want, patience)
		}
	}
}

func (j *judge) complaints() []string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return append([]string{}, j.said...)
}
