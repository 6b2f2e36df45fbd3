package generate

// NewSequence returns a case of this many nodes and pods with kube-scheduler's own profile and sampling: placements
// in a large cluster, one after the other. Pods have no priority; preemption is tested elsewhere.
func NewSequence(seed uint64, features Features, nodes, pods int) *Case {
	w := newWorld(seed, features)
	w.large, w.about = true, None
	w.name(nodes)
	c := &Case{Seed: seed, Features: features}
	c.Nodes = w.nodeObjects()
	w.addSurroundings(c)
	for _, node := range w.nodes {
		if w.chance(50) {
			c.Running = append(c.Running, w.runningPod(len(c.Running), node))
		}
	}
	profile := w.profile("default-scheduler")
	w.addPreemptionArgs(profile, nil)
	c.Config = object{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "percentageOfNodesToScore": 0,
		"profiles": []any{profile}}
	for i := range pods {
		pod := w.pendingPod(i, []string{"default-scheduler"})
		if i > 0 && w.chance(50) && features&Claims == 0 {
			w.makeReplica(pod, c.Pending[i-1])
		}
		c.Pending = append(c.Pending, pod)
	}
	for _, list := range [][]map[string]any{c.Running, c.Pending} {
		for _, pod := range list {
			delete(pod["spec"].(object), "priority")
		}
	}
	c.Objects = append(c.Objects, w.objects...)
	c.Kinds = w.devices.byPod
	return c
}
