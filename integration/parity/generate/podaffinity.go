package generate

// addPodAffinity adds rules about neighbours, of one kind or of several.
func (w *world) addPodAffinity(pod object, running bool) {
	spec := pod["spec"].(object)
	affinity, _ := spec["affinity"].(object)
	if affinity == nil {
		affinity = object{}
	}
	before := len(affinity)
	if w.chance(50) {
		affinity["podAffinity"] = w.podAffinityRules(pod, 40)
	}
	if w.chance(60) || len(affinity) == before {
		required := 60.0
		if running {
			required = 45
		}
		affinity["podAntiAffinity"] = w.podAffinityRules(pod, required)
	}
	spec["affinity"] = affinity
}

func (w *world) podAffinityRules(pod object, required float64) object {
	rules := object{}
	if w.chance(required) {
		var terms []any
		for range pick(w.random, 1, 1, 1, 2) {
			terms = append(terms, w.podAffinityTerm(pod))
		}
		rules["requiredDuringSchedulingIgnoredDuringExecution"] = terms
	}
	if w.chance(60) || len(rules) == 0 {
		var terms []any
		for range w.between(1, 3) {
			terms = append(terms, object{"weight": pick(w.random, 1, 10, 50, 100), "podAffinityTerm": w.podAffinityTerm(pod)})
		}
		rules["preferredDuringSchedulingIgnoredDuringExecution"] = terms
	}
	return rules
}

// podAffinityTerm selects pods in a domain, often pods like the pod itself.
func (w *world) podAffinityTerm(pod object) object {
	term := object{"topologyKey": w.topologyKey()}
	if term["topologyKey"] == "missing" && w.chance(60) {
		term["topologyKey"] = hostnameLabel
	}
	selector := w.podSelector(pod)
	if w.chance(95) {
		term["labelSelector"] = selector
	}
	if w.chance(20) {
		namespaces := []any{}
		for _, name := range some(w.random, w.between(1, 2), append([]string{"no-such-namespace"}, namespaceNames...)) {
			namespaces = append(namespaces, name)
		}
		term["namespaces"] = namespaces
	}
	if w.chance(25) {
		term["namespaceSelector"] = w.namespaceSelector()
	}
	if term["labelSelector"] != nil && w.chance(15) {
		w.addLabelKeys(pod, term, selector)
	}
	return term
}

func (w *world) namespaceSelector() object {
	switch {
	case w.chance(25):
		return object{}
	case w.chance(50):
		return object{"matchLabels": object{"env": pick(w.random, "prod", "test")}}
	}
	return object{"matchExpressions": []any{pick(w.random,
		object{"key": "team", "operator": "Exists"},
		object{"key": "team", "operator": "NotIn", "values": []any{"a"}},
		object{"key": "kubernetes.io/metadata.name", "operator": "In", "values": []any{"team-a", "default"}})}}
}

// addLabelKeys adds matchLabelKeys or mismatchLabelKeys. kube-scheduler does not read them: an API server merges
// their meaning into the selector, and may have done so before the manifest was written.
func (w *world) addLabelKeys(pod, term, selector object) {
	labels, _ := pod["metadata"].(object)["labels"].(object)
	key := pick(w.random, "version", "track", "missing")
	list, operator := "matchLabelKeys", "In"
	if w.chance(50) {
		list, operator = "mismatchLabelKeys", "NotIn"
	}
	term[list] = []any{key}
	if value, ok := labels[key]; ok && w.chance(50) {
		require(selector, key, operator, value)
	}
}

func (w *world) interPodAffinityArgs() object {
	args := object{}
	if w.chance(70) {
		args["hardPodAffinityWeight"] = pick(w.random, 0, 1, 10, 100)
	}
	if w.chance(40) {
		args["ignorePreferredTermsOfExistingPods"] = w.chance(70)
	}
	return args
}
