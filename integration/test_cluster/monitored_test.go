package testcluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	prometheusoperator "outboard.dev/integration/prometheus_operator"
	"outboard.dev/integration/publishers/metrics"
	testcluster "outboard.dev/integration/test_cluster"
)

// What Prometheus' operator makes of the shipped monitors and rules works: the real operator writes a configuration, with
// which a real Prometheus reads every page of every pod, and evaluates every rule.
func TestMonitored(t *testing.T) {
	images := imageArchives(t)
	program, err := prometheusoperator.Program(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	c := testcluster.ForTest(t, testcluster.Options{Nodes: 2, Images: images})
	if err := prometheusoperator.Start(t.Context(), c.ControlPlane, t.Logf); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		name      string
		workloads []string
		// How many pods have each page, by job and path.
		pages map[string]int
	}{
		{"monitored", []string{"deployment/outboard-shim"}, map[string]int{
			"outboard-shim /metrics": 2, "outboard-shim /metrics/hosts?host=main": 2, "outboard-shim /metrics/hosts?host=claims": 2,
		}},
		{"mtls-monitored", []string{"deployment/outboard-host", "deployment/outboard-shim"}, map[string]int{
			"outboard-shim /metrics": 2, "outboard-system/outboard-host :10273/metrics": 2, "outboard-system/outboard-host :10274/metrics": 2,
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			i := newInstallation(t, c, "outboard-scheduler", kind.workloads...)
			if strings.HasPrefix(kind.name, "mtls") {
				i.createSecrets()
			}
			i.kubectl("apply", "-k", filepath.Join(i.root, "deploy", "kustomize", kind.name))
			i.kubectl("apply", "-f", filepath.Join(i.root, "deploy/kustomize/components/alerts/prometheus-rule.yaml"))
			i.timed("all pods are ready", i.rolledOut)
			if err := prometheusoperator.CreatePrometheus(t.Context(), c.ControlPlane, "default", kind.name); err != nil {
				t.Fatal(err)
			}
			address := metrics.Start(t, program, i.configuration(kind.name, len(kind.pages)))
			i.timed("every page is read", func() {
				i.eventually("targets", func(context.Context) error { return targets(address, kind.pages) })
			})
			i.timed("every rule is evaluated", func() {
				i.eventually("rules", func(context.Context) error { return rules(address) })
			})
			for _, query := range []string{
				`count(leader_election_master_status{namespace="outboard-system"}) == 2`, `sum(leader_election_master_status) == 1`,
				`count(outboard_plugin_host_sessions) > 0`,
			} {
				if samples, err := metrics.Query(address, query); err != nil || len(samples) != 1 {
					t.Errorf("%s: %v %v", query, samples, err)
				}
			}
			deleted(kind.name)(i)
			i.leavesNothing()
		})
	}
}

// configuration waits for what the operator writes for the Prometheus object, with so many jobs and the rules, and lets it
// run outside of the cluster: it asks the API server as the administrator, and reads the rules from a folder.
func (i *installation) configuration(name string, jobs int) string {
	i.Helper()
	var written *prometheusoperator.Written
	configuration := map[string]any{}
	i.eventually("the operator's configuration", func(ctx context.Context) (err error) {
		if written, err = prometheusoperator.Read(ctx, i.cluster.ControlPlane, "default", name); err != nil {
			return err
		}
		if err := yaml.Unmarshal([]byte(written.Configuration), &configuration); err != nil {
			return err
		}
		if scraped, _ := configuration["scrape_configs"].([]any); len(scraped) != jobs || len(written.Rules) == 0 {
			return fmt.Errorf("%d jobs, want %d, and %d files of rules", len(scraped), jobs, len(written.Rules))
		}
		return nil
	})
	for _, job := range configuration["scrape_configs"].([]any) {
		for _, discovery := range job.(map[string]any)["kubernetes_sd_configs"].([]any) {
			discovery.(map[string]any)["kubeconfig_file"] = i.cluster.AdminKubeconfig
		}
	}
	folder := i.TempDir()
	for file, text := range written.Rules {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			i.Fatal(err)
		}
	}
	configuration["rule_files"] = []string{filepath.Join(folder, "*.yaml")}
	text, err := yaml.Marshal(configuration)
	if err != nil {
		i.Fatal(err)
	}
	return string(text)
}

// ask decodes the data that a path of Prometheus' API answers with.
func ask(address, path string, data any) error {
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// targets returns nil once Prometheus has read each page of so many pods, and no other page.
func targets(address string, wanted map[string]int) error {
	var found struct {
		ActiveTargets []struct {
			Labels                       map[string]string
			ScrapeURL, Health, LastError string
		}
	}
	if err := ask(address, "/api/v1/targets?state=active", &found); err != nil {
		return err
	}
	left := maps.Clone(wanted)
	for _, target := range found.ActiveTargets {
		if target.Health != "up" {
			return fmt.Errorf("%s is %s: %s", target.ScrapeURL, target.Health, target.LastError)
		}
		page := ""
		for name := range wanted {
			job, path, _ := strings.Cut(name, " ")
			if target.Labels["job"] == job && strings.HasSuffix(target.ScrapeURL, path) {
				page = name
			}
		}
		left[page]--
	}
	for page, count := range left {
		if count != 0 {
			return fmt.Errorf("page %q of %d pods is not read, or is not expected: %+v", page, count, found.ActiveTargets)
		}
	}
	return nil
}

// rules returns nil once Prometheus has evaluated all shipped rules without an error.
func rules(address string) error {
	var found struct {
		Groups []struct {
			Name  string
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := ask(address, "/api/v1/rules", &found); err != nil {
		return err
	}
	names := []string{}
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				return fmt.Errorf("rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
			names = append(names, rule.Name)
		}
	}
	if !slices.Contains(names, "OutboardNoLeader") || len(names) < 10 {
		return fmt.Errorf("rules %v", names)
	}
	return nil
}
