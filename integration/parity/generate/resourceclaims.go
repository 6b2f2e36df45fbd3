package generate

import (
	"fmt"
	"slices"
)

// addResourceClaims adds device claims to a pod, extended resources of a device class, or both. A running pod holds
// its claims; a pending pod's claim may be in any of the states that the plugin distinguishes.
func (w *world) addResourceClaims(pod object, running bool) {
	w.devices.kinds = nil
	if running {
		w.holdDevice(pod)
		return
	}
	if w.chance(22) {
		w.addExtendedResource(pod)
	}
	// If a device plugin has the resource, a pod with a claim beside it fails in kube-scheduler: it writes a claim
	// without requests.
	plugged := slices.Contains(w.devices.mapped, extendedResources[0]) && asksFor(pod, extendedResources[0])
	if !plugged && (len(w.devices.kinds) == 0 || w.chance(20)) {
		for i := range pick(w.random, 1, 1, 1, 1, 2, 3) {
			w.addResourceClaim(pod, fmt.Sprintf("c%d", i), i == 0)
		}
	}
	namespace, name := owner(pod)
	w.devices.byPod[namespace+"/"+name] = w.devices.kinds
}

// asksFor returns whether a container requests the resource.
func asksFor(pod object, resource string) bool {
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := pod["spec"].(object)[list].([]any)
		for _, container := range containers {
			resources, _ := container.(object)["resources"].(object)
			for _, kind := range []string{"requests", "limits"} {
				if amounts, _ := resources[kind].(object); amounts[resource] != nil {
					return true
				}
			}
		}
	}
	return false
}

// owner returns the namespace and the name of a pod.
func owner(pod object) (namespace, name string) {
	metadata := pod["metadata"].(object)
	namespace, _ = metadata["namespace"].(string)
	if namespace == "" {
		namespace = "default"
	}
	return namespace, metadata["name"].(string)
}

// uid sets a UID if the pod has none, because claims name it.
func uid(pod object) string {
	metadata := pod["metadata"].(object)
	if metadata["uid"] == nil {
		namespace, name := owner(pod)
		metadata["uid"] = "uid-" + namespace + "-" + name
	}
	return metadata["uid"].(string)
}

// addResourceClaim adds a claim to the pod. Only the first may be a claim that PostFilter deallocates: of several it
// would choose at random.
func (w *world) addResourceClaim(pod object, name string, first bool) {
	namespace, _ := owner(pod)
	switch {
	case w.chance(12) && len(w.devices.shared[namespace]) > 0 && !slices.Contains(w.devices.kinds, "shared") && !slices.Contains(w.devices.kinds, "named"):
		// Never the same claim twice: kube-scheduler would allocate it twice, and the pod would fail.
		w.kind("shared")
		w.refer(pod, name, "resourceClaimName", pick(w.random, w.devices.shared[namespace]...))
	case w.chance(14):
		claim := w.resourceClaim(namespace)
		w.kind("named")
		w.refer(pod, name, "resourceClaimName", nameOf(claim))
		if w.chance(60) {
			w.devices.shared[namespace] = append(w.devices.shared[namespace], nameOf(claim))
		}
	case w.chance(8) && first:
		w.kind("allocated")
		w.refer(pod, name, "resourceClaimName", w.allocatedClaim(pod))
	case w.chance(1.5):
		w.kind("missing")
		w.refer(pod, name, "resourceClaimName", "no-such-claim")
	case w.chance(2):
		w.kind("deleted")
		claim := w.resourceClaim(namespace)
		metadata := claim["metadata"].(object)
		metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = "2026-01-02T03:04:05Z", 0
		metadata["finalizers"] = []any{"resource.kubernetes.io/delete-protection"}
		w.refer(pod, name, "resourceClaimName", nameOf(claim))
	default:
		w.addClaimFromTemplate(pod, name, namespace)
	}
}

func nameOf(claim object) string { return claim["metadata"].(object)["name"].(string) }

func (w *world) refer(pod object, name, by, target string) {
	spec := pod["spec"].(object)
	claims, _ := spec["resourceClaims"].([]any)
	spec["resourceClaims"] = append(claims, object{"name": name, by: target})
	container := spec["containers"].([]any)[0].(object)
	resources, _ := container["resources"].(object)
	if resources == nil {
		resources = object{}
		container["resources"] = resources
	}
	used, _ := resources["claims"].([]any)
	resources["claims"] = append(used, object{"name": name})
}

// addClaimFromTemplate leaves pod and claim as the claim controller does, or in an intermediate state.
func (w *world) addClaimFromTemplate(pod object, name, namespace string) {
	w.kind("template")
	w.refer(pod, name, "resourceClaimTemplateName", "template")
	status, _ := pod["status"].(object)
	if status == nil {
		status = object{}
		pod["status"] = status
	}
	made, _ := status["resourceClaimStatuses"].([]any)
	switch {
	case w.chance(2):
		w.kind("not made yet")
		return
	case w.chance(2):
		w.kind("not needed")
		status["resourceClaimStatuses"] = append(made, object{"name": name})
		return
	}
	claim := w.resourceClaim(namespace)
	_, podName := owner(pod)
	reference := object{"apiVersion": "v1", "kind": "Pod", "name": podName, "uid": uid(pod), "controller": true, "blockOwnerDeletion": true}
	if w.chance(2) {
		w.kind("of another pod")
		reference["uid"] = "uid-of-another-pod"
	}
	metadata := claim["metadata"].(object)
	metadata["ownerReferences"] = []any{reference}
	metadata["annotations"] = object{"resource.kubernetes.io/pod-claim-name": name}
	status["resourceClaimStatuses"] = append(made, object{"name": name, "resourceClaimName": nameOf(claim)})
}

// resourceClaim adds a claim with its requests.
func (w *world) resourceClaim(namespace string) object {
	w.devices.made++
	name := fmt.Sprintf("claim-%d", w.devices.made)
	claim := object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
		"metadata": object{"name": name, "namespace": namespace, "uid": "uid-" + namespace + "-" + name}, "spec": object{"devices": w.demandOfDevices()}}
	w.objects = append(w.objects, claim)
	return claim
}

func (w *world) demandOfDevices() object {
	var requests []any
	count := pick(w.random, 1, 1, 1, 2, 3)
	constrained := w.chance(15)
	if constrained {
		count = 2
	}
	for i := range count {
		name := fmt.Sprintf("r%d", i)
		switch {
		case constrained:
			requests = append(requests, object{"name": name, "exactly": object{"deviceClassName": pick(w.random, "gpu", "gpu", "nic"),
				"allocationMode": "ExactCount", "count": 1}})
		case w.chance(20):
			requests = append(requests, object{"name": name, "firstAvailable": w.alternatives()})
		default:
			requests = append(requests, object{"name": name, "exactly": w.deviceRequest(true)})
		}
	}
	devices := object{"requests": requests}
	if constrained {
		key, attribute := "matchAttribute", pick(w.random, "example.com/numa", "example.com/numa", gpuDriver+"/model", gpuDriver+"/driverVersion")
		if w.chance(30) {
			key = "distinctAttribute"
		}
		w.kind(key)
		constraint := object{key: attribute}
		if w.chance(40) {
			constraint["requests"] = []any{"r0", "r1"}
		}
		devices["constraints"] = []any{constraint}
	}
	if w.chance(15) {
		config := object{"opaque": object{"driver": gpuDriver, "parameters": object{"kind": "Settings"}}}
		if w.chance(50) {
			config["requests"] = []any{"r0"}
		}
		devices["config"] = []any{config}
	}
	return devices
}

func (w *world) alternatives() []any {
	w.kind("firstAvailable")
	var list []any
	for i := range w.between(2, 3) {
		request := w.deviceRequest(false)
		request["name"] = fmt.Sprintf("s%d", i)
		list = append(list, request)
	}
	return list
}

// deviceRequest returns the common part of a request and a subrequest; only a request may have admin access.
func (w *world) deviceRequest(exactly bool) object {
	class := pick(w.random, "gpu", "gpu", "gpu", "big", "nic", "shared", "shared", "divided", "divided", "any")
	switch {
	case w.chance(1):
		class = "no-such-class"
		w.kind("no class")
	case w.devices.broken && w.chance(10):
		class = "careless"
		w.kind("careless selector")
	}
	request := object{"deviceClassName": class}
	switch {
	case w.chance(7):
		w.kind("all")
		request["allocationMode"] = "All"
	case w.chance(50):
		// Omitted: one.
	case w.chance(2):
		w.kind("too many")
		request["allocationMode"], request["count"] = "ExactCount", 33
	default:
		request["allocationMode"], request["count"] = "ExactCount", pick(w.random, 1, 1, 1, 2, 3)
	}
	if expressions := w.selectorsFor(class); len(expressions) > 0 {
		w.kind("selector")
		request["selectors"] = cel(expressions...)
	}
	if class == "shared" {
		w.kind("capacity")
		if w.chance(75) {
			request["capacity"] = object{"requests": object{"bandwidth": pick(w.random, "1G", "2G", "3500M", "8G", "20G")}}
		}
	}
	if class == "divided" {
		w.kind("partition")
	}
	if (class == "gpu" || class == "big" || class == "any") && w.chance(40) {
		w.kind("toleration")
		toleration := object{"operator": "Exists"}
		switch {
		case w.chance(30):
			toleration = object{"key": "example.com/fault", "value": "yes"}
		case w.chance(40):
			toleration["key"], toleration["effect"] = pick(w.random, "example.com/fault", "example.com/reserved"), "NoSchedule"
		}
		request["tolerations"] = []any{toleration}
	}
	if exactly && w.chance(6) {
		w.kind("admin")
		request["adminAccess"] = true
	}
	return request
}

func (w *world) selectorsFor(class string) []string {
	if !w.chance(35) {
		return nil
	}
	gpu := func(format string) string { return fmt.Sprintf(format, gpuDriver) }
	switch class {
	case "gpu", "big":
		return some(w.random, w.between(1, 2), []string{
			gpu(`device.attributes[%q].model == "h100"`), gpu(`device.attributes[%q].healthy`), gpu(`device.attributes[%q].index < 5`),
			gpu(`device.capacity[%q].memory.isGreaterThan(quantity("20Gi"))`), gpu(`device.attributes[%q].model in ["a100", "h100"]`),
			gpu(`device.attributes[%q].driverVersion.isGreaterThan(semver("1.1.0"))`), `device.attributes["example.com"].numa == 0`,
			gpu(`has(device.attributes[%q].rare)`),
		})
	case "nic":
		return []string{fmt.Sprintf(`device.attributes[%q].rdma`, nicDriver)}
	case "divided":
		return []string{fmt.Sprintf(`device.attributes[%q].profile == %q`, dividedDriver, pick(w.random, "80Gi", "40Gi", "10Gi"))}
	case "shared":
		return []string{fmt.Sprintf(`device.attributes[%q].speed >= 20`, sharedDriver)}
	}
	return nil
}

// takeDevice returns a device that no claim holds; ok is false if there is none.
func (w *world) takeDevice(usable func(deviceRef) bool) (deviceRef, bool) {
	for i, device := range w.devices.free {
		if usable(device) {
			w.devices.free = append(w.devices.free[:i:i], w.devices.free[i+1:]...)
			return device, true
		}
	}
	return deviceRef{}, false
}

// allocate records the device in the claim's allocation.
func (w *world) allocate(claim object, device deviceRef) object {
	claim["spec"] = object{"devices": object{"requests": []any{object{"name": "r0", "exactly": object{"deviceClassName": "any",
		"allocationMode": "ExactCount", "count": 1}}}}}
	metadata := claim["metadata"].(object)
	metadata["finalizers"] = []any{"resource.kubernetes.io/delete-protection"}
	allocation := object{"allocationTimestamp": "2026-01-02T03:04:05Z",
		"devices": object{"results": []any{object{"request": "r0", "driver": device.driver, "pool": device.pool, "device": device.device}}}}
	if device.node != "" {
		allocation["nodeSelector"] = object{"nodeSelectorTerms": []any{object{"matchFields": []any{named(device.node)}}}}
	}
	status := object{"allocation": allocation}
	claim["status"] = status
	return status
}

// allocatedClaim returns a claim that was allocated before: in use, free, or on a node where the pod may not fit. A
// device that should have become ready and did not makes the claim one to deallocate.
func (w *world) allocatedClaim(pod object) string {
	namespace, _ := owner(pod)
	claim := w.resourceClaim(namespace)
	device, ok := w.takeDevice(func(deviceRef) bool { return true })
	if !ok {
		return nameOf(claim)
	}
	status := w.allocate(claim, device)
	switch {
	case w.chance(25):
		w.kind("reserved for another")
		status["reservedFor"] = []any{object{"resource": "pods", "name": "another", "uid": "uid-of-another-pod"}}
	case w.chance(15):
		w.kind("reserved for it")
		_, name := owner(pod)
		status["reservedFor"] = []any{object{"resource": "pods", "name": name, "uid": uid(pod)}}
	case w.chance(35):
		w.kind("never ready")
		result := status["allocation"].(object)["devices"].(object)["results"].([]any)[0].(object)
		result["bindingConditions"], result["bindingFailureConditions"] = []any{"example.com/attached"}, []any{"example.com/broken"}
		if w.chance(50) {
			status["devices"] = []any{object{"driver": device.driver, "pool": device.pool, "device": device.device, "conditions": []any{
				object{"type": "example.com/broken", "status": "True", "reason": "Broken", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}}}}
		}
	}
	return nameOf(claim)
}

// holdDevice allocates a device of its node to a running pod.
func (w *world) holdDevice(pod object) {
	node, _ := pod["spec"].(object)["nodeName"].(string)
	device, ok := w.takeDevice(func(device deviceRef) bool { return device.node == node })
	if !ok {
		return
	}
	namespace, name := owner(pod)
	claim := w.resourceClaim(namespace)
	status := w.allocate(claim, device)
	status["reservedFor"] = []any{object{"resource": "pods", "name": name, "uid": uid(pod)}}
	w.refer(pod, "held", "resourceClaimName", nameOf(claim))
}

// addExtendedResource makes containers request devices as extended resources.
func (w *world) addExtendedResource(pod object) {
	w.kind("extended resource")
	spec := pod["spec"].(object)
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for i, container := range containers {
			if list == "containers" && i > 0 && !w.chance(30) || list == "initContainers" && !w.chance(40) {
				continue
			}
			resources, _ := container.(object)["resources"].(object)
			if resources == nil {
				resources = object{}
				container.(object)["resources"] = resources
			}
			name, amount := pick(w.random, w.devices.mapped...), pick(w.random, "1", "1", "1", "2")
			for _, kind := range []string{"requests", "limits"} {
				amounts, _ := resources[kind].(object)
				if amounts == nil {
					amounts = object{}
					resources[kind] = amounts
				}
				amounts[name] = amount
			}
		}
	}
	if w.chance(6) {
		w.addLeftClaim(pod)
	}
}

// addLeftClaim adds an unused claim that an earlier attempt created for the pod's extended resources.
func (w *world) addLeftClaim(pod object) {
	w.kind("left by an attempt before")
	namespace, name := owner(pod)
	claim := w.resourceClaim(namespace)
	metadata := claim["metadata"].(object)
	metadata["generateName"] = name + "-extended-resources-"
	metadata["annotations"] = object{"resource.kubernetes.io/extended-resource-claim": "true"}
	metadata["ownerReferences"] = []any{object{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid(pod), "controller": true}}
	claim["spec"] = object{"devices": object{"requests": []any{object{"name": "container-0-request-0", "exactly": object{
		"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}}}}
}
