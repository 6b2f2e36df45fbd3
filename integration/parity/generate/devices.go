package generate

import "fmt"

const (
	gpuDriver     = "gpu.example.com"
	nicDriver     = "nic.example.com"
	sharedDriver  = "shared.example.com"
	dividedDriver = "divided.example.com"
)

// classed is an extended resource of a DeviceClass that no node has itself.
const classed = "example.com/accelerator"

// deviceRef is a device of a slice, and the only node that can use it, or "" if several can.
type deviceRef struct{ driver, pool, device, node string }

// deviceWorld is everything that claims of one seed can refer to.
type deviceWorld struct {
	// free are devices that no claim of the manifests holds.
	free []deviceRef
	// shared are claims that several pods name, by namespace.
	shared map[string][]string
	made   int
	// mapped are extended resources of device classes.
	mapped []string
	// kinds are those of the current pod, and of all pods by name.
	kinds  []string
	byPod  map[string][]string
	broken bool
}

// kind records that the current pod has a claim of this kind.
func (w *world) kind(name string) { w.devices.kinds = append(w.devices.kinds, name) }

// addDevices adds slices and classes.
func (w *world) addDevices(c *Case) {
	w.devices = deviceWorld{shared: map[string][]string{}, byPod: map[string][]string{}, broken: w.chance(12)}
	c.Objects = append(c.Objects, w.deviceClasses()...)
	for _, node := range w.nodes {
		if w.chance(80) {
			c.Objects = append(c.Objects, w.gpuPool(node)...)
		}
		if w.chance(25) {
			c.Objects = append(c.Objects, w.dividedPool(node)...)
		}
		if w.chance(25) {
			c.Objects = append(c.Objects, w.sharedPool(node))
		}
	}
	c.Objects = append(c.Objects, w.networkPools()...)
	w.Shuffle(len(c.Objects), func(i, j int) { c.Objects[i], c.Objects[j] = c.Objects[j], c.Objects[i] })
}

func (w *world) deviceClasses() []object {
	class := func(name string, spec object, selectors ...string) object {
		if len(selectors) > 0 {
			spec["selectors"] = cel(selectors...)
		}
		return object{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": object{"name": name, "uid": "uid-class-" + name}, "spec": spec}
	}
	config := []any{object{"opaque": object{"driver": gpuDriver, "parameters": object{"mode": "exclusive"}}}}
	gpu := object{}
	if w.chance(40) {
		gpu["config"] = config
	}
	w.devices.mapped = []string{"deviceclass.resource.kubernetes.io/gpu", "deviceclass.resource.kubernetes.io/nic"}
	if w.chance(70) {
		gpu["extendedResourceName"] = classed
		w.devices.mapped = append(w.devices.mapped, classed, classed, classed)
	}
	big := object{}
	if w.chance(15) {
		// Some nodes have a device plugin for it.
		big["extendedResourceName"] = extendedResources[0]
		w.devices.mapped = append(w.devices.mapped, extendedResources[0])
	}
	classes := []object{
		class("gpu", gpu, fmt.Sprintf(`device.driver == %q`, gpuDriver)),
		class("big", big, fmt.Sprintf(`device.driver == %q`, gpuDriver),
			fmt.Sprintf(`device.capacity[%q].memory.compareTo(quantity("40Gi")) >= 0`, gpuDriver)),
		class("nic", object{}, fmt.Sprintf(`device.driver == %q`, nicDriver)),
		class("shared", object{}, fmt.Sprintf(`device.driver == %q && device.allowMultipleAllocations == true`, sharedDriver)),
		class("divided", object{}, fmt.Sprintf(`device.driver == %q`, dividedDriver)),
		class("any", object{}),
	}
	if w.devices.broken {
		// Some devices lack the attribute, and selecting by a missing attribute is an error.
		classes = append(classes, class("careless", object{}, fmt.Sprintf(`device.attributes[%q].rare == "x"`, gpuDriver)))
	}
	return classes
}

func cel(expressions ...string) []any {
	var selectors []any
	for _, expression := range expressions {
		selectors = append(selectors, object{"cel": object{"expression": expression}})
	}
	return selectors
}

func (w *world) slice(name, driver, pool string, generation, count int, spec object) object {
	spec["driver"] = driver
	spec["pool"] = object{"name": pool, "generation": generation, "resourceSliceCount": count}
	return object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": object{"name": name, "uid": "uid-slice-" + name}, "spec": spec}
}

func (w *world) gpu(name string) object {
	attributes := object{
		"model": object{"string": pick(w.random, "a100", "h100", "t4")}, "index": object{"int": w.IntN(8)},
		"driverVersion": object{"version": pick(w.random, "1.0.0", "1.2.3", "2.0.0")}, "healthy": object{"bool": w.chance(85)},
		"example.com/numa": object{"int": w.IntN(2)},
	}
	if w.chance(30) {
		attributes["rare"] = object{"string": "x"}
	}
	device := object{"name": name, "attributes": attributes,
		"capacity": object{"memory": object{"value": pick(w.random, "16Gi", "40Gi", "80Gi")}}}
	if w.chance(18) {
		taint := object{"key": pick(w.random, "example.com/fault", "example.com/reserved"), "effect": pick(w.random, "NoSchedule", "NoSchedule", "NoExecute"),
			"timeAdded": "2026-01-02T03:04:05Z"}
		if w.chance(50) {
			taint["value"] = "yes"
		}
		device["taints"] = []any{taint}
	}
	return device
}

// gpuPool has one slice or two; some pools are incomplete, partly obsolete, or invalid.
func (w *world) gpuPool(node string) []object {
	generation, slices := w.between(1, 3), pick(w.random, 1, 1, 2)
	count := slices
	incomplete, invalid := w.chance(6), w.chance(4)
	if incomplete {
		count++
	}
	var list []object
	for i := range slices {
		var devices []any
		for j := range w.between(1, 4) {
			name := fmt.Sprintf("gpu-%d-%d", i, j)
			devices = append(devices, w.gpu(name))
			if !incomplete && !invalid {
				w.devices.free = append(w.devices.free, deviceRef{gpuDriver, node, name, node})
			}
		}
		if invalid && i == 0 {
			devices = append(devices, w.gpu("gpu-0-0"))
		}
		list = append(list, w.slice(fmt.Sprintf("gpus-of-%s-%d", node, i), gpuDriver, node, generation, count, object{"nodeName": node, "devices": devices}))
	}
	if w.chance(10) {
		list = append(list, w.slice("gpus-of-"+node+"-old", gpuDriver, node, generation-1, 1,
			object{"nodeName": node, "devices": []any{w.gpu("gpu-old")}}))
	}
	return list
}

// dividedPool has devices that are parts of one: their total consumption is limited.
func (w *world) dividedPool(node string) []object {
	counters := object{"name": "whole", "counters": object{"memory": object{"value": "80Gi"}, "slots": object{"value": "7"}}}
	part := func(name, memory string, slots int) object {
		counter := "slots"
		if w.devices.broken && w.chance(15) {
			counter = "no-such-counter"
		}
		return object{"name": name, "attributes": object{"profile": object{"string": memory}},
			"consumesCounters": []any{object{"counterSet": "whole",
				"counters": object{"memory": object{"value": memory}, counter: object{"value": fmt.Sprint(slots)}}}}}
	}
	devices := []any{part("full", "80Gi", 7), part("half-0", "40Gi", 3), part("half-1", "40Gi", 3), part("small-0", "10Gi", 1), part("small-1", "10Gi", 1)}
	if w.chance(30) {
		w.Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
	}
	return []object{
		w.slice("parts-of-"+node, dividedDriver, node, 1, 2, object{"nodeName": node, "devices": devices}),
		w.slice("counters-of-"+node, dividedDriver, node, 1, 2, object{"nodeName": node, "sharedCounters": []any{counters}}),
	}
}

// sharedPool has devices that several claims can share, each with a part of the capacity.
func (w *world) sharedPool(node string) object {
	var devices []any
	for i := range w.between(1, 2) {
		capacity := object{"value": pick(w.random, "10G", "40G")}
		switch {
		case w.chance(35):
			capacity["requestPolicy"] = object{"default": "1G", "validRange": object{"min": "1G", "max": "8G", "step": "1G"}}
		case w.chance(50):
			capacity["requestPolicy"] = object{"default": "2G", "validValues": []any{"2G", "4G", "10G"}}
		}
		devices = append(devices, object{"name": fmt.Sprintf("link-%d", i), "allowMultipleAllocations": true,
			"attributes": object{"speed": object{"int": 10 * w.between(1, 4)}}, "capacity": object{"bandwidth": capacity}})
	}
	return w.slice("links-of-"+node, sharedDriver, node, 1, 1, object{"nodeName": node, "devices": devices})
}

// networkPools have devices that several nodes can use: all nodes, those of a zone, or individual per device.
func (w *world) networkPools() []object {
	zone := func() object {
		return object{"nodeSelectorTerms": []any{object{"matchExpressions": []any{
			object{"key": zoneLabel, "operator": "In", "values": []any{pick(w.random, w.zones...)}}}}}}
	}
	nic := func(name string, more object) object {
		more["name"] = name
		more["attributes"] = object{"rdma": object{"bool": w.chance(60)}, "example.com/numa": object{"int": w.IntN(2)}}
		return more
	}
	var list []object
	if w.chance(40) {
		list = append(list, w.slice("nics-everywhere", nicDriver, "everywhere", 1, 1,
			object{"allNodes": true, "devices": []any{nic("nic-0", object{}), nic("nic-1", object{})}}))
		w.devices.free = append(w.devices.free, deviceRef{nicDriver, "everywhere", "nic-1", ""})
	}
	if w.chance(50) {
		list = append(list, w.slice("nics-of-zone", nicDriver, "zone", 1, 1,
			object{"nodeSelector": zone(), "devices": []any{nic("nic-0", object{}), nic("nic-1", object{}), nic("nic-2", object{})}}))
	}
	if w.chance(50) && len(w.nodes) > 0 {
		list = append(list, w.slice("nics-each", nicDriver, "each", 1, 1, object{"perDeviceNodeSelection": true, "devices": []any{
			nic("nic-0", object{"nodeName": w.nodeName()}), nic("nic-1", object{"nodeSelector": zone()}), nic("nic-2", object{"allNodes": true}),
			nic("nic-3", object{"nodeName": w.nodeName()})}}))
	}
	return list
}
