package generate

// addSelection adds a node selector, node affinity, or both.
func (w *world) addSelection(spec object) {
	if w.chance(25) {
		selector := object{}
		for _, key := range some(w.random, w.between(1, 2), []string{zoneLabel, "disk", "tier", "kubernetes.io/os", "missing"}) {
			selector[key] = w.value(key)
		}
		spec["nodeSelector"] = selector
	}
	affinity := object{}
	if w.chance(35) {
		affinity["requiredDuringSchedulingIgnoredDuringExecution"] = object{"nodeSelectorTerms": w.terms()}
	}
	if w.chance(50) {
		affinity["preferredDuringSchedulingIgnoredDuringExecution"] = w.preferred()
	}
	if len(affinity) > 0 {
		spec["affinity"] = object{"nodeAffinity": affinity}
	}
}

func (w *world) value(key string) string {
	switch key {
	case zoneLabel:
		return pick(w.random, append([]string{allZones[0]}, w.zones...)...)
	case "disk":
		return pick(w.random, "ssd", "ssd", "hdd", "")
	case "tier":
		return pick(w.random, tierValues...)
	case "kubernetes.io/os":
		return "linux"
	case "example.com/size":
		return pick(w.random, sizeValues...)
	}
	return "x"
}

func (w *world) terms() []any {
	if w.chance(25) {
		return w.nameTerms()
	}
	var terms []any
	for range pick(w.random, 1, 1, 2, 3) {
		terms = append(terms, w.term())
	}
	return terms
}

// term returns a node selector term; rarely an empty one, which matches nothing.
func (w *world) term() object {
	term := object{}
	if w.chance(3) {
		return term
	}
	var expressions []any
	for range pick(w.random, 1, 1, 2) {
		expressions = append(expressions, w.expression())
	}
	term["matchExpressions"] = expressions
	if w.chance(5) {
		term["matchFields"] = []any{object{"key": "metadata.name", "operator": "NotIn", "values": []any{w.nodeName()}}}
	}
	return term
}

func (w *world) expression() object {
	key := pick(w.random, zoneLabel, "disk", "tier", "example.com/size", "example.com/size", "kubernetes.io/os", "missing")
	operator := pick(w.random, "In", "In", "NotIn", "Exists", "DoesNotExist")
	if key == "example.com/size" && w.chance(70) {
		operator = pick(w.random, "Gt", "Lt")
	}
	expression := object{"key": key, "operator": operator}
	switch operator {
	case "In", "NotIn":
		values := []any{}
		for range w.between(1, 3) {
			values = append(values, w.value(key))
		}
		expression["values"] = values
	case "Gt", "Lt":
		// The API server does not check that the operand is a number.
		operand := pick(w.random, "0", "3", "4", "15", "63", "007", "9223372036854775807")
		if w.chance(1.5) {
			// The last one is also an invalid label value; the API server lets old objects keep it.
			operand = pick(w.random, "abc", "", "4.5", "9223372036854775808", "-5")
		}
		expression["values"] = []any{operand}
	}
	return expression
}

// nodeName returns the name of a node, sometimes an unknown name.
func (w *world) nodeName() string {
	if len(w.nodes) == 0 || w.chance(10) {
		return "no-such-node"
	}
	return pick(w.random, w.nodes...)
}

func named(name string) object {
	return object{"key": "metadata.name", "operator": "In", "values": []any{name}}
}

// nameTerms returns the DaemonSet controller's terms, and less usual variants.
func (w *world) nameTerms() []any {
	first := w.nodeName()
	switch {
	case w.chance(40):
		return []any{object{"matchFields": []any{named(first)}}}
	case w.chance(25):
		return []any{object{"matchFields": []any{named(first)}, "matchExpressions": []any{w.expression()}}}
	case w.chance(25):
		// Two names at once: no node can match.
		return []any{object{"matchFields": []any{named(first), named(first + "-other")}}}
	case w.chance(25):
		return []any{object{"matchFields": []any{named(first)}}, w.term()}
	case w.unscored:
		// With two names kube-scheduler would examine the nodes in random order and stop at the first that fits.
		return []any{object{"matchFields": []any{named(first)}}}
	}
	return []any{object{"matchFields": []any{named(first)}}, object{"matchFields": []any{named(w.nodeName())}}}
}

func (w *world) preferred() []any {
	var terms []any
	for range w.between(1, 3) {
		preference := w.term()
		terms = append(terms, object{"weight": pick(w.random, 1, 5, 10, 50, 100), "preference": preference})
	}
	return terms
}
