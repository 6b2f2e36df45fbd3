package plugins_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/publishers/metrics"
)

const (
	loadProfile = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: load-scheduler
  plugins: {multiPoint: {enabled: [{name: GPULoad, weight: 100}]}}
  pluginConfig: [{name: GPULoad, args: {%[1]s, settlingTime: 0s}}]
- schedulerName: estimating-scheduler
  plugins: {multiPoint: {enabled: [{name: GPULoad, weight: 100}]}}
  pluginConfig: [{name: GPULoad, args: {%[1]s, settlingTime: 1h}}]
- schedulerName: metric-scheduler
  plugins: {multiPoint: {enabled: [{name: MetricScore, weight: 100}]}}
  pluginConfig:
  - name: MetricScore
    args:
      prometheus: {address: "http://%[2]s", timeout: 1s}
      metrics:
      - name: load
        query: max by (Hostname, node) (DCGM_FI_PROF_GR_ENGINE_ACTIVE{cluster="ours"})
        direction: lower
        range: {from: 0, to: 1}
        period: 1s
        maxAge: 4s
`
	loadArgs = `prometheus: {address: "http://%s", timeout: 1s, matchers: {cluster: ours}}, period: 1s, maxSampleAge: 4s, xid: {vetoFor: 2s}`

	prometheusConfig = `
global: {scrape_interval: 500ms, scrape_timeout: 400ms}
scrape_configs:
- job_name: dcgm
  static_configs:
  - {targets: [%[1]q], labels: {__metrics_path__: /one, cluster: ours}}
  - {targets: [%[1]q], labels: {__metrics_path__: /two, cluster: ours, node: two}}
  - {targets: [%[1]q], labels: {__metrics_path__: /stranger, cluster: others}}
`
	outage = "reading GPU load from"
)

// exporter serves the metrics of DCGM's exporter for some nodes, with its names and labels.
type exporter struct {
	*httptest.Server
	mutex sync.Mutex
	use   map[string]float64 // by node, of all its 8 GPUs
	xid   map[string]int     // by node, of its GPU 3
}

func (e *exporter) set(node string, use float64, xid int) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.use[node], e.xid[node] = use, xid
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	node := strings.TrimPrefix(r.URL.Path, "/")
	// An exporter without its node's name uses the name of its pod here.
	hostname := map[string]string{"one": "one", "two": "nvidia-dcgm-exporter-x7k2p", "stranger": "one"}[node]
	dcgm := metrics.DCGM{HostnameLabel: "Hostname", Hostname: hostname}
	for index := range 8 {
		gpu := metrics.GPU{Model: "NVIDIA H100 80GB HBM3", Index: index, Namespace: "default", Pod: "p", Container: "main",
			Active: e.use[node], Util: 1, Used: int(80000 * e.use[node]), Free: int(80000 * (1 - e.use[node]))}
		// Profiling does not work on one GPU, as on some models.
		if index == 0 {
			gpu.Active, gpu.Util = -1, e.use[node]
		}
		if index == 3 {
			gpu.XID = e.xid[node]
		}
		dcgm.GPUs = append(dcgm.GPUs, gpu)
	}
	dcgm.Write(w)
}

// loadCase is shared by the steps.
type loadCase struct {
	*testing.T
	client     kubernetes.Interface
	exporter   *exporter
	outboard   *controlplane.Outboard
	metricsURL string
	prometheus string // HOST:PORT
	pods       int
}

// figures returns the host's metrics of GPULoad and MetricScore.
func (c *loadCase) figures() string {
	response, err := http.Get(c.metricsURL)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	var figures strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "outboard_gpu_load_") || strings.HasPrefix(lines.Text(), "outboard_metric_score_") {
			fmt.Fprintln(&figures, lines.Text())
		}
	}
	return figures.String()
}

// metric returns the value of a line of GPULoad's figures; -1: missing.
func (c *loadCase) metric(line string) float64 { return c.value("outboard_gpu_load_" + line) }

func (c *loadCase) value(line string) float64 {
	for text := range strings.Lines(c.figures()) {
		if text, found := strings.CutPrefix(text, line+" "); found {
			if value, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
				return value
			}
		}
	}
	return -1
}

func (c *loadCase) nodes(state string) float64 {
	return c.metric(fmt.Sprintf(`nodes{profile="load-scheduler",state=%q}`, state))
}

func (c *loadCase) reads(result string) float64 {
	return c.metric(fmt.Sprintf(`reads_total{result=%q}`, result))
}

func (c *loadCase) until(what string, is func() bool) {
	c.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			c.Fatalf("%s: not within %v\n%s\n%s", what, patience, c.figures(), c.outboard.Host.LogTail())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// say sets the load of both nodes in the exporter, and waits until the host has read it.
func (c *loadCase) say(one, two float64) {
	c.Helper()
	c.exporter.set("one", one, 0)
	c.exporter.set("two", two, 0)
	c.until("Prometheus has other samples", func() bool {
		query := fmt.Sprintf(`count(DCGM_FI_PROF_GR_ENGINE_ACTIVE{cluster="ours",Hostname="one"} == %v) + count(DCGM_FI_PROF_GR_ENGINE_ACTIVE{cluster="ours",node="two"} == %v)`, one, two)
		response, err := http.PostForm("http://"+c.prometheus+"/api/v1/query", url.Values{"query": {query}})
		if err != nil {
			return false
		}
		defer response.Body.Close()
		answer := make([]byte, 4096)
		n, _ := response.Body.Read(answer)
		return strings.Contains(string(answer[:n]), `"14"]`)
	})
	c.readings("ok", 3)
}

// readings waits for this many more readings; after two the host has processed the first.
func (c *loadCase) readings(result string, more float64) {
	c.Helper()
	want := max(0, c.reads(result)) + more
	c.until(fmt.Sprintf("%v more readings: %s", more, result), func() bool { return c.reads(result) >= want })
}

func (c *loadCase) create(scheduler, onlyOn string) string {
	c.Helper()
	c.pods++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", c.pods)},
		Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
		}}}},
	}
	if onlyOn != "" {
		pod.Spec.NodeSelector = map[string]string{"name": onlyOn}
	}
	if _, err := c.client.CoreV1().Pods("default").Create(c.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	return pod.Name
}

// goes creates a pod and checks its node; want "" is any node.
func (c *loadCase) goes(scheduler, want string) string {
	c.Helper()
	return c.became(c.create(scheduler, ""), want)
}

func (c *loadCase) became(pod, want string) string {
	c.Helper()
	got, err := await(c.Context(), c.client, pod, want)
	if err != nil {
		c.Fatal(err)
	}
	if want != "" && !keeps(got, want) || want == "" && (got == "" || strings.HasPrefix(got, pending)) {
		c.Fatalf("%s: %q, not %q\n%s", pod, got, want, c.outboard.Host.LogTail())
	}
	return got
}

func (c *loadCase) removePods() {
	c.Helper()
	now := int64(0)
	if err := c.client.CoreV1().Pods("default").DeleteCollection(c.Context(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c *loadCase) warnings() int {
	log, err := os.ReadFile(c.outboard.Host.LogPath)
	if err != nil {
		c.Fatal(err)
	}
	return strings.Count(string(log), outage)
}

// TestGPULoadWithPrometheus: GPULoad reads a real Prometheus, which scrapes exporters with DCGM's metrics. Pods go to
// idle GPUs; Prometheus hangs, stops, and restarts; a GPU fails, and is repaired.
func TestGPULoadWithPrometheus(t *testing.T) {
	t.Parallel()
	program := metrics.PrometheusProgram(t)
	e := &exporter{use: map[string]float64{"one": 0.9, "two": 0.1, "stranger": 0}, xid: map[string]int{"stranger": 79}}
	e.Server = httptest.NewServer(e)
	defer e.Close()

	control := controlplane.ForTest(t, controlplane.Options{})
	client, err := control.Client()
	if err != nil {
		t.Fatal(err)
	}
	address := controlplane.FreeAddress(t)
	folder := t.TempDir()
	config := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, strings.TrimPrefix(e.URL, "http://")), 0o600); err != nil {
		t.Fatal(err)
	}
	startPrometheus := func() *controlplane.Process {
		t.Helper()
		process, err := control.StartProcess("prometheus", program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"),
			"--web.listen-address="+address, "--log.level=warn")
		if err != nil {
			t.Fatal(err)
		}
		return process
	}
	prometheus := startPrometheus()
	defer func() { prometheus.Kill() }()

	outboard, err := control.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config:   controlplane.SchedulerConfig{Text: fmt.Sprintf(loadProfile, fmt.Sprintf(loadArgs, address), address)},
		HostArgs: []string{"--metrics-address", "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer outboard.Stop()
	defer func() {
		if err := clear(context.WithoutCancel(t.Context()), client); err != nil {
			t.Error(err)
		}
	}()
	var found [][]byte
	soon, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := outboard.Host.WaitUntil(soon, "does not log the address of its metrics", func(context.Context) error {
		log, err := os.ReadFile(outboard.Host.LogPath)
		if found = regexp.MustCompile(`metrics at (http://\S+)`).FindSubmatch(log); found == nil && err == nil {
			err = errors.New("no such line")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c := &loadCase{T: t, client: client, exporter: e, outboard: outboard, metricsURL: string(found[1]), prometheus: address}
	for _, name := range []string{"one", "two"} {
		node := fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {name: %[1]s}}, status: {capacity: &n {cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "8"}, allocatable: *n}}`, name)
		if err := control.Apply(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	c.goes("load-scheduler", "") // A scheduled pod syncs the nodes to the host.
	c.until("both nodes are measured", func() bool { return c.nodes("measured") == 2 })

	t.Log("pods go to idle GPUs, also after the load moves; the other cluster's XID does not matter")
	c.say(0.9, 0.1)
	c.goes("load-scheduler", "two")
	c.goes("load-scheduler", "two")
	c.say(0.1, 0.9)
	c.goes("load-scheduler", "one")
	c.goes("load-scheduler", "one")
	if hosts := c.metric(`unknown_hosts{profile="load-scheduler"}`); hosts != 0 {
		t.Errorf("%v hosts are not nodes", hosts)
	}

	t.Log("MetricScore reads the same load with a query of its own")
	for _, idle := range []string{"two", "one"} {
		c.say(map[string]float64{"one": 0.1, "two": 0.9}[idle], map[string]float64{"one": 0.9, "two": 0.1}[idle])
		const reads = `outboard_metric_score_reads_total{metric="load",result="ok"}`
		want := max(0, c.value(reads)) + 2 // After two the host has processed the first.
		c.until("MetricScore reads the load", func() bool { return c.value(reads) >= want })
		c.goes("metric-scheduler", idle)
	}
	const measured = `outboard_metric_score_nodes{metric="load",profile="metric-scheduler",state="measured"}`
	if nodes := c.value(measured); nodes != 2 {
		t.Errorf("MetricScore measures %v nodes\n%s", nodes, c.figures())
	}

	t.Log("not all pods of a burst go to the node that looks idle")
	c.removePods()
	c.say(0.05, 0.25)
	burst := map[string]int{}
	var names []string
	for range 6 {
		names = append(names, c.create("estimating-scheduler", ""))
	}
	for _, name := range names {
		burst[c.became(name, "")]++
	}
	// 95, 83, 70 on one; 75, 63 on two.
	if burst["one"] != 4 || burst["two"] != 2 {
		t.Errorf("a burst of 6: %v, want 4 and 2", burst)
	}

	t.Log("Prometheus hangs: neutral, logged once, counted")
	c.removePods()
	before := c.warnings() // One from the start.
	if err := syscall.Kill(-prometheus.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.readings("timeout", 2)
	c.until("samples are too old", func() bool { return c.nodes("measured") == 0 && c.nodes("unmeasured") == 2 })
	c.goes("load-scheduler", "")
	if age := c.metric(`sample_age_seconds{profile="load-scheduler",which="newest"}`); age < 4 {
		t.Errorf("samples are %v s old", age)
	}
	c.readings("timeout", 1)
	if warned := c.warnings() - before; warned != 1 {
		t.Errorf("%d warnings", warned)
	}
	if err := syscall.Kill(-prometheus.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.until("both nodes are measured again", func() bool { return c.nodes("measured") == 2 })
	c.say(0.9, 0.1)
	c.goes("load-scheduler", "two")

	t.Log("Prometheus stops, and restarts")
	prometheus.Kill()
	c.readings("unreachable", 2)
	c.until("samples are too old", func() bool { return c.nodes("measured") == 0 })
	c.goes("load-scheduler", "")
	if warned := c.warnings() - before; warned != 2 {
		t.Errorf("%d warnings", warned)
	}
	prometheus = startPrometheus()
	c.until("both nodes are measured again", func() bool { return c.nodes("measured") == 2 })
	c.say(0.1, 0.9)
	c.goes("load-scheduler", "one")

	t.Log("a GPU of the idle node fails; a program's own error on the other does not matter")
	c.exporter.set("one", 0.1, 79)
	c.exporter.set("two", 0.9, 13)
	c.until("a node is vetoed", func() bool { return c.nodes("vetoed") == 1 })
	c.goes("load-scheduler", "two")
	waits := c.create("load-scheduler", "one")
	c.became(waits, pending+"GPU error: XID 79 on GPU 3")
	c.readings("ok", 4) // While the error is visible.
	c.became(waits, pending+"GPU error: XID 79 on GPU 3")
	c.exporter.set("one", 0.1, 0)
	c.became(waits, "one")
	c.goes("load-scheduler", "one")
}
