package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"outboard.dev/integration/publishers/metrics"
)

const alertRules = "deploy/kustomize/components/alerts/prometheus-rule.yaml"

type alert struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

type ruleGroups struct {
	Groups []struct {
		Name  string
		Rules []alert
	}
}

// alertCase: values of series, minute by minute in promtool's notation, and the minutes at which the alert fires or not.
type alertCase struct {
	Series        map[string]string
	Fires, Silent []int
}

func shippedAlerts(t *testing.T) ([]byte, []alert) {
	t.Helper()
	rule := struct{ Spec ruleGroups }{}
	text := read(t, alertRules)
	if err := yaml.Unmarshal([]byte(text), &rule); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if len(rule.Spec.Groups) != 1 {
		t.Fatalf("%d groups", len(rule.Spec.Groups))
	}
	return spec, rule.Spec.Groups[0].Rules
}

// withLabels adds the labels that Prometheus adds to a scraped series, unless it has others.
func withLabels(series string) string {
	name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	for label, value := range map[string]string{"job": "outboard-shim", "namespace": "outboard-system", "instance": "a:10270"} {
		if strings.Contains(labels, label+"=") {
			continue
		}
		labels = fmt.Sprintf("%s,%s=%q", labels, label, value)
	}
	return name + "{" + strings.TrimPrefix(labels, ",") + "}"
}

// TestAlertsFireAndResolve runs the shipped rules with promtool: each alert in its own case, and only that one.
func TestAlertsFireAndResolve(t *testing.T) {
	promtool := filepath.Join(filepath.Dir(metrics.PrometheusProgram(t)), "promtool")
	spec, alerts := shippedAlerts(t)
	cases := map[string]alertCase{}
	if err := yaml.UnmarshalStrict([]byte(read(t, "integration/deploy/testdata/alerts.yaml")), &cases); err != nil {
		t.Fatal(err)
	}
	var tests []any
	for name, c := range cases {
		var series []any
		for id, values := range c.Series {
			series = append(series, map[string]any{"series": withLabels(id), "values": values})
		}
		// ALERTS has what fires; its label alertstate tells it from what is pending.
		expect := func(minute int, firing ...string) map[string]any {
			samples := []any{}
			for _, alert := range firing {
				samples = append(samples, map[string]any{"labels": fmt.Sprintf("{alertname=%q}", alert), "value": 1})
			}
			return map[string]any{"expr": `count by (alertname) (ALERTS{alertstate="firing"})`, "eval_time": fmt.Sprintf("%dm", minute), "exp_samples": samples}
		}
		var expectations []any
		for _, minute := range c.Fires {
			expectations = append(expectations, expect(minute, name))
		}
		for _, minute := range c.Silent {
			expectations = append(expectations, expect(minute))
		}
		tests = append(tests, map[string]any{"name": name, "interval": "1m", "input_series": series, "promql_expr_test": expectations})
	}
	for _, a := range alerts {
		if c := cases[a.Alert]; len(c.Fires) == 0 || len(c.Silent) < 2 {
			t.Errorf("%s: missing a case in which it fires and resolves", a.Alert)
		}
	}
	folder := t.TempDir()
	file, err := yaml.Marshal(map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"rules.yaml": spec, "tests.yaml": file} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		command := exec.Command(promtool, arguments...)
		command.Dir = folder
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", arguments, err, output)
		}
	}
}

// TestAlertsAreDocumented: each alert has its section, in the same order, and reads metrics that docs/metrics.md has.
func TestAlertsAreDocumented(t *testing.T) {
	_, alerts := shippedAlerts(t)
	const page = "docs/operations/alerts.md"
	var sections, names []string
	for _, match := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(read(t, page), -1) {
		sections = append(sections, match[1])
	}
	documented := read(t, "docs/metrics.md")
	metric := regexp.MustCompile(`\b(outboard|scheduler|rest_client|leader_election)_[a-z_]+\b`)
	for _, a := range alerts {
		names = append(names, a.Alert)
		if want := page + "#" + strings.ToLower(a.Alert); a.Annotations["runbook"] != want {
			t.Errorf("%s: runbook %q, not %q", a.Alert, a.Annotations["runbook"], want)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		}
		for _, name := range metric.FindAllString(a.Expr, -1) {
			if !strings.Contains(documented, "`"+name+"`") {
				t.Errorf("%s: docs/metrics.md has no %s", a.Alert, name)
			}
		}
	}
	if diff := cmp.Diff(names, sections); diff != "" {
		t.Errorf("alerts (-), sections of %s (+):\n%s", page, diff)
	}
}

// TestTheChartsAlerts: the chart's rule is kustomize's.
func TestTheChartsAlerts(t *testing.T) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(read(t, alertRules)), &object.Object); err != nil {
		t.Fatal(err)
	}
	i := installation{values: map[string]any{"alerts": map[string]any{"enabled": true, "labels": map[string]any{"release": "monitoring"}}}}
	var rules []*unstructured.Unstructured
	for _, rendered := range templated(t, i, "elsewhere") {
		if rendered.GetKind() == "PrometheusRule" {
			rules = append(rules, rendered)
		}
	}
	if len(rules) != 1 {
		t.Fatalf("%d rules", len(rules))
	}
	if diff := cmp.Diff(object.Object["spec"], rules[0].Object["spec"]); diff != "" {
		t.Errorf("kustomize (-), chart (+):\n%s", diff)
	}
	if rules[0].GetNamespace() != "elsewhere" || rules[0].GetLabels()["release"] != "monitoring" {
		t.Errorf("%s/%s has the labels %v", rules[0].GetNamespace(), rules[0].GetName(), rules[0].GetLabels())
	}
	for _, rendered := range templated(t, installation{}, "elsewhere") {
		if rendered.GetKind() == "PrometheusRule" {
			t.Error("a rule without `alerts`")
		}
	}
}
