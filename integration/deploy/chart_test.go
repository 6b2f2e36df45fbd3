package deploy_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"outboard.dev/integration/deploy"
)

const chartFolder = "deploy/chart/outboard/"

// everyValue sets what the installations leave at its default.
const everyValue = `
commonLabels: {team: platform}
leaseName: lease-of-mine
image: {registry: registry.example.com/mirror, tag: v9}
images:
  shim: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
  claims: {registry: other.example.com, repository: claims, tag: v8, pullPolicy: Always}
imagePullSecrets: [{name: pull}]
hosts: [{name: mine}, {name: claims, metricsAddress: "127.0.0.1:10274"}, {name: main, metricsAddress: "127.0.0.1:10273"}]
bindAddress: "::"
service: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4]}
leaderBinds: true
podGroups: true
runOwners: true
nodeTopologies: true
customResources: true
hostMetrics: true
rbac: {extraRules: [{apiGroups: [example.com], resources: [quotas], verbs: [list, watch]}]}
serviceAccount: {name: account, annotations: {example.com/role: scheduler}}
priorityClass: {value: 900000000}
crds: {enabled: true}
host: &options
  logLevel: 3
  extraArgs: [--extra=x]
  extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
  extraVolumes: [{name: extra, emptyDir: {}}]
  extraVolumeMounts: [{name: extra, mountPath: /extra}]
  podAnnotations: {example.com/note: a, prometheus.io/scrape: "false"}
  podLabels: {zone: a, app.kubernetes.io/component: other}
  nodeSelector: {pool: system}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: Exists}]}]}}}
  tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
shim:
  <<: *options
  podDisruptionBudget: {maxUnavailable: 50%}
claimsHost: {extraArgs: [--x], extraEnv: [{name: A, value: b}], extraVolumeMounts: [{name: extra, mountPath: /extra}]}
extraContainers:
- name: mine
  image: registry.example.com/mine:1
  args: ["--listen=unix:/run/outboard/hosts/mine@{instance}.sock"]
  volumeMounts: [{name: sockets, mountPath: /run/outboard/hosts}]
  securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
networkPolicy:
  apiServerPorts: [16443]
  extraIngress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: debug}}}]}]
  extraEgress: [{ports: [{protocol: TCP, port: 4317}]}]
tests: {tolerations: [{operator: Exists}]}
`

func parsed(t testing.TB, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// setups are the installations, the chart's files of values, and everyValue in both modes.
func setups(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{
		"openshift":           parsed(t, read(t, chartFolder+"openshift-values.yaml")),
		"every value":         parsed(t, everyValue),
		"every value in mtls": parsed(t, everyValue+"mode: mtls\n"),
		"existing ConfigMap":  {"existingConfigMap": "mine"},
		"nothing created": parsed(t, `{rbac: {create: false}, serviceAccount: {create: false, name: mine}, priorityClass: {create: false},
flowSchemas: false, networkPolicy: {enabled: false}, shim: {podDisruptionBudget: {enabled: false}}}`),
	}
	for _, i := range installations(t) {
		all[i.name] = i.all(t)
	}
	return all
}

func as[T any](t testing.TB, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatalf("%s: %v", key(object), err)
	}
	return typed
}

func find(t testing.TB, all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range all {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

// A mistake in values is an error that names it, before anything is installed.
func TestTheChartRejectsMistakes(t *testing.T) {
	for values, want := range map[string]string{
		"replica: 3":                          "replica",
		"images: {shim: {tags: v1}}":          "tags",
		"shim: {toleration: []}":              "toleration",
		"shim: {tolerations: [{keys: a}]}":    "keys",
		"nodeProbe: {enable: true}":           "enable",
		"replicas: two":                       "replicas",
		"replicas: -1":                        "replicas",
		"mode: both":                          "mode",
		"size: huge":                          "size",
		"preemption: \"false\"":               "preemption",
		"images: {shim: {digest: latest}}":    "digest",
		"image: {pullPolicy: always}":         "pullPolicy",
		"service: {ipFamilies: [IPv5]}":       "ipFamilies",
		"networkPolicy: {apiServerPorts: []}": "apiServerPorts",
		"shim: {extraEnv: {A: b}}":            "extraEnv",
		"extraContainers: [{name: mine}]":     "image",
		"schedulerName: Outboard_Scheduler":   "schedulerName",
		"{config: a, existingConfigMap: b}":   "set config or existingConfigMap, not both",
		"config: \"leaderElection: {leaderElect: true, resourceName: another, resourceNamespace: outboard-system}\"": "outboard-system/another",
		"config: \"leaderElection: {leaderElect: true, resourceName: outboard-scheduler}\"":                          "kube-system/outboard-scheduler",
	} {
		if _, err := rendered(t, parsed(t, values), "outboard", namespace); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q: %v", values, want, err)
		}
	}
}

// `helm lint` finds nothing to improve but an icon, in setups whose configuration does not name the lease of a release:
// it gives the release another name.
func TestTheChartLints(t *testing.T) {
	linted := 0
	for name, values := range setups(t) {
		if values["config"] != nil {
			continue
		}
		linted++
		for _, message := range lint.All(path(t, strings.TrimSuffix(chartFolder, "/")), values, namespace, true).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
	if linted < 8 {
		t.Errorf("only %d setups", linted)
	}
	broken := lint.All(path(t, strings.TrimSuffix(chartFolder, "/")), map[string]any{"replicas": "two"}, namespace, true)
	if broken.HighestSeverity < support.ErrorSev {
		t.Errorf("replicas: two, want an error: %v", broken.Messages)
	}
}

type valuesSchema struct {
	Ref                  string                  `json:"$ref"`
	Properties           map[string]valuesSchema `json:"properties"`
	Definitions          map[string]valuesSchema `json:"definitions"`
	AdditionalProperties any                     `json:"additionalProperties"`
}

// missing returns the paths of values that the schema has and the defaults lack. A value that the defaults have and the
// schema lacks is rejected, so that no release would be possible.
func (s valuesSchema) missing(root valuesSchema, defaults map[string]any, prefix string) []string {
	var paths []string
	for name, property := range s.Properties {
		if reference, is := strings.CutPrefix(property.Ref, "#/definitions/"); is {
			property = root.Definitions[reference]
		}
		value, has := defaults[name]
		if !has && prefix+name != "global" { // Helm's own.
			paths = append(paths, prefix+name)
		}
		// Where the defaults are empty, the schema describes a Kubernetes type.
		if inner, is := value.(map[string]any); is && len(inner) > 0 {
			paths = append(paths, property.missing(root, inner, prefix+name+".")...)
		}
	}
	return paths
}

// Each value that the schema allows is in values.yaml, and so in the README.
func TestTheChartsSchemaNamesTheValues(t *testing.T) {
	var schema valuesSchema
	if err := json.Unmarshal([]byte(read(t, chartFolder+"values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	if schema.AdditionalProperties != false || len(schema.Properties) < 30 {
		t.Fatalf("additionalProperties %v, %d properties", schema.AdditionalProperties, len(schema.Properties))
	}
	paths := schema.missing(schema, parsed(t, read(t, chartFolder+"values.yaml")), "")
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasPrefix(path, "resources.") }) // resources.*.claims
	if len(paths) > 0 {
		t.Errorf("not in values.yaml: %q", paths)
	}
}

// The README's table is made of the comments of values.yaml.
func TestTheChartsReadmeNamesTheValues(t *testing.T) {
	table, err := deploy.ValuesTable([]byte(read(t, chartFolder+"values.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- values -->\n", "<!-- end of values -->"
	readme := read(t, chartFolder+"README.md")
	before, rest, found := strings.Cut(readme, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("README.md: no %q or %q", begin, end)
	}
	want := before + begin + table + end + after
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path(t, chartFolder+"README.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(readme, want); diff != "" {
		t.Errorf("README.md (-), values.yaml (+); UPDATE_GOLDEN=1 writes it:\n%s", diff)
	}
}
