package deploy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// selectors returns the selectors of pods by object, and podLabels the labels of pods.
func selectors(t testing.TB, all []*unstructured.Unstructured) (found map[string]labels.Selector, podLabels []labels.Set) {
	t.Helper()
	found = map[string]labels.Selector{}
	for _, object := range all {
		for _, field := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "podSelector", "matchLabels"}, {"spec", "selector"}} {
			if set, has, err := unstructured.NestedStringMap(object.Object, field...); has && err == nil {
				found[key(object)] = labels.SelectorFromSet(set)
				break
			}
		}
		if set, has, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels"); has {
			podLabels = append(podLabels, set)
		}
	}
	return found, podLabels
}

// complete checks that the objects that a release names are its own, or Kubernetes'.
func complete(t *testing.T, all []*unstructured.Unstructured, others ...string) {
	t.Helper()
	has := map[string]bool{"ClusterRole system:auth-delegator": true, "ConfigMap kube-root-ca.crt": true}
	for _, other := range others {
		has[other] = true
	}
	for _, object := range all {
		has[object.GetKind()+" "+object.GetName()] = true
		if object.GetKind() == "Certificate" {
			secret, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
			has["Secret "+secret] = true
		}
	}
	need := func(by *unstructured.Unstructured, kind string, names ...string) {
		for _, name := range names {
			if name != "" && !has[kind+" "+name] {
				t.Errorf("%s names %s %s, which is missing", key(by), kind, name)
			}
		}
	}
	for _, object := range all {
		if reference, is, _ := unstructured.NestedStringMap(object.Object, "roleRef"); is {
			need(object, reference["kind"], reference["name"])
		}
		subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
		for _, subject := range subjects {
			need(object, "ServiceAccount", subject.(map[string]any)["name"].(string))
		}
		if object.GetKind() == "FlowSchema" {
			for _, rule := range as[flowcontrolv1.FlowSchema](t, object).Spec.Rules {
				for _, subject := range rule.Subjects {
					need(object, "ServiceAccount", subject.ServiceAccount.Name)
				}
			}
		}
		template := podTemplate(t, object)
		if template == nil {
			continue
		}
		pod := template.Spec
		need(object, "ServiceAccount", pod.ServiceAccountName)
		need(object, "PriorityClass", pod.PriorityClassName)
		for _, volume := range pod.Volumes {
			if volume.ConfigMap != nil {
				need(object, "ConfigMap", volume.ConfigMap.Name)
			}
			if volume.Secret != nil {
				need(object, "Secret", volume.Secret.SecretName)
			}
		}
	}
}

// bothReleases is all that a release may have; without the node probe and the CRDs, which one release in a cluster owns.
const bothReleases = `
mode: mtls
certManager: {enabled: true}
bindingWebhook: {enabled: true}
serviceMonitor: {enabled: true}
hostPodMetrics: {enabled: true, podMonitor: true}
customResources: true
podGroups: true
runOwners: true
nodeTopologies: true
leaderBinds: true
rbac: {extraRules: [{apiGroups: [example.com], resources: [quotas], verbs: [list]}]}
`

// Two releases in one cluster, in two namespaces or in one, share no object, and none selects pods of the other.
func TestTwoReleasesShareNothing(t *testing.T) {
	for name, second := range map[string]struct{ name, namespace string }{
		"namespaces":                  {"outboard", "outboard-canary"},
		"one namespace":               {"canary", namespace},
		"names that look alike":       {"outboard-shim", namespace},
		"another name and namespace":  {"scheduling", "outboard-canary"},
		"a name that is cut":          {"outboard-" + strings.Repeat("a", 44), namespace},
		"a namespace within the name": {"outboard-canary", "outboard-system-canary"},
	} {
		t.Run(name, func(t *testing.T) {
			values := parsed(t, bothReleases)
			production, productionTests := release(t, values, "outboard", namespace)
			values["schedulerName"] = "outboard-canary"
			canary, canaryTests := release(t, values, second.name, second.namespace)
			complete(t, production)
			complete(t, canary)
			production, canary = append(production, productionTests...), append(canary, canaryTests...)
			ours := byKey(t, production)
			if len(ours) < 30 {
				t.Errorf("only %d objects", len(ours))
			}
			for key := range byKey(t, canary) {
				if ours[key] != nil {
					t.Errorf("both have %s", key)
				}
			}
			for _, object := range canary {
				for part := range strings.SplitSeq(object.GetName(), ".") {
					if len(part) > 63 {
						t.Errorf("%s has more than 63 characters", object.GetName())
					}
				}
			}
			scheduler, _ := config(t, canary)
			lease := scheduler["leaderElection"].(map[string]any)
			theirs, _ := config(t, production)
			if other := theirs["leaderElection"].(map[string]any); lease["resourceName"] == other["resourceName"] && lease["resourceNamespace"] == other["resourceNamespace"] {
				t.Errorf("both have the lease %v", lease)
			}
			if profile := scheduler["profiles"].([]any)[0].(map[string]any)["schedulerName"]; profile != "outboard-canary" {
				t.Errorf("the canary's profile is %v", profile)
			}
			if second.namespace != namespace {
				return // Selectors are about pods of their namespace.
			}
			selects, _ := selectors(t, production)
			_, pods := selectors(t, canary)
			if len(selects) < 7 || len(pods) != 2 {
				t.Errorf("%d selectors, %d kinds of pods", len(selects), len(pods))
			}
			for name, selector := range selects {
				for _, pod := range pods {
					if selector.Matches(pod) {
						t.Errorf("%s selects the canary's %v", name, pod)
					}
				}
			}
		})
	}
}

// deploy/kustomize/canary is a second install beside another: what the chart installs as a second release.
func TestTheChartsCanaryIsKustomizes(t *testing.T) {
	const canary = "outboard-canary"
	want := byKey(t, kustomized(t, "canary"))
	for key := range byKey(t, kustomized(t, "sidecar")) {
		if want[key] != nil {
			t.Errorf("the canary has the first install's %s", key)
		}
	}
	delete(want, "/v1, Kind=Namespace /"+canary)
	installed, _ := release(t, map[string]any{"schedulerName": canary}, "outboard", canary)
	if diff := cmp.Diff(want, byKey(t, withoutHash(installed))); diff != "" {
		t.Errorf("kustomize (-), chart (+):\n%s", diff)
	}
}
