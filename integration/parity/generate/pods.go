package generate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

var priorities = []any{-10, 0, 0, 0, 10, 100, 100, 1000, 1000000, 2000001000}

// pendingPod returns a pod with a few of the features that plugins read.
func (w *world) pendingPod(index int, profiles []string) object {
	metadata := object{"name": fmt.Sprintf("pod-%d", index)}
	if w.chance(85) {
		metadata["namespace"] = pick(w.random, "default", "team-a", "team-b")
	}
	if w.chance(80) {
		metadata["uid"] = fmt.Sprintf("uid-pending-%d", index)
	}
	size := pick(w.random, 1, 1, 1, 4)
	if w.quiet() {
		size = 1
	}
	spec := w.podSpec(size)
	if w.chance(50) {
		spec["priority"] = pick(w.random, priorities...)
	}
	if profile := pick(w.random, profiles...); profile != "default-scheduler" || w.chance(40) {
		spec["schedulerName"] = profile
	}
	if w.noise(60, 18) {
		w.addSelection(spec)
	}
	if w.quiet() && w.chance(60) {
		spec["tolerations"] = []any{object{"operator": "Exists"}}
	} else if w.chance(35) {
		spec["tolerations"] = w.tolerations()
	}
	if w.chance(2.5) {
		gates := []any{}
		for _, gate := range some(w.random, w.between(1, 3), []string{"example.com/quota", "wait", "b", "a"}) {
			gates = append(gates, object{"name": gate})
		}
		spec["schedulingGates"] = gates
	}
	if w.chance(15) {
		spec["volumes"] = w.volumes()
	}
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
	if w.features != None {
		w.addFeatures(pod, "pending", index)
	}
	return pod
}

// addFeatures adds the case's features to a pod: labels and an owner, pod affinity, volumes, priorities.
func (w *world) addFeatures(pod object, state string, index int) {
	running := state == "running"
	w.addIdentity(pod)
	if w.when(Spread, 55, 12) && !running {
		w.addSpread(pod)
	}
	if often := 60.0; w.when(Affinity, map[bool]float64{true: 30, false: often}[running], map[bool]float64{true: 3, false: 12}[running]) {
		w.addPodAffinity(pod, running)
	}
	if w.when(Volumes, 65, 15) {
		w.addPodVolumes(pod, fmt.Sprintf("%s-%d", state, index), running)
	}
	if w.features&Preemption != 0 {
		w.addPriority(pod, running)
	}
	if w.when(Declared, 40, 5) {
		w.addNeededFeatures(pod)
	}
	if w.when(Claims, 80, 15) {
		w.addResourceClaims(pod, running)
	}
}

// runningPod returns a pod on a node, of any scheduler.
func (w *world) runningPod(index int, node string) object {
	metadata := object{"name": fmt.Sprintf("running-%d", index), "namespace": pick(w.random, "default", "kube-system", "team-a")}
	if w.chance(90) {
		metadata["uid"] = fmt.Sprintf("uid-running-%d", index)
	}
	if w.chance(5) {
		metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
		metadata["deletionGracePeriodSeconds"] = 30
	}
	spec := w.podSpec(1)
	if w.chance(25) {
		w.take(spec)
	}
	spec["nodeName"] = node
	w.keepPortsApart(spec, node)
	if w.chance(30) {
		spec["schedulerName"] = pick(w.random, "another-scheduler", "default-scheduler")
	}
	if w.chance(30) {
		spec["priority"] = pick(w.random, priorities...)
	}
	status := object{"phase": pick(w.random, "Running", "Running", "Running", "Pending", "Unknown")}
	if w.chance(5) {
		status["phase"] = pick(w.random, "Succeeded", "Failed")
	}
	if w.chance(6) {
		w.addResize(spec, status)
	}
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
	if w.features != None {
		w.addFeatures(pod, "running", index)
	}
	return pod
}

// keepPortsApart removes ports that another pod on the node has: no kubelet runs both, and kube-scheduler, which
// keeps a set of ports, forgets the port of both when one pod is deleted.
func (w *world) keepPortsApart(spec object, node string) {
	if w.ports == nil {
		w.ports = map[string]bool{}
	}
	for _, kind := range []string{"containers", "initContainers"} {
		containers, _ := spec[kind].([]any)
		for _, container := range containers {
			var kept []any
			ports, _ := container.(object)["ports"].([]any)
			for _, port := range ports {
				number := port.(object)["hostPort"]
				if number == nil {
					number = port.(object)["containerPort"]
				}
				if key := fmt.Sprint(node, "/", number); !w.ports[key] {
					w.ports[key] = true
					kept = append(kept, port)
				}
			}
			delete(container.(object), "ports")
			if len(kept) > 0 {
				container.(object)["ports"] = kept
			}
		}
	}
}

// take requests some scarce resources of nodes.
func (w *world) take(spec object) {
	name, amount := pick(w.random, extendedResources...), "1"
	if w.chance(30) {
		name, amount = "hugepages-2Mi", pick(w.random, "64Mi", "512Mi")
	} else if w.chance(15) {
		name, amount = "hugepages-1Gi", "2Gi"
	}
	container := spec["containers"].([]any)[0].(object)
	resources, _ := container["resources"].(object)
	if resources == nil {
		resources = object{}
	}
	for _, list := range []string{"requests", "limits"} {
		amounts, _ := resources[list].(object)
		if amounts == nil {
			amounts = object{}
		}
		amounts[name] = amount
		resources[list] = amounts
	}
	container["resources"] = resources
}

// addResize makes the pod one whose in-place resize is in progress, deferred or infeasible.
func (w *world) addResize(spec, status object) {
	var statuses []any
	for _, container := range spec["containers"].([]any) {
		entry := object{
			"name": container.(object)["name"], "ready": true, "restartCount": 0, "image": "busybox", "imageID": "",
			"resources": object{"requests": object{"cpu": w.cpu(w.between(1, 8) * 100), "memory": w.bytes(int64(w.between(1, 8)) << 27)}},
		}
		if w.chance(70) {
			entry["allocatedResources"] = object{"cpu": w.cpu(w.between(1, 8) * 100), "memory": w.bytes(int64(w.between(1, 8)) << 27)}
		}
		statuses = append(statuses, entry)
	}
	status["containerStatuses"] = statuses
	if w.chance(60) {
		status["conditions"] = []any{object{"type": "PodResizePending", "status": "True", "reason": pick(w.random, "Infeasible", "Deferred")}}
	}
}

// podSpec returns containers with their requests; size scales the requests.
func (w *world) podSpec(size int) object {
	spec := object{}
	var containers []any
	for i := range pick(w.random, 1, 1, 1, 2, 3) {
		containers = append(containers, w.container(fmt.Sprintf("c%d", i), size))
	}
	spec["containers"] = containers
	if w.chance(15) {
		var inits []any
		for i := range w.between(1, 3) {
			container := w.container(fmt.Sprintf("i%d", i), size*2)
			if w.chance(45) {
				container["restartPolicy"] = "Always"
			}
			inits = append(inits, container)
		}
		spec["initContainers"] = inits
	}
	if w.chance(6) {
		spec["overhead"] = object{"cpu": w.cpu(w.between(1, 5) * 50), "memory": w.bytes(int64(w.between(1, 4)) << 26)}
	}
	if w.chance(7) {
		spec["resources"] = w.podResources(size)
	}
	if w.chance(3) {
		spec["hostNetwork"] = true
	}
	return spec
}

func (w *world) podResources(size int) object {
	amounts := func(factor int) object {
		list := object{}
		if w.chance(75) {
			list["cpu"] = w.cpu(w.between(1, 10) * 100 * size * factor)
		}
		if w.chance(75) {
			list["memory"] = w.bytes(int64(w.between(1, 10)*size*factor) << 27)
		}
		if w.chance(10) {
			list["hugepages-2Mi"] = "64Mi"
		}
		return list
	}
	resources := object{}
	if w.chance(70) {
		resources["requests"] = amounts(1)
	}
	if w.chance(50) {
		limits := amounts(2)
		if requests, both := resources["requests"].(object); both {
			dropSmallLimits(requests, limits)
		}
		resources["limits"] = limits
	}
	return resources
}

func (w *world) container(name string, size int) object {
	image := pick(w.random, imageNames...)
	switch {
	case w.chance(40):
		image += ":" + pick(w.random, "latest", "v1", "v2", "v3")
	case w.chance(20):
		image = fmt.Sprintf("%s@sha256:%064x", image, w.between(1, len(imageNames)))
	}
	container := object{"name": name, "image": image}
	if resources := w.containerResources(size); len(resources) > 0 {
		container["resources"] = resources
	}
	if w.noise(12, 16) {
		container["ports"] = w.hostPorts()
	}
	return container
}

func (w *world) containerResources(size int) object {
	requests, limits := object{}, object{}
	target := func() object {
		if w.chance(20) {
			return limits
		}
		return requests
	}
	if w.chance(75) {
		target()["cpu"] = w.cpu(w.between(1, 12) * 50 * size)
	}
	if w.chance(75) {
		target()["memory"] = w.bytes(pick[int64](w.random, 1<<25, 1<<26, 1e8, 1<<27, 3<<27, 1<<28, 5e8) * int64(size))
	}
	if w.quiet() && w.chance(75) {
		dropSmallLimits(requests, limits)
		return resourceObject(requests, limits, false)
	}
	if w.chance(12) {
		target()["ephemeral-storage"] = w.bytes(pick[int64](w.random, 1<<30, 2e9, 8<<30) * int64(size))
	}
	if w.chance(10) {
		name := pick(w.random, extendedResources...)
		amount := pick[any](w.random, "1", "1", "1", 2, "4")
		if w.chance(10) {
			amount = "0"
		}
		requests[name], limits[name] = amount, amount
		if w.chance(30) {
			other := pick(w.random, extendedResources...)
			requests[other], limits[other] = "1", "1"
		}
		if w.chance(30) {
			delete(requests, name)
		}
	}
	if w.chance(4) {
		name := pick(w.random, "hugepages-2Mi", "hugepages-2Mi", "hugepages-1Gi")
		limits[name] = pick(w.random, "2Gi", "1Gi")
		if name == "hugepages-2Mi" {
			limits[name] = pick(w.random, "64Mi", "128Mi", "256Mi", "400Mi", "600Mi")
		}
	}
	if w.chance(6) {
		name := pick(w.random, "cpu", "memory", "ephemeral-storage")
		requests[name] = w.odd(name)
	}
	if size > 1 && w.chance(3) {
		name := pick(w.random, "cpu", "memory", "ephemeral-storage")
		requests[name] = w.huge(name)
	}
	dropSmallLimits(requests, limits)
	return resourceObject(requests, limits, w.chance(10))
}

func resourceObject(requests, limits object, empty bool) object {
	resources := object{}
	if len(requests) > 0 || empty {
		resources["requests"] = requests
	}
	if len(limits) > 0 {
		resources["limits"] = limits
	}
	return resources
}

// dropSmallLimits removes limits below their requests, which no API server accepts.
func dropSmallLimits(requests, limits object) {
	for name, limit := range limits {
		request, both := requests[name]
		if !both {
			continue
		}
		if wanted := quantity(request); wanted.Cmp(quantity(limit)) > 0 {
			delete(limits, name)
		}
	}
}

func quantity(value any) resource.Quantity {
	return resource.MustParse(fmt.Sprint(value))
}

func (w *world) hostPorts() []any {
	var ports []any
	for range w.between(1, 2) {
		port := object{"containerPort": w.between(8000, 8004)}
		if w.chance(75) {
			port["hostPort"] = w.between(8000, 8006)
		}
		if w.chance(50) {
			port["protocol"] = pick(w.random, "TCP", "UDP", "SCTP")
		}
		if w.chance(40) {
			port["hostIP"] = pick(w.random, "0.0.0.0", "127.0.0.1", "10.0.0.1", "::")
		}
		ports = append(ports, port)
	}
	return ports
}

func (w *world) volumes() []any {
	volumes := []any{object{"name": "v0", "emptyDir": object{}}}
	if w.chance(40) {
		volumes = append(volumes, object{"name": "v1", "configMap": object{"name": "settings"}})
	}
	if w.chance(40) {
		volumes = append(volumes, object{"name": "v2", "image": object{"reference": pick(w.random, imageNames...) + ":v1"}})
	}
	return volumes
}

func (w *world) tolerations() []any {
	if w.chance(10) {
		return []any{object{"operator": "Exists"}}
	}
	var tolerations []any
	for range w.between(1, 4) {
		toleration := object{"key": pick(w.random, "dedicated", "gpu", "spot", "example.com/maintenance", "node.kubernetes.io/unschedulable", "other")}
		switch {
		case w.chance(45):
			toleration["operator"] = "Exists"
		case w.chance(50):
			toleration["operator"] = "Equal"
			fallthrough
		default:
			if value := pick(w.random, "", "a", "b", "true"); value != "" {
				toleration["value"] = value
			}
		}
		if w.chance(65) {
			toleration["effect"] = pick(w.random, "NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
		if toleration["effect"] == "NoExecute" && w.chance(50) {
			toleration["tolerationSeconds"] = 300
		}
		tolerations = append(tolerations, toleration)
	}
	return tolerations
}
