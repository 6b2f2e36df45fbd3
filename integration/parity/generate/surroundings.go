package generate

import "fmt"

var (
	appNames       = []string{"web", "db", "cache", "batch"}
	namespaceNames = []string{"default", "team-a", "team-b"}
	// controllerKinds are the kinds whose selectors kube-scheduler reads, and an unknown one.
	controllerKinds = map[string]string{"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1", "Job": "batch/v1"}
)

// addSurroundings adds objects that are neither nodes nor pods and do not belong to a single pod.
func (w *world) addSurroundings(c *Case) {
	if w.features == None {
		return
	}
	for _, name := range append([]string{"kube-system"}, namespaceNames...) {
		// Some namespaces do not exist as objects; namespace selectors do not find them.
		if w.chance(85) {
			labels := object{"kubernetes.io/metadata.name": name}
			if w.chance(70) {
				labels["env"] = pick(w.random, "prod", "test")
			}
			if w.chance(50) {
				labels["team"] = pick(w.random, "a", "b", "")
			}
			c.Objects = append(c.Objects, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "labels": labels}})
		}
	}
	if w.features&Spread != 0 {
		w.addControllers(c)
	}
	if w.features&Preemption != 0 {
		w.addBudgets(c)
	}
	if w.features&Volumes != 0 {
		w.addStorage(c)
	}
	if w.features&Claims != 0 {
		w.addDevices(c)
	}
}

// addControllers adds services and controllers, whose selectors define default spreading.
func (w *world) addControllers(c *Case) {
	for _, namespace := range namespaceNames {
		for _, app := range appNames {
			if w.chance(45) {
				c.Objects = append(c.Objects, w.service(namespace, app))
			}
			if !w.chance(50) {
				continue
			}
			kind := pick(w.random, "ReplicaSet", "StatefulSet", "ReplicationController")
			name := controllerName(kind, app)
			metadata := object{"name": name, "namespace": namespace, "uid": "uid-" + namespace + "-" + name}
			spec := object{"replicas": w.between(1, 9)}
			labels := object{"app": app}
			if w.chance(30) {
				labels["version"] = "v1"
			}
			template := object{"metadata": object{"labels": labels}, "spec": object{"containers": []any{object{"name": "c", "image": "busybox"}}}}
			spec["template"] = template
			if kind == "ReplicationController" {
				spec["selector"] = labels
			} else {
				spec["selector"] = w.selectorOf(labels)
			}
			if kind == "StatefulSet" {
				spec["serviceName"] = app
			}
			c.Objects = append(c.Objects, object{"apiVersion": controllerKinds[kind], "kind": kind, "metadata": metadata, "spec": spec})
		}
	}
}

func controllerName(kind, app string) string {
	return fmt.Sprintf("%s-%s", app, map[string]string{"ReplicaSet": "rs", "StatefulSet": "sts", "ReplicationController": "rc", "Job": "job"}[kind])
}

func (w *world) service(namespace, app string) object {
	spec := object{"ports": []any{object{"port": 80}}}
	switch {
	case w.chance(75):
		spec["selector"] = object{"app": app}
	case w.chance(50):
		spec["selector"] = object{"app": app, "version": pick(w.random, "v1", "v2")}
	case w.chance(50):
		spec["selector"] = object{"track": "canary"}
	case w.chance(50):
		// A service without a selector selects nothing, like one with an empty selector.
		spec["selector"] = object{}
	}
	return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": app + "-" + fmt.Sprint(w.IntN(1000)), "namespace": namespace}, "spec": spec}
}

// selectorOf returns a label selector that matches these labels, in one of its notations.
func (w *world) selectorOf(labels object) object {
	selector := object{}
	var expressions []any
	for _, key := range sortedKeys(labels) {
		if w.chance(60) {
			if selector["matchLabels"] == nil {
				selector["matchLabels"] = object{}
			}
			selector["matchLabels"].(object)[key] = labels[key]
			continue
		}
		expression := object{"key": key, "operator": pick(w.random, "In", "Exists")}
		if expression["operator"] == "In" {
			expression["values"] = []any{labels[key], "other"}
		}
		expressions = append(expressions, expression)
	}
	if len(expressions) > 0 {
		selector["matchExpressions"] = expressions
	}
	return selector
}

// addIdentity adds labels to a pod, and sometimes an owner.
func (w *world) addIdentity(pod object) {
	metadata := pod["metadata"].(object)
	app := pick(w.random, appNames...)
	labels := object{}
	if w.chance(92) {
		labels["app"] = app
	}
	if w.chance(55) {
		labels["version"] = pick(w.random, "v1", "v2")
	}
	if w.chance(25) {
		labels["track"] = pick(w.random, "stable", "canary", "")
	}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if w.features&Spread != 0 && w.chance(50) {
		kind := pick(w.random, "ReplicaSet", "ReplicaSet", "StatefulSet", "ReplicationController", "Job")
		owner := object{"apiVersion": controllerKinds[kind], "kind": kind, "name": controllerName(kind, app), "uid": "uid-owner-" + app, "controller": true}
		if w.chance(10) {
			owner["controller"] = false
		}
		metadata["ownerReferences"] = []any{owner}
	}
}

// podSelector selects pods: usually those of an app, mostly the pod's own.
func (w *world) podSelector(pod object) object {
	own, _ := pod["metadata"].(object)["labels"].(object)
	switch {
	case len(own) > 0 && w.chance(55):
		labels := object{}
		for _, key := range some(w.random, w.between(1, len(own)), sortedKeys(own)) {
			labels[key] = own[key]
		}
		return w.selectorOf(labels)
	case w.chance(55):
		return w.selectorOf(object{"app": pick(w.random, appNames...)})
	case w.chance(10):
		return object{}
	}
	key := pick(w.random, "app", "version", "track", "missing")
	expression := object{"key": key, "operator": pick(w.random, "In", "NotIn", "Exists", "DoesNotExist")}
	if operator := expression["operator"]; operator == "In" || operator == "NotIn" {
		values := map[string][]string{"app": appNames, "version": {"v1", "v2"}, "track": {"stable", "canary", ""}, "missing": {"x"}}[key]
		list := []any{}
		for _, value := range some(w.random, w.between(1, 2), values) {
			list = append(list, value)
		}
		expression["values"] = list
	}
	return object{"matchExpressions": []any{expression}}
}

// require adds to a selector what an API server adds for matchLabelKeys and mismatchLabelKeys.
func require(selector object, key, operator string, value any) {
	expressions, _ := selector["matchExpressions"].([]any)
	selector["matchExpressions"] = append(append([]any{}, expressions...), object{"key": key, "operator": operator, "values": []any{value}})
}
