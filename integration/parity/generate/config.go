package generate

import (
	"fmt"
	"slices"
)

// defaults are kube-scheduler's default plugins, in its order.
var defaults = []string{"SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
	"NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread",
	"InterPodAffinity", "DynamicResources", "DefaultPreemption", "NodeResourcesBalancedAllocation", "ImageLocality",
	"DefaultBinder", "NodeDeclaredFeatures"}

// served returns the default plugins that the case's features leave enabled.
func (w *world) served() []string {
	disabled := w.features.disabled()
	return slices.DeleteFunc(slices.Clone(defaults), func(name string) bool { return slices.Contains(disabled, name) })
}

// scoring returns those of served that score.
func (w *world) scoring() []string {
	list := []string{"TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"}
	if w.features&Spread != 0 {
		list = append(list, "PodTopologySpread")
	}
	if w.features&Affinity != 0 {
		list = append(list, "InterPodAffinity")
	}
	if w.features&(Untouched|Claims) != 0 {
		list = append(list, "DynamicResources")
	}
	return list
}

// profile returns the default profile without the plugins of features that the case lacks.
func (w *world) profile(name string) object {
	profile := object{"schedulerName": name}
	if disabled := w.features.disabled(); len(disabled) > 0 {
		profile["plugins"] = object{"multiPoint": object{"disabled": plugins(disabled...)}}
	}
	return profile
}

// config returns that profile in one seed of three, and a variant otherwise, with the names of its profiles.
func (w *world) config(seed uint64) (object, []string) {
	config := object{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
	if w.large && w.chance(70) || w.chance(10) {
		config["percentageOfNodesToScore"] = pick(w.random, 0, 1, 5, 40, 70, 100)
	}
	names := []string{"default-scheduler"}
	profile := w.profile("default-scheduler")
	if seed%3 != 0 {
		w.vary(profile)
	} else {
		w.addPreemptionArgs(profile, nil)
	}
	profiles := []any{profile}
	if w.chance(15) {
		names = append(names, "second-scheduler")
		second := w.profile("second-scheduler")
		w.vary(second)
		profiles = append(profiles, second)
	}
	if w.large && w.chance(40) {
		profile["percentageOfNodesToScore"] = pick(w.random, 0, 3, 45, 60, 100)
	}
	config["profiles"] = profiles
	return config, names
}

func plugins(names ...string) []any {
	list := []any{}
	for _, name := range names {
		list = append(list, object{"name": name})
	}
	return list
}

func (w *world) vary(profile object) {
	w.varyPlugins(profile)
	var args []any
	if w.chance(60) {
		args = append(args, object{"name": "NodeResourcesFit", "args": w.fitArgs()})
	}
	if w.chance(30) {
		args = append(args, object{"name": "NodeAffinity", "args": object{"addedAffinity": w.addedAffinity()}})
	}
	if w.chance(30) {
		resources := []any{}
		names := w.scored([]string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi"})
		for _, name := range some(w.random, w.between(1, 4), names) {
			resources = append(resources, object{"name": name, "weight": 1})
		}
		args = append(args, object{"name": "NodeResourcesBalancedAllocation", "args": object{"resources": resources}})
	}
	args = w.addFeatureArgs(args)
	for _, entry := range args {
		// A type in the arguments is optional, but must be correct.
		if entry := entry.(object); w.chance(50) {
			entry["args"].(object)["apiVersion"] = "kubescheduler.config.k8s.io/v1"
			entry["args"].(object)["kind"] = fmt.Sprint(entry["name"], "Args")
		}
	}
	w.addPreemptionArgs(profile, args)
}

// addFeatureArgs adds arguments for the plugins of features.
func (w *world) addFeatureArgs(args []any) []any {
	if w.when(Spread, 60, 30) {
		args = append(args, object{"name": "PodTopologySpread", "args": w.spreadArgs()})
	}
	if w.when(Affinity, 60, 30) {
		args = append(args, object{"name": "InterPodAffinity", "args": w.interPodAffinityArgs()})
	}
	return args
}

// addPreemptionArgs completes the profile's arguments. In a large cluster kube-scheduler would examine only a random
// part of the candidates by default.
func (w *world) addPreemptionArgs(profile object, args []any) {
	if w.features&Preemption != 0 && w.large {
		args = append(args, object{"name": "DefaultPreemption", "args": object{"minCandidateNodesPercentage": 100}})
	} else if w.when(Preemption, 10, 5) {
		args = append(args, object{"name": "DefaultPreemption", "args": object{"minCandidateNodesPercentage": pick(w.random, 100, 50), "minCandidateNodesAbsolute": pick(w.random, 100, 1000)}})
	}
	if len(args) > 0 {
		profile["pluginConfig"] = args
	}
}

// varyPlugins changes weights, the order of plugins, or their extension points.
func (w *world) varyPlugins(profile object) {
	points, _ := profile["plugins"].(object)
	if points == nil {
		points = object{}
		defer func() {
			if len(points) > 0 {
				profile["plugins"] = points
			}
		}()
	}
	scoring := w.scoring()
	weight := func(name string) object { return object{"name": name, "weight": pick(w.random, 1, 2, 5, 10, 100)} }
	switch w.IntN(8) {
	case 0:
		// Weights at the score extension point, which overrides multiPoint.
		var enabled []any
		for _, name := range some(w.random, w.between(1, 3), scoring) {
			enabled = append(enabled, weight(name))
		}
		points["score"] = object{"enabled": enabled}
	case 1:
		// Weights, by multiPoint.
		var enabled []any
		for _, name := range some(w.random, w.between(1, 3), scoring) {
			enabled = append(enabled, weight(name))
		}
		points["multiPoint"] = object{"enabled": enabled, "disabled": plugins(w.features.disabled()...)}
	case 2:
		points["score"] = object{"disabled": plugins(some(w.random, w.between(1, 4), scoring)...)}
	case 3:
		disabled := some(w.random, w.between(1, 2), w.filtering())
		if w.features&Volumes != 0 && w.chance(90) {
			// Only VolumeZone keeps VolumeBinding from a claim whose volume is gone.
			disabled = append(disabled, "VolumeZone")
			points["preFilter"] = object{"disabled": plugins("VolumeZone")}
		}
		points["filter"] = object{"disabled": plugins(disabled...)}
	case 4:
		// All plugins by name, in another order.
		var enabled []any
		for _, name := range w.shuffled() {
			entry := object{"name": name}
			if w.chance(20) {
				entry["weight"] = w.between(0, 7)
			}
			enabled = append(enabled, entry)
		}
		points["multiPoint"] = object{"disabled": plugins("*"), "enabled": enabled}
	case 5:
		if w.chance(50) {
			points["score"] = object{"disabled": plugins("*")}
			w.unscored = true
		} else {
			points["score"] = object{"disabled": plugins("*"), "enabled": []any{weight(pick(w.random, scoring...)), object{"name": "ImageLocality"}}}
			if enabled := points["score"].(object)["enabled"].([]any); enabled[0].(object)["name"] == "ImageLocality" {
				points["score"].(object)["enabled"] = enabled[:1]
			}
		}
	}
}

// filtering returns plugins whose Filter a profile may omit. (Volume plugins reserve what Filter found.)
func (w *world) filtering() []string {
	list := []string{"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts"}
	for feature := Spread; feature < end; feature <<= 1 {
		if w.features&feature != 0 && feature != Preemption && feature != Volumes {
			list = append(list, pluginsOf[feature]...)
		}
	}
	return list
}

// shuffled returns the enabled plugins in another order.
func (w *world) shuffled() []string {
	list := w.served()
	return some(w.random, len(list), list)
}

func (w *world) fitArgs() object {
	args := object{}
	if w.chance(25) {
		args["ignoredResources"] = []any{"example.com/licence"}
	}
	if w.chance(20) {
		args["ignoredResourceGroups"] = []any{pick(w.random, "example.com", "nvidia.com")}
	}
	strategy := object{"type": pick(w.random, "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")}
	if w.chance(70) || strategy["type"] == "RequestedToCapacityRatio" {
		resources := []any{}
		names := w.scored([]string{"cpu", "memory", "cpu", "memory", "hugepages-2Mi"})
		seen := map[string]bool{}
		for _, name := range some(w.random, w.between(1, 4), names) {
			if !seen[name] {
				resources = append(resources, object{"name": name, "weight": w.between(1, 10)})
			}
			seen[name] = true
		}
		strategy["resources"] = resources
	}
	if strategy["type"] == "RequestedToCapacityRatio" {
		strategy["requestedToCapacityRatio"] = object{"shape": w.shape()}
	}
	if w.chance(85) || len(args) == 0 {
		args["scoringStrategy"] = strategy
	}
	return args
}

// scored adds extended resources to those by which nodes are scored, except one of a device class: NodeResourcesFit
// would count devices, and kube-scheduler's NodeResourcesBalancedAllocation crashes, because it has no cache for the
// class's expressions.
func (w *world) scored(names []string) []string {
	return append(names, slices.DeleteFunc(slices.Clone(extendedResources), func(name string) bool {
		return slices.Contains(w.devices.mapped, name)
	})...)
}

func (w *world) shape() []any {
	return pick(w.random,
		[]any{object{"utilization": 0, "score": 0}, object{"utilization": 100, "score": 10}},
		[]any{object{"utilization": 0, "score": 10}, object{"utilization": 100, "score": 0}},
		[]any{object{"utilization": 0, "score": 0}, object{"utilization": 33, "score": 9}, object{"utilization": 71, "score": 2}, object{"utilization": 100, "score": 7}},
		[]any{object{"utilization": 50, "score": 5}},
		[]any{object{"utilization": 20, "score": 8}, object{"utilization": 90, "score": 1}})
}

func (w *world) addedAffinity() object {
	affinity := object{}
	if w.chance(50) {
		affinity["requiredDuringSchedulingIgnoredDuringExecution"] = object{"nodeSelectorTerms": []any{
			object{"matchExpressions": []any{object{"key": "kubernetes.io/os", "operator": "In", "values": []any{"linux"}}}},
			object{"matchExpressions": []any{object{"key": "disk", "operator": "Exists"}}},
		}}
	}
	if w.chance(70) || len(affinity) == 0 {
		affinity["preferredDuringSchedulingIgnoredDuringExecution"] = []any{
			object{"weight": w.between(1, 100), "preference": object{"matchExpressions": []any{
				object{"key": zoneLabel, "operator": "In", "values": []any{allZones[0], allZones[2]}}}}},
			object{"weight": w.between(1, 100), "preference": object{"matchExpressions": []any{
				object{"key": "example.com/size", "operator": "Gt", "values": []any{"4"}}}}},
		}
	}
	return affinity
}
