package generate

import (
	"maps"
	"slices"
)

func sortedKeys(m object) []string { return slices.Sorted(maps.Keys(m)) }

// topologyKey returns a node label, sometimes an unused one.
func (w *world) topologyKey() string {
	return pick(w.random, zoneLabel, zoneLabel, zoneLabel, hostnameLabel, hostnameLabel, "rack", "rack", "disk", regionLabel, "missing")
}

// addSpread adds topology spread constraints. Key and action together are unique, as an API server requires.
func (w *world) addSpread(pod object) {
	seen := map[string]bool{}
	var constraints []any
	for range pick(w.random, 1, 1, 2, 3) {
		key, action := w.topologyKey(), pick(w.random, "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")
		if key == "missing" && action == "DoNotSchedule" && w.chance(70) {
			key = zoneLabel
		}
		if seen[key+action] {
			continue
		}
		seen[key+action] = true
		constraints = append(constraints, w.spreadConstraint(pod, key, action))
	}
	pod["spec"].(object)["topologySpreadConstraints"] = constraints
}

func (w *world) spreadConstraint(pod object, key, action string) object {
	constraint := object{"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": pick(w.random, 1, 1, 1, 2, 3, 5)}
	if w.chance(92) {
		constraint["labelSelector"] = w.podSelector(pod)
	}
	if action == "DoNotSchedule" && w.chance(30) {
		constraint["minDomains"] = w.between(1, 5)
	}
	if w.chance(30) {
		constraint["nodeAffinityPolicy"] = pick(w.random, "Honor", "Ignore")
	}
	if w.chance(30) {
		constraint["nodeTaintsPolicy"] = pick(w.random, "Honor", "Ignore")
	}
	if selector, ok := constraint["labelSelector"].(object); ok && w.chance(20) {
		// Keys must not be in the selector.
		matched, _ := selector["matchLabels"].(object)
		for _, key := range some(w.random, w.between(1, 2), []string{"version", "track", "missing"}) {
			if _, twice := matched[key]; twice || len(sortedKeys(selector)) > 1 || selector["matchExpressions"] != nil {
				continue
			}
			keys, _ := constraint["matchLabelKeys"].([]any)
			constraint["matchLabelKeys"] = append(keys, key)
		}
	}
	return constraint
}

func (w *world) spreadArgs() object {
	if w.chance(25) {
		return object{"defaultingType": "System"}
	}
	args := object{"defaultingType": "List"}
	if w.chance(25) {
		// No default spreading.
		return args
	}
	var constraints []any
	for _, key := range some(w.random, w.between(1, 2), []string{zoneLabel, hostnameLabel, "rack", "missing"}) {
		action := pick(w.random, "ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule")
		if key == "missing" {
			action = "ScheduleAnyway"
		}
		constraints = append(constraints, object{"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": w.between(1, 5)})
	}
	args["defaultConstraints"] = constraints
	return args
}
