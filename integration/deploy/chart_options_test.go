package deploy_test

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yannh/kubeconform/pkg/validator"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	podsecurity "k8s.io/pod-security-admission/api"
	podsecuritypolicy "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"outboard.dev/integration/deploy"
)

// conformance returns kubeconform with schemas of this Kubernetes, of cert-manager and of Prometheus' operator.
func conformance(t *testing.T) validator.Validator {
	t.Helper()
	folder := t.TempDir()
	if err := deploy.WriteSchemas(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	checks, err := validator.New([]string{filepath.Join(folder, deploy.SchemaFile)}, validator.Opts{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return checks
}

// conforms reports whether an object is valid; the error says why not.
func conforms(t *testing.T, checks validator.Validator, object *unstructured.Unstructured) error {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	results := checks.Validate(key(object), io.NopCloser(strings.NewReader(string(text))))
	if len(results) != 1 {
		t.Fatalf("%s: %d results", key(object), len(results))
	}
	if results[0].Status != validator.Valid {
		return fmt.Errorf("%s: %v %v", key(object), results[0].Err, results[0].ValidationErrors)
	}
	return nil
}

// kubeconform accepts the objects of all setups, and those of kustomize, and finds an unknown field.
func TestManifestsConform(t *testing.T) {
	checks := conformance(t)
	count := 0
	for name, values := range setups(t) {
		installed, tests := release(t, values, "outboard", namespace)
		for _, object := range slices.Concat(installed, tests) {
			count++
			if err := conforms(t, checks, object); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"canary", "components/leader-binds", "components/checkpoints"} {
		for _, object := range kustomized(t, name) {
			if err := conforms(t, checks, object); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if count < 200 {
		t.Errorf("only %d objects", count)
	}
	installed, _ := release(t, nil, "outboard", namespace)
	for _, mistake := range []struct {
		kind  string
		value any
		field []string
	}{
		{"Deployment", "x", []string{"spec", "template", "spec", "priorityClass"}},
		{"Deployment", "two", []string{"spec", "replicas"}},
		{"FlowSchema", "x", []string{"spec", "precedence"}},
	} {
		for _, object := range installed {
			if object.GetKind() != mistake.kind {
				continue
			}
			wrong := object.DeepCopy()
			if err := unstructured.SetNestedField(wrong.Object, mistake.value, mistake.field...); err != nil {
				t.Fatal(err)
			}
			if conforms(t, checks, wrong) == nil {
				t.Errorf("%s with %v: want an error", key(object), mistake.field)
			}
		}
	}
}

// podTemplate returns the pods of an object of the release's namespace, nil without any.
func podTemplate(t *testing.T, object *unstructured.Unstructured) *corev1.PodTemplateSpec {
	t.Helper()
	switch object.GetKind() {
	case "Deployment":
		return &as[appsv1.Deployment](t, object).Spec.Template
	case "Pod":
		pod := as[corev1.Pod](t, object)
		return &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	}
	return nil
}

// All pods of the release's namespace meet the restricted Pod Security Standard, in every setup.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := podsecuritypolicy.NewEvaluator(podsecuritypolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	check := func(pod *corev1.PodTemplateSpec) podsecuritypolicy.AggregateCheckResult {
		return podsecuritypolicy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
	}
	for name, values := range setups(t) {
		installed, tests := release(t, values, "outboard", namespace)
		pods := 0
		for _, object := range slices.Concat(installed, tests) {
			pod := podTemplate(t, object)
			if pod == nil {
				continue
			}
			pods++
			if result := check(pod); !result.Allowed {
				t.Errorf("%s: %s: %s", name, key(object), result.ForbiddenDetail())
			}
			pod.Spec.Containers[0].SecurityContext = nil
			if check(pod).Allowed {
				t.Errorf("%s: %s without a security context: want an error", name, key(object))
			}
		}
		if pods < 2 {
			t.Errorf("%s: %d pods", name, pods)
		}
	}
}

// On OpenShift the chart asks for no user or group, which OpenShift assigns.
func TestOpenShiftAssignsUsers(t *testing.T) {
	installed, tests := release(t, parsed(t, read(t, chartFolder+"openshift-values.yaml")), "outboard", namespace)
	for _, object := range slices.Concat(installed, tests) {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
			if strings.Contains(string(text), field+":") {
				t.Errorf("%s has %s", key(object), field)
			}
		}
	}
}

func container(t *testing.T, pod corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no container %s", name)
	}
	return pod.Containers[i]
}

// The values of everyValue are where they belong.
func TestTheChartsPodOptions(t *testing.T) {
	for _, mode := range []string{"sidecar", "mtls"} {
		t.Run(mode, func(t *testing.T) {
			values := parsed(t, everyValue)
			values["mode"] = mode
			all, _ := release(t, values, "outboard", namespace)
			components := []string{"shim"}
			if mode == "mtls" {
				components = append(components, "host")
			}
			for _, component := range components {
				name := "outboard-" + component
				template := podTemplate(t, find(t, all, "Deployment", name))
				pod := template.Spec
				for what, pair := range map[string][2]any{
					"labels": {template.Labels, map[string]string{"app.kubernetes.io/name": "outboard", "app.kubernetes.io/instance": "outboard",
						"app.kubernetes.io/component": component, "team": "platform", "zone": "a"}},
					"annotation":  {template.Annotations["example.com/note"] + template.Annotations["prometheus.io/scrape"], "afalse"},
					"nodes":       {pod.NodeSelector, map[string]string{"kubernetes.io/os": "linux", "pool": "system"}},
					"affinity":    {pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Key, "metadata.name"},
					"tolerations": {pod.Tolerations[0].Key, "node-role.kubernetes.io/control-plane"},
					"spread":      {pod.TopologySpreadConstraints[0].LabelSelector.MatchLabels["app.kubernetes.io/component"], component},
					"secrets":     {pod.ImagePullSecrets[0].Name, "pull"},
					"class":       {pod.PriorityClassName, "outboard." + namespace},
				} {
					if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
						t.Errorf("%s: %s:\n%s", name, what, diff)
					}
				}
				c := container(t, pod, component)
				if !slices.Contains(c.Args, "--v=3") || !slices.Contains(c.Args, "--extra=x") || !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "HTTPS_PROXY" }) ||
					!slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/extra" }) ||
					!slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "extra" }) {
					t.Errorf("%s: %v", name, c)
				}
			}
			shim := as[appsv1.Deployment](t, find(t, all, "Deployment", "outboard-shim")).Spec.Template.Spec
			images := map[string]string{
				"shim": "registry.example.com/mirror/outboard-shim:v9@sha256:" + strings.Repeat("0123456789abcdef", 4), "mine": "registry.example.com/mine:1"}
			hostPod := shim
			if mode == "mtls" {
				hostPod = podTemplate(t, find(t, all, "Deployment", "outboard-host")).Spec
			}
			for name, image := range map[string]string{"host": "registry.example.com/mirror/outboard-host:v9", "claims": "other.example.com/claims:v8"} {
				if c := container(t, hostPod, name); c.Image != image {
					t.Errorf("%s is %s, want %s", name, c.Image, image)
				}
				claims := container(t, hostPod, "claims")
				if claims.ImagePullPolicy != corev1.PullAlways || !slices.Contains(claims.Args, "--x") || claims.Env[0].Name != "A" || len(claims.VolumeMounts) != 2 {
					t.Errorf("claims: %v", claims)
				}
			}
			for name, image := range images {
				if c := container(t, shim, name); c.Image != image {
					t.Errorf("%s is %s, want %s", name, c.Image, image)
				}
			}
			// A host of one's own listens where the shim looks for it.
			for _, name := range []string{"shim", "mine"} {
				if !slices.ContainsFunc(container(t, shim, name).VolumeMounts, func(m corev1.VolumeMount) bool {
					return m.Name == "sockets" && m.MountPath == "/run/outboard/hosts"
				}) {
					t.Errorf("%s lacks the sockets", name)
				}
			}
			scheduler, configured := config(t, all)
			hosts := configured["hosts"].([]any)
			if configured["socketDirectory"] != "/run/outboard/hosts" || len(hosts) != 3 || hosts[0].(map[string]any)["name"] != "mine" {
				t.Errorf("hosts %v in %v", hosts, configured["socketDirectory"])
			}
			if address := configured["secureServing"].(map[string]any)["address"]; address != "[::]:10270" {
				t.Errorf("serves at %v", address)
			}
			if lease := scheduler["leaderElection"].(map[string]any)["resourceName"]; lease != "lease-of-mine" {
				t.Errorf("lease %v", lease)
			}
			if names := as[rbacv1.Role](t, find(t, all, "Role", "outboard-shim-lease")).Rules[1].ResourceNames; !slices.Equal(names, []string{"lease-of-mine"}) {
				t.Errorf("the role is for the leases %v", names)
			}
			if service := as[corev1.Service](t, find(t, all, "Service", "outboard-shim")); *service.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack ||
				!slices.Equal(service.Spec.IPFamilies, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}) {
				t.Errorf("the Service is %v", service.Spec)
			}
			if account := find(t, all, "ServiceAccount", "account"); account.GetAnnotations()["example.com/role"] != "scheduler" || shim.ServiceAccountName != "account" {
				t.Errorf("account %v, pod's %s", account, shim.ServiceAccountName)
			}
			if rules := as[rbacv1.ClusterRole](t, find(t, all, "ClusterRole", "outboard-shim-extra."+namespace)).Rules; rules[0].Resources[0] != "quotas" {
				t.Errorf("extra rules %v", rules)
			}
			if budget := as[policyv1.PodDisruptionBudget](t, find(t, all, "PodDisruptionBudget", "outboard-shim")); budget.Spec.MaxUnavailable.String() != "50%" {
				t.Errorf("the budget allows %v", budget.Spec.MaxUnavailable)
			}
			crds := 0
			for _, object := range all {
				if object.GetKind() == "CustomResourceDefinition" {
					crds++
					if object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
						t.Errorf("%s is deleted with the release", object.GetName())
					}
				}
			}
			if crds != 3 {
				t.Errorf("%d CRDs", crds)
			}
			policy, err := yaml.Marshal(find(t, all, "NetworkPolicy", "outboard-shim").Object)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(policy); !strings.Contains(text, "port: 16443") || strings.Contains(text, "port: 6443") || !strings.Contains(text, "port: 4317") || !strings.Contains(text, "debug") {
				t.Errorf("the shim's policy:\n%s", text)
			}
			complete(t, all, "Secret outboard-shim-tls", "Secret outboard-host-tls")
		})
	}
}

// What is switched off is not there, and what others create is used.
func TestTheChartUsesWhatExists(t *testing.T) {
	all, _ := release(t, setups(t)["nothing created"], "outboard", namespace)
	kinds := map[string]int{}
	for _, object := range all {
		kinds[object.GetKind()]++
	}
	if diff := cmp.Diff(map[string]int{"ConfigMap": 1, "Deployment": 1, "Service": 1}, kinds); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	pod := as[appsv1.Deployment](t, find(t, all, "Deployment", "outboard-shim")).Spec.Template.Spec
	if pod.ServiceAccountName != "mine" || pod.PriorityClassName != "" {
		t.Errorf("account %q, class %q", pod.ServiceAccountName, pod.PriorityClassName)
	}
	all, _ = release(t, map[string]any{"existingConfigMap": "mine"}, "outboard", namespace)
	complete(t, all, "ConfigMap mine")
	for _, object := range all {
		if object.GetKind() == "ConfigMap" {
			t.Errorf("with an existing ConfigMap the chart adds %s", object.GetName())
		}
	}
}

// Without the right to delete pods the chart's configuration does not preempt.
func TestWithoutPreemptionNothingPreempts(t *testing.T) {
	for _, mode := range []string{"sidecar", "mtls"} {
		all, _ := release(t, map[string]any{"mode": mode, "preemption": false}, "outboard", namespace)
		scheduler, _ := config(t, all)
		disabled, _, err := unstructured.NestedSlice(scheduler["profiles"].([]any)[0].(map[string]any), "plugins", "multiPoint", "disabled")
		if err != nil || len(disabled) != 1 || disabled[0].(map[string]any)["name"] != "DefaultPreemption" {
			t.Errorf("%s: disabled %v %v", mode, disabled, err)
		}
		for _, object := range all {
			if object.GetKind() != "ClusterRole" {
				continue
			}
			for _, rule := range as[rbacv1.ClusterRole](t, object).Rules {
				if slices.Contains(rule.Resources, "pods") && slices.Contains(rule.Verbs, "delete") {
					t.Errorf("%s: %s may delete pods", mode, object.GetName())
				}
			}
		}
	}
}

// `helm test` lets the installed profile schedule a pod, which asks a shim whether it is ready. An extender schedules
// none.
func TestTheChartsTest(t *testing.T) {
	for installation, scheduler := range map[string]string{"sidecar": "outboard-scheduler", "mtls": "outboard-scheduler", "ai-scheduler": "ai-scheduler", "extender": ""} {
		installed, tests := release(t, setups(t)[installation], "outboard", namespace)
		pod := as[corev1.Pod](t, find(t, tests, "Pod", "outboard-test"))
		if pod.Spec.SchedulerName != scheduler {
			t.Errorf("%s: the pod's scheduler is %q, want %q", installation, pod.Spec.SchedulerName, scheduler)
		}
		shim := as[appsv1.Deployment](t, find(t, installed, "Deployment", "outboard-shim")).Spec.Template.Spec
		service := as[corev1.Service](t, find(t, installed, "Service", "outboard-shim"))
		want := []string{fmt.Sprintf("--probe=https://%s.%s.svc:%d/readyz", service.Name, service.Namespace, service.Spec.Ports[0].Port), "--insecure-skip-tls-verify"}
		if c := pod.Spec.Containers[0]; !slices.Equal(c.Args, want) || c.Image != container(t, shim, "shim").Image {
			t.Errorf("%s: %s %q, want %q", installation, c.Image, c.Args, want)
		}
	}
}

// `size` gives each container requests and limits, the larger the larger; `resources` changes single values.
func TestTheChartsSizes(t *testing.T) {
	memory := func(values, name string) (request, limit int64) {
		all, _ := release(t, parsed(t, values), "outboard", namespace)
		resources := container(t, as[appsv1.Deployment](t, find(t, all, "Deployment", "outboard-shim")).Spec.Template.Spec, name).Resources
		if resources.Requests.Cpu().IsZero() || !resources.Limits.Cpu().IsZero() {
			t.Errorf("%s: %s: want a request of CPU and no limit: %v", values, name, resources)
		}
		return resources.Requests.Memory().Value(), resources.Limits.Memory().Value()
	}
	for _, name := range []string{"shim", "host", "claims"} {
		var before int64
		for _, size := range []string{"small", "medium", "large"} {
			request, limit := memory("size: "+size, name)
			if request <= before || limit < 2*request {
				t.Errorf("%s: %s: requests %d bytes, limited to %d; the smaller size requests %d", size, name, request, limit, before)
			}
			before = request
		}
		request, _ := memory("size: large", name)
		if got, limit := memory(fmt.Sprintf("{size: large, resources: {%s: {limits: {memory: 100Gi}}}}", name), name); got != request || limit != 100<<30 {
			t.Errorf("%s: requests %d bytes, limited to %d, with another limit", name, got, limit)
		}
	}
}

// An upgrade restarts the shims if a field that waits for a restart changes, and for no other field.
func TestTheChartRestartsForFieldsThatWaitForIt(t *testing.T) {
	config := func(scheduler, shim string) string {
		return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n" + scheduler +
			"\n---\napiVersion: outboard.dev/v1alpha1\nkind: ShimConfiguration\n" + shim
	}
	hash := func(values map[string]any) string {
		all, _ := release(t, values, "outboard", namespace)
		return as[appsv1.Deployment](t, find(t, all, "Deployment", "outboard-shim")).Spec.Template.Annotations[restartFields]
	}
	of := func(text string) string { return hash(map[string]any{"config": text}) }
	before := of(config("profiles: [{schedulerName: a}]", "hosts: []"))
	if before == "" {
		t.Fatal("no hash")
	}
	if of(config("profiles: [{schedulerName: b}]\npercentageOfNodesToScore: 5", "hosts: [{name: main}]")) != before {
		t.Error("fields that are reloaded restart the shims")
	}
	// The field before the first dot, of each row of the reference that says that the shim does not reload it.
	rows := regexp.MustCompile("(?m)^\\| `([A-Za-z]+)[^|]*\\|[^|]*\\| no \\|").FindAllStringSubmatch(read(t, "docs/configuration.md"), -1)
	if len(rows) < 20 {
		t.Fatalf("only %d fields of docs/configuration.md wait for a restart", len(rows))
	}
	for _, row := range rows {
		if after := of(config("profiles: [{schedulerName: a}]\n", "hosts: []\n"+row[1]+": {x: 1}\n")); after == before {
			t.Errorf("%s waits for a restart, but an upgrade that changes it restarts nothing", row[1])
		}
	}
	if got := hash(map[string]any{"existingConfigMap": "mine"}); got != "" {
		t.Errorf("the hash of a ConfigMap that the chart does not have: %s", got)
	}
}

// The notes name what the reader needs next.
func TestTheChartsNotes(t *testing.T) {
	for name, want := range map[string]struct{ has, lacks []string }{
		"sidecar":        {[]string{"schedulerName: outboard-scheduler", "rollout status deployment/outboard-shim", "helm test outboard", "may delete pods of every scheduler", "outboard-operator." + namespace}, []string{"Secret", "deploy/crds"}},
		"mtls":           {[]string{"Secrets outboard-shim-tls and outboard-host-tls"}, []string{"extender"}},
		"mtls-certified": {nil, []string{"Secrets"}},
		"ai-scheduler":   {[]string{"schedulerName: ai-scheduler", "kubectl apply -f deploy/crds"}, nil},
		"extender":       {[]string{"https://outboard-extender." + namespace + ".svc:10272", "Secret outboard-extender-tls"}, []string{"may delete pods", "schedulerName"}},
	} {
		files, err := rendered(t, setups(t)[name], "outboard", namespace)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["outboard/templates/NOTES.txt"]
		for _, text := range want.has {
			if !strings.Contains(notes, text) {
				t.Errorf("%s: the notes lack %q:\n%s", name, text, notes)
			}
		}
		for _, text := range want.lacks {
			if strings.Contains(notes, text) {
				t.Errorf("%s: the notes have %q:\n%s", name, text, notes)
			}
		}
	}
}
