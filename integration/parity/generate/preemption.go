package generate

import (
	"fmt"
	"time"
)

// addBudgets adds disruption budgets: some that allow disruptions, some that do not, some that select nothing.
func (w *world) addBudgets(c *Case) {
	for i := range w.between(1, 7) {
		selector := w.selectorOf(object{"app": pick(w.random, appNames...)})
		switch {
		case w.chance(10):
			selector = object{}
		case w.chance(15):
			selector = object{"matchExpressions": []any{object{"key": "version", "operator": "NotIn", "values": []any{"v1"}}}}
		}
		status := object{"disruptionsAllowed": pick(w.random, 0, 0, 0, 1, 2), "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}
		if w.chance(25) {
			status["disruptedPods"] = object{fmt.Sprintf("running-%d", w.IntN(20)): "2026-01-02T03:04:05Z"}
		}
		spec := object{"minAvailable": 1, "selector": selector}
		if w.chance(10) {
			delete(spec, "selector")
		}
		c.Objects = append(c.Objects, object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
			"metadata": object{"name": fmt.Sprintf("budget-%d", i), "namespace": pick(w.random, namespaceNames...)}, "spec": spec, "status": status})
	}
}

// addPriority sets the fields that preemption reads. Start times are all different, because kube-scheduler's choice
// between equal pods is random. A pending pod has one, too, because it may become a victim after its placement.
func (w *world) addPriority(pod object, running bool) {
	metadata, spec := pod["metadata"].(object), pod["spec"].(object)
	status, _ := pod["status"].(object)
	if status == nil {
		status = object{}
	}
	w.started++
	hour := w.IntN(500)
	start := time.Date(2026, 3, 1, hour%24, 0, 0, 0, time.UTC).AddDate(0, 0, hour/24).Add(time.Duration(w.started) * time.Second)
	status["startTime"] = start.Format(time.RFC3339)
	pod["status"] = status
	if w.about&Preemption == 0 {
		// Priorities as in other cases.
		return
	}
	if running {
		if w.dense() {
			w.demand(spec, 80, 2, 14, 1, 14)
		} else {
			w.demand(spec, 50, 3, 18, 2, 20)
		}
		spec["priority"] = pick(w.random, priorities[:7]...)
		if w.chance(7) {
			metadata["deletionTimestamp"] = "2026-04-02T03:04:05Z"
			metadata["deletionGracePeriodSeconds"] = 30
			if w.chance(70) {
				status["conditions"] = []any{object{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}}
			}
		}
		return
	}
	spec["priority"] = pick(w.random, 0, 10, 100, 100, 1000, 1000, 1000000, 2000001000)
	if w.chance(10) {
		spec["preemptionPolicy"] = pick(w.random, "Never", "Never", "PreemptLowerPriority")
	}
	if w.chance(12) {
		status["nominatedNodeName"] = w.nodeName()
		if w.chance(40) {
			// Another node by name: the nominated node is still examined first, and keeps its verdict.
			spec["affinity"] = object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": []any{
				object{"matchFields": []any{object{"key": "metadata.name", "operator": "In", "values": []any{w.nodeName()}}}}}}}}
		}
	}
	// Large enough to need an eviction on most nodes.
	if w.dense() {
		w.demand(spec, 85, 4, 38, 2, 60)
	} else {
		w.demand(spec, 60, 4, 38, 2, 60)
	}
}

// demand gives most pods one container that requests this many tenths of a core and eighths of a GiB.
func (w *world) demand(spec object, percent float64, leastCPU, mostCPU, leastMemory, mostMemory int) {
	if !w.chance(percent) {
		return
	}
	spec["containers"].([]any)[0].(object)["resources"] = object{"requests": object{
		"cpu": w.cpu(w.between(leastCPU, mostCPU) * 100), "memory": w.bytes(int64(w.between(leastMemory, mostMemory)) << 27)}}
}
