package generate

// Features that nodes declare in kube-scheduler's version, a feature that pods cannot need, and an unknown one.
var declarable = []string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits", "SomethingNew", "UserNamespacesHostNetworkSupport"}

func (w *world) declaredFeatures() []any {
	list := []any{}
	for _, name := range declarable {
		if w.chance(60) {
			list = append(list, name)
		}
	}
	return list
}

// addNeededFeatures makes the pod require a declared feature.
func (w *world) addNeededFeatures(pod object) {
	spec := pod["spec"].(object)
	if w.chance(55) {
		spec["hostUsers"] = w.chance(15)
		if w.chance(80) {
			spec["hostNetwork"] = true
		}
	}
	if w.chance(55) {
		kind := "containers"
		if _, ok := spec["initContainers"]; ok && w.chance(50) {
			kind = "initContainers"
		}
		containers := spec[kind].([]any)
		container := containers[w.IntN(len(containers))].(object)
		rule := object{"action": pick(w.random, "RestartAllContainers", "RestartAllContainers", "Restart"),
			"exitCodes": object{"operator": "In", "values": []any{42}}}
		container["restartPolicyRules"] = []any{rule}
		if container["restartPolicy"] == nil {
			container["restartPolicy"] = "Never"
		}
	}
}
