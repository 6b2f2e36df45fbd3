package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// The query of GPULoad with default arguments; plugins/gpu_load/load_query_test.cc compares it with the plugin's.
	queryFile = "../../../plugins/gpu_load/testdata/default_query.promql"
	// Prometheus' answer, for the plugin's tests.
	answerFile = "../recorded/gpu_load_answer.json"
	// Times in the recorded answer, in s: of the answer, of all samples.
	answeredAt, sampledAt = 1700000100.5, 1700000090.5
	patience              = time.Minute
)

// exporters by node. The chart sets NODE_NAME, so Hostname is the node; by-pod is an exporter without it.
var exporters = map[string]DCGM{
	// Half busy; GPU 1 has failed.
	"old": {HostnameLabel: "Hostname", Hostname: "old", GPUs: []GPU{
		{Model: "NVIDIA H100 80GB HBM3", Index: 0, Active: 0.75, Util: 1, Used: 60000, Free: 20000, Namespace: "ml", Pod: "train-0", Container: "main"},
		{Model: "NVIDIA H100 80GB HBM3", Index: 1, Active: 0.25, Util: 1, Used: 20000, Free: 60000, XID: 79},
	}},
	"new": {HostnameLabel: "hostname", Hostname: "new", GPUs: []GPU{
		{Model: "NVIDIA H100 80GB HBM3", Index: 0, Active: 0.75, Util: 1, Used: 60000, Free: 20000, Namespace: "ml", Pod: "train-1", Container: "main"},
		{Model: "NVIDIA H100 80GB HBM3", Index: 1, Active: 0.25, Util: 1, Used: 20000, Free: 60000, XID: 79},
	}},
	// Without profiling metrics, as on GeForce and old cards; names of --use-old-namespace.
	"unprofiled": {HostnameLabel: "Hostname", Hostname: "unprofiled", OldNamespace: true, GPUs: []GPU{
		{Model: "Tesla T4", Active: -1, Util: 0.5, Used: 3840, Free: 11520, Namespace: "ml", Pod: "serve-0", Container: "main"},
	}},
	"by-pod": {HostnameLabel: "Hostname", Hostname: "nvidia-dcgm-exporter-x7k2p", GPUs: []GPU{
		{Model: "NVIDIA L4", Active: 0.125, Util: 0.25, Used: 5000, Free: 15000},
	}},
	// One GPU in MIG devices: no DCGM_FI_DEV_GPU_UTIL.
	"mig": {HostnameLabel: "hostname", Hostname: "mig", GPUs: []GPU{
		{Model: "NVIDIA H100 80GB HBM3", Profile: "3g.40gb", Instance: "1", Active: 0.5, Util: -1, Used: 10000, Free: 30000, Namespace: "ml", Pod: "a", Container: "main"},
		{Model: "NVIDIA H100 80GB HBM3", Profile: "3g.40gb", Instance: "2", Active: 0, Util: -1, Used: 0, Free: 40000},
	}},
}

// config scrapes as the chart's ServiceMonitor does: labels of the exporter's own pod, and honorLabels false, so that
// `pod` of a sample becomes `exported_pod`.
func config(address string) string {
	var out strings.Builder
	out.WriteString("global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs:\n- job_name: nvidia-dcgm-exporter\n  static_configs:\n")
	for i, node := range nodes() {
		target := fmt.Sprintf(`__metrics_path__: /%s, instance: "10.0.0.%d:9400", namespace: gpu-operator, pod: nvidia-dcgm-exporter-%d, container: nvidia-dcgm-exporter, endpoint: gpu-metrics, service: nvidia-dcgm-exporter`, node, i+1, i)
		if node == "by-pod" {
			target += ", node: by-pod" // A relabeling from __meta_kubernetes_pod_node_name.
		}
		fmt.Fprintf(&out, "  - {targets: [%q], labels: {%s}}\n", address, target)
	}
	return out.String()
}

func nodes() []string {
	var names []string
	for name := range exporters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// rows are the answer's by kind and by the name of the node that its first label gives.
func rows(t *testing.T, samples []Sample) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, sample := range samples {
		var host string
		for _, label := range []string{"node", "Hostname", "hostname"} {
			if value := sample.Metric[label]; value != "" {
				host = value
				break
			}
		}
		value, err := strconv.ParseFloat(sample.Text(), 64)
		if err != nil {
			t.Fatal(err)
		}
		key := sample.Metric["outboard"] + " " + host
		if gpu := sample.Metric["gpu"]; gpu != "" {
			key += " " + gpu
		}
		if _, twice := values[key]; twice {
			t.Errorf("two rows of %s", key)
		}
		values[key] = value
	}
	return values
}

// answered is the answer with fixed times, in a fixed order.
func answered(samples []Sample) string {
	var lines []string
	for _, sample := range samples {
		value := sample.Text()
		if sample.Metric["outboard"] == "sampled" {
			value = fmt.Sprint(strconv.FormatFloat(sampledAt, 'f', -1, 64))
		}
		labels, _ := json.Marshal(sample.Metric)
		lines = append(lines, fmt.Sprintf(`{"metric":%s,"value":[%v,%q]}`, labels, strconv.FormatFloat(answeredAt, 'f', -1, 64), value))
	}
	slices.Sort(lines)
	return `{"status":"success","data":{"resultType":"vector","result":[` + "\n" + strings.Join(lines, ",\n") + "\n]}}\n"
}

// TestGPULoadQuery: GPULoad's query over a real Prometheus gives each node's load, whichever names its exporter uses.
func TestGPULoadQuery(t *testing.T) {
	query, err := os.ReadFile(queryFile)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exporters[strings.TrimPrefix(r.URL.Path, "/")].Write(w)
	}))
	defer server.Close()
	prometheus := StartPrometheus(t, config(strings.TrimPrefix(server.URL, "http://")))

	want := map[string]float64{
		"use old": 0.5, "memory old": 0.5, "xid old 1": 79,
		"use new": 0.5, "memory new": 0.5, "xid new 1": 79,
		"use unprofiled": 0.5, "memory unprofiled": 0.25,
		"use by-pod": 0.125, "memory by-pod": 0.25,
		"use mig": 0.25, "memory mig": 0.125,
	}
	var samples []Sample
	now := time.Now()
	for end := now.Add(patience); len(samples) < len(want)+len(exporters); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %d rows, the last error: %v", patience, len(samples), err)
		}
		samples, err = Query(prometheus, string(query))
	}
	got := rows(t, samples)
	for _, node := range nodes() {
		sampled, found := got["sampled "+node]
		if age := float64(time.Now().UnixMilli())/1000 - sampled; !found || math.Abs(age) > patience.Seconds() {
			t.Errorf("samples of %s are %v s old", node, age)
		}
		delete(got, "sampled "+node)
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %v, want %v", key, got[key], value)
		}
		delete(got, key)
	}
	for key, value := range got {
		t.Errorf("unexpected row: %s: %v", key, value)
	}

	t.Log("the workload's pod is in exported_pod, the exporter's own in pod")
	pods, err := Query(prometheus, `DCGM_FI_PROF_GR_ENGINE_ACTIVE{exported_pod="train-0"}`)
	if err != nil || len(pods) != 1 || pods[0].Metric["pod"] == "train-0" || pods[0].Metric["exported_namespace"] != "ml" {
		t.Errorf("%v, %v", pods, err)
	}

	compareAnswer(t, answerFile, answered(samples))
}

// compareAnswer compares an answer with the recorded one, or records it.
func compareAnswer(t *testing.T, file, text string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if recorded, err := os.ReadFile(file); err != nil || string(recorded) != text {
		t.Errorf("%s (%v) is not what Prometheus answers; integration/publishers/record.sh writes it:\n%s", file, err, text)
	}
}

// TestOpenCost: Prometheus accepts OpenCost's metrics; its label `instance` becomes exported_instance.
func TestOpenCost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		WriteOpenCost(w, []Price{
			{Node: "spot", InstanceType: "p5.48xlarge", Region: "us-east-1", ProviderID: "aws:///us-east-1a/i-0a", Arch: "amd64", CPU: 0.03, RAM: 0.004, GPU: 2.5, Total: 31.5, GPUs: 8, Spot: true},
			{Node: "owned", InstanceType: "dgx-h100", Arch: "amd64", CPU: 0.03, RAM: 0.004, GPU: 0.95, Total: 18, GPUs: 8},
		})
	}))
	defer server.Close()
	prometheus := StartPrometheus(t, fmt.Sprintf("global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs:\n- job_name: opencost\n  static_configs: [{targets: [%q]}]\n", strings.TrimPrefix(server.URL, "http://")))
	var samples []Sample
	var err error
	for end := time.Now().Add(patience); len(samples) < 2; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %v", patience, err)
		}
		samples, err = Query(prometheus, "node_total_hourly_cost")
	}
	for _, sample := range samples {
		node := sample.Metric["node"]
		if want := map[string]string{"spot": "31.5", "owned": "18"}[node]; sample.Text() != want || sample.Metric["exported_instance"] != node {
			t.Errorf("%v: %s, want %s", sample.Metric, sample.Text(), want)
		}
	}
}
