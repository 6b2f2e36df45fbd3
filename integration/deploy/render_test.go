package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/deploy"
)

const (
	namespace = "outboard-system"
	// restartFields is an annotation of the chart: a hash of the configuration's fields that wait for a restart.
	restartFields = "outboard.dev/restart-fields"
)

// installation is one way to install Outboard, by kustomize and by Helm.
type installation struct {
	name   string
	values map[string]any // of the chart
	config string         // a file, from the repository's root, for the chart's `config`
}

func installations(t testing.TB) []installation {
	t.Helper()
	var ai map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/chart/outboard/ai-scheduler-values.yaml")), &ai); err != nil {
		t.Fatal(err)
	}
	var extender map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/chart/outboard/extender-values.yaml")), &extender); err != nil {
		t.Fatal(err)
	}
	var binding map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/chart/outboard/extender-binds-values.yaml")), &binding); err != nil {
		t.Fatal(err)
	}
	certified := maps.Clone(extender)
	certified["certManager"] = map[string]any{"enabled": true}
	apart := maps.Clone(ai)
	apart["mode"] = "mtls"
	return []installation{
		{name: "sidecar"},
		{name: "mtls", values: map[string]any{"mode": "mtls"}},
		{name: "monitored", values: map[string]any{"serviceMonitor": map[string]any{"enabled": true}}},
		{name: "mtls-monitored", values: map[string]any{"mode": "mtls", "serviceMonitor": map[string]any{"enabled": true}, "hostPodMetrics": map[string]any{"enabled": true, "podMonitor": true}}},
		{name: "mtls-certified", values: map[string]any{"mode": "mtls", "certManager": map[string]any{"enabled": true}}},
		{name: "probed", values: map[string]any{"nodeProbe": map[string]any{"enabled": true}}},
		{name: "ai-scheduler", values: ai, config: "deploy/kustomize/ai-scheduler/config.yaml"},
		{name: "ai-scheduler-mtls", values: apart, config: "deploy/kustomize/ai-scheduler-mtls/config.yaml"},
		{name: "extender", values: extender, config: "deploy/kustomize/extender/config.yaml"},
		{name: "extender-binds", values: binding, config: "deploy/kustomize/extender-binds/config.yaml"},
		{name: "beside-kube-scheduler", values: map[string]any{"bindingWebhook": map[string]any{"enabled": true}}},
		{name: "beside-kube-scheduler-certified", values: map[string]any{"bindingWebhook": map[string]any{"enabled": true}, "certManager": map[string]any{"enabled": true}}},
		{name: "extender-certified", values: certified, config: "deploy/kustomize/extender/config.yaml"},
	}
}

func path(t testing.TB, file string) string {
	t.Helper()
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, file)
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(path(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// objects splits YAML documents, in order.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		object := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if len(object) > 0 {
			all = append(all, &unstructured.Unstructured{Object: object})
		}
	}
	return all
}

// kustomized is deploy.Kustomized, as objects.
func kustomized(t testing.TB, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := deploy.Kustomized(name)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, text)
}

// rendered is `helm template NAME -n NAMESPACE`: the text of each template, or the error that the user sees.
func rendered(t testing.TB, values map[string]any, name, namespace string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(path(t, "deploy/chart/outboard"))
	if err != nil {
		t.Fatal(err)
	}
	options := chartutil.ReleaseOptions{Name: name, Namespace: namespace, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// release returns the objects of a release, and those that only `helm test` creates.
func release(t testing.TB, values map[string]any, name, namespace string) (installed, tests []*unstructured.Unstructured) {
	t.Helper()
	files, err := rendered(t, values, name, namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		for _, object := range objects(t, files[file]) {
			if object.GetAnnotations()["helm.sh/hook"] != "" {
				tests = append(tests, object)
			} else {
				installed = append(installed, object)
			}
		}
	}
	return installed, tests
}

// all returns all values of an installation, for the chart.
func (i installation) all(t testing.TB) map[string]any {
	t.Helper()
	given := maps.Clone(i.values)
	if given == nil {
		given = map[string]any{}
	}
	if i.config != "" {
		given["config"] = read(t, i.config)
	}
	return given
}

// templated is the output of `helm template --skip-tests outboard`, as objects.
func templated(t testing.TB, i installation, namespace string) []*unstructured.Unstructured {
	t.Helper()
	installed, _ := release(t, i.all(t), "outboard", namespace)
	return installed
}

func key(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", object.GroupVersionKind(), object.GetNamespace(), object.GetName())
}

// withoutHash removes the annotation that only the chart's pods have.
func withoutHash(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, object := range all {
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations", restartFields)
	}
	return all
}

// byKey normalizes what has no order. Comments of a configuration are ignored.
func byKey(t testing.TB, all []*unstructured.Unstructured) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, object := range all {
		if out[key(object)] != nil {
			t.Errorf("twice: %s", key(object))
		}
		out[key(object)] = object.Object
	}
	return out
}

func TestTheChartInstallsWhatKustomizeInstalls(t *testing.T) {
	for _, i := range installations(t) {
		t.Run(i.name, func(t *testing.T) {
			want := byKey(t, kustomized(t, i.name))
			// Helm creates the namespace itself, or expects it.
			delete(want, "/v1, Kind=Namespace /"+namespace)
			if len(want) < 10 {
				t.Fatalf("only %d objects", len(want))
			}
			if diff := cmp.Diff(want, byKey(t, withoutHash(templated(t, i, namespace)))); diff != "" {
				t.Errorf("kustomize (-), chart (+):\n%s", diff)
			}
		})
	}
}

// Without the right to delete pods only that right is missing; in another namespace no object names ours.
func TestTheChartsValues(t *testing.T) {
	for _, i := range installations(t) {
		with, without := i.all(t), i.all(t)
		with["preemption"], without["preemption"] = true, false
		all, _ := release(t, with, "outboard", namespace)
		fewer, _ := release(t, without, "outboard", namespace)
		left := byKey(t, fewer)
		for key := range byKey(t, all) {
			if preempts := strings.Contains(key, "outboard-shim-preemption"); preempts == (left[key] != nil) {
				t.Errorf("%s: unexpected %s (preemption: %v)", i.name, key, preempts)
			}
		}
		if i.config != "" {
			continue // Its configuration file names the namespace.
		}
		text, err := yaml.Marshal(byKey(t, templated(t, i, "elsewhere")))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), namespace) {
			t.Errorf("%s: a release in the namespace elsewhere names %s", i.name, namespace)
		}
	}
	if _, err := rendered(t, map[string]any{"certManager": map[string]any{"enabled": true}}, "outboard", namespace); err == nil ||
		!strings.Contains(err.Error(), "certManager.enabled needs mode mtls or extender.enabled") {
		t.Errorf("certificates that nothing uses, want an error: %v", err)
	}
	others := installation{values: map[string]any{"mode": "mtls", "certManager": map[string]any{"enabled": true, "issuerRef": map[string]any{"kind": "ClusterIssuer", "name": "company"}}}}
	certificates := 0
	for _, object := range templated(t, others, namespace) {
		if object.GetKind() == "Issuer" {
			t.Errorf("with an issuer of its own, the chart adds %s", object.GetName())
		}
		if object.GetKind() == "Certificate" {
			certificates++
			if name, _, _ := unstructured.NestedString(object.Object, "spec", "issuerRef", "name"); name != "company" {
				t.Errorf("%s is issued by %s", object.GetName(), name)
			}
		}
	}
	if certificates != 2 {
		t.Errorf("%d certificates", certificates)
	}
}

// Settings that exclude each other, or have no effect, are errors.
func TestTheChartRejectsContradictions(t *testing.T) {
	on := map[string]any{"enabled": true}
	for want, given := range map[string]map[string]any{
		"bindingWebhook.enabled and extender.enabled exclude each other": {"bindingWebhook": on, "extender": on},
		"/bindingWebhook/failurePolicy":                                  {"bindingWebhook": map[string]any{"enabled": true, "failurePolicy": "fail"}},
		"hostPodMetrics.enabled needs mode mtls":                         {"hostPodMetrics": on},
	} {
		if _, err := rendered(t, given, "outboard", namespace); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want an error with %q: %v", given, want, err)
		}
	}
}

var comparedSchedulers = []string{"kube-scheduler", "outboard"}

// comparison returns the argument of kustomized for what one of the compared schedulers gets.
func comparison(scheduler string) string { return "../examples/compare-schedulers/" + scheduler }

// Compared schedulers get the same Jobs: only the namespace and the scheduler's name differ.
func TestComparedSchedulersGetTheSame(t *testing.T) {
	names := map[string]bool{}
	var first string
	for _, scheduler := range comparedSchedulers {
		all := kustomized(t, comparison(scheduler))
		jobs := 0
		for _, object := range all {
			if object.GetKind() != "Job" {
				continue
			}
			jobs++
			name, _, err := unstructured.NestedString(object.Object, "spec", "template", "spec", "schedulerName")
			if err != nil {
				t.Fatal(err)
			}
			names[name] = true
			unstructured.RemoveNestedField(object.Object, "spec", "template", "spec", "schedulerName")
		}
		if jobs < 3 || len(all) != jobs+1 {
			t.Errorf("%s: %d objects, %d Jobs", scheduler, len(all), jobs)
		}
		text, err := yaml.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		same := strings.ReplaceAll(string(text), "compare-"+scheduler, "compare")
		if first == "" {
			first = same
		} else if diff := cmp.Diff(first, same); diff != "" {
			t.Errorf("%s (-), %s (+):\n%s", comparedSchedulers[0], scheduler, diff)
		}
	}
	if !names["default-scheduler"] || !names["ai-scheduler"] || len(names) != 2 {
		t.Errorf("schedulers: %v", names)
	}
}

// Several files contain the version.
func TestVersions(t *testing.T) {
	version := strings.TrimSpace(read(t, "VERSION"))
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
		t.Fatalf("VERSION: %q is not MAJOR.MINOR.PATCH", version)
	}
	if !regexp.MustCompile(`(?m)^## .*\b` + regexp.QuoteMeta(version) + `\b`).MatchString(read(t, "CHANGELOG.md")) {
		t.Errorf("CHANGELOG.md has no section for %s", version)
	}
	chart, err := loader.LoadDir(path(t, "deploy/chart/outboard"))
	if err != nil {
		t.Fatal(err)
	}
	if chart.Metadata.Version != version || chart.Metadata.AppVersion != version {
		t.Errorf("the chart is %s for %s, the sources are %s", chart.Metadata.Version, chart.Metadata.AppVersion, version)
	}
	images := 0
	for _, object := range slices.Concat(kustomized(t, "mtls"), kustomized(t, "sidecar"), kustomized(t, "components/node-probe")) {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			images++
			if image := container.(map[string]any)["image"].(string); !strings.HasSuffix(image, ":"+version) {
				t.Errorf("%s, but the sources are %s", image, version)
			}
		}
	}
	if images != 7 {
		t.Errorf("%d images", images)
	}
}

// config returns the two documents of the configuration that an installation mounts.
func config(t testing.TB, all []*unstructured.Unstructured) (scheduler, shim map[string]any) {
	t.Helper()
	for _, object := range all {
		if object.GetKind() != "ConfigMap" {
			continue
		}
		text, _, _ := unstructured.NestedString(object.Object, "data", "config.yaml")
		documents := objects(t, text)
		if len(documents) != 2 {
			t.Fatalf("%d documents:\n%s", len(documents), text)
		}
		return documents[0].Object, documents[1].Object
	}
	t.Fatal("no ConfigMap")
	return nil, nil
}

// An example configuration differs from its installation's only in settings of the installation.
func TestInstallationsAreTheExamples(t *testing.T) {
	for installation, file := range map[string]string{
		"ai-scheduler": "ai-scheduler.yaml", "ai-scheduler-mtls": "ai-scheduler.yaml", "extender": "extender/outboard.yaml",
		"extender-binds": "extender/outboard-binds.yaml"} {
		t.Run(installation, func(t *testing.T) { isTheExample(t, installation, "deploy/examples/"+file) })
	}
}

func isTheExample(t *testing.T, installation, file string) {
	t.Helper()
	example := objects(t, read(t, file))
	scheduler, shim := config(t, kustomized(t, installation))
	for _, own := range []string{"leaderElection", "clientConnection"} {
		delete(scheduler, own)
		delete(example[0].Object, own)
	}
	for _, own := range []string{"hosts", "socketDirectory", "servingAddress", "secureServing"} {
		delete(shim, own)
		delete(example[1].Object, own)
	}
	// Those of the host for claims.
	if resources, named := shim["customResources"].([]any); named {
		shim["customResources"] = slices.DeleteFunc(resources, func(resource any) bool {
			return strings.HasSuffix(resource.(map[string]any)["resource"].(string), ".resource.k8s.io")
		})
	}
	if diff := cmp.Diff([]any{example[0].Object, example[1].Object}, []any{scheduler, shim}); diff != "" {
		t.Errorf("example (-), installation (+):\n%s", diff)
	}
}
