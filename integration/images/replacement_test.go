package images_test

import (
	"bytes"
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
)

var (
	swaps    = flag.Int("images.swaps", 20, "how often the host's image is replaced")
	rate     = flag.Int("images.rate", 120, "pods created each second meanwhile")
	nodes    = flag.Int("images.nodes", 200, "number of nodes")
	baseline = flag.Duration("images.baseline", 15*time.Second, "time without replacements at the beginning")
)

const (
	// Where the shim of an image serves unless it is told otherwise, and where the image's health check looks.
	pages = "http://127.0.0.1:10269"
	// As pods have unless they say otherwise.
	grace = 30 * time.Second
	// What is asked for.
	leastRate = 100
	// All else is as it is without being said.
	configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/outboard/kubeconfig, qps: 1000, burst: 2000}
leaderElection: {leaderElect: false}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
socketDirectory: /run/outboard/hosts
hosts: [{name: main}]
`
)

// installed is a shim and its hosts as `docker run` starts the images: without arguments, and with nothing but the folder of the configuration and
// the folder of the sockets, which all share.
type installed struct {
	*testing.T
	*controlplane.ControlPlane
	sockets string // what --mount has of it
	shim    *container
}

func install(t *testing.T, image string) *installed {
	t.Helper()
	i := &installed{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{SpareCores: true})}
	kubeconfig, err := i.Kubeconfig(controlplane.OutboardUser)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"config.yaml": configuration, "kubeconfig": string(credentials)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil { // For the images' user.
			t.Fatal(err)
		}
	}
	i.sockets = fmt.Sprintf("--mount=type=volume,volume-nocopy,target=/run/outboard/hosts,source=%s", socketVolume(t, fmt.Sprintf("mode=0700,uid=%d,gid=%d,size=1m", nobody, nobody)))
	i.shim = runContainer(t, "the shim", image, append(confined, i.sockets, "--mount=type=bind,readonly,target=/etc/outboard,source="+folder))
	return i
}

func (i *installed) startHost(name, image string) *container {
	i.Helper()
	return runContainer(i.T, name, image, append(confined, i.sockets))
}

// serving waits until an instance that started after `started` serves, and returns it.
func (i *installed) serving(started time.Time) (serving controlplane.HostInstance) {
	i.Helper()
	eventually(i.T, func() error {
		hosts, err := controlplane.Hosts(i.Context(), pages)
		if err != nil {
			return err
		}
		for _, host := range hosts {
			if host.State == "serving" && host.Started.After(started) {
				serving = host
				return nil
			}
		}
		return fmt.Errorf("no new instance serves: %+v", hosts)
	})
	return serving
}

func (i *installed) healthy(c *container) {
	i.Helper()
	eventually(i.T, func() error {
		if state := c.state(); state.Health.Status != "healthy" {
			return fmt.Errorf("%s: %+v", c.name, state)
		}
		return nil
	})
}

// attempts is how many ended with each result, and how many were needed for pods beyond the first of each.
func (i *installed) attempts() (results map[string]float64, again float64) {
	i.Helper()
	metrics, err := controlplane.Scrape(i.Context(), pages+"/metrics")
	if err != nil {
		i.Fatal(err)
	}
	results = map[string]float64{}
	for _, metric := range metrics["scheduler_schedule_attempts_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "result" {
				results[label.GetValue()] += metric.GetCounter().GetValue()
			}
		}
	}
	for _, metric := range metrics["scheduler_pod_scheduling_attempts"].GetMetric() {
		again += metric.GetHistogram().GetSampleSum() - float64(metric.GetHistogram().GetSampleCount())
	}
	return results, again
}

// anotherBuild makes an image whose program differs in its build ID, as that of changed sources would; the shim takes it for another build.
func anotherBuild(t *testing.T, image string) string {
	t.Helper()
	const program = "/usr/local/bin/outboard-host"
	id := docker(t, "create", image)
	defer docker(t, "rm", id)
	copied := filepath.Join(t.TempDir(), "outboard-host")
	docker(t, "cp", id+":"+program, copied)
	text, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	note := file.Section(".note.gnu.build-id")
	if note == nil {
		t.Fatalf("%s of %s has no build ID", program, image)
	}
	text[note.Offset+note.Size-1] ^= 0xff
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	docker(t, "cp", copied, id+":"+program)
	other := image + "-other"
	docker(t, "commit", id, other)
	t.Cleanup(func() {
		if _, err := tryDocker(context.Background(), "rmi", other); err != nil {
			t.Log(err)
		}
	})
	return other
}

// A new image of the host comes and the old one goes, again and again, while pods are created: no pod is lost, none needs a second attempt, and no
// attempt ends without an answer.
func TestReplacingTheHostsImage(t *testing.T) {
	shimImage, hostImage := images(t)
	hostImages := []string{hostImage, anotherBuild(t, hostImage)}
	i := install(t, shimImage)
	client, err := i.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, *nodes); err != nil {
		t.Fatal(err)
	}
	const namespace = "load"
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	host := i.startHost("the first host", hostImages[0])
	before := i.serving(time.Time{})
	i.healthy(i.shim)
	i.healthy(host)
	i.shim.isConfined()
	host.isConfined()

	began := time.Now()
	steady := load.Start(t.Context(), client, namespace, *rate)
	if err := load.SleepUntil(t.Context(), began.Add(*baseline)); err != nil {
		t.Fatal(err)
	}
	disturbed := time.Now()
	var warmUps, stops []float64 // seconds
	for n := 1; n <= *swaps; n++ {
		started := time.Now()
		next := i.startHost(fmt.Sprintf("the host of replacement %d", n), hostImages[n%2])
		now := i.serving(started)
		if now.BuildDigest == before.BuildDigest {
			t.Errorf("replacement %d brought the same build: %+v", n, now)
		}
		warmUps = append(warmUps, now.Since.Sub(started).Seconds())
		stopped := time.Now()
		host.stop(grace)
		stops = append(stops, time.Since(stopped).Seconds())
		host, before = next, now
	}
	ended := time.Now()
	if err := steady.End(t.Context()); err != nil {
		t.Error(err)
	}
	pods, took := steady.Latencies(), time.Since(began).Seconds()
	i.healthy(i.shim)
	i.healthy(host)

	report, err := checker.Check(t.Context(), i.EtcdURL, client)
	if err != nil {
		t.Fatal(err)
	}
	results, again := i.attempts()
	var quiet, busy []float64 // milliseconds
	for _, pod := range pods {
		ms := float64(pod.Took.Microseconds()) / 1000
		if pod.Created.Before(disturbed) {
			quiet = append(quiet, ms)
		} else if pod.Created.Before(ended) {
			busy = append(busy, ms)
		}
	}
	t.Logf("%d replacements of the host's image; from `docker run` to serving %.2f s (p50), %.2f s (most); `docker stop` %.2f s (p50), %.2f s (most)",
		*swaps, load.Quantile(warmUps, 0.5), load.Quantile(warmUps, 1), load.Quantile(stops, 0.5), load.Quantile(stops, 1))
	t.Logf("%d pods, %.0f a second; attempts by result: %v; second attempts: %v", report.Binds, float64(report.Binds)/took, results, again)
	t.Logf("created to bound, ms: p50 %.1f, p99 %.1f, most %.1f of %d pods without replacements; p50 %.1f, p99 %.1f, most %.1f of %d pods meanwhile",
		load.Quantile(quiet, 0.5), load.Quantile(quiet, 0.99), load.Quantile(quiet, 1), len(quiet),
		load.Quantile(busy, 0.5), load.Quantile(busy, 0.99), load.Quantile(busy, 1), len(busy))
	t.Log(report)
	if report.Faults() > 0 || report.Binds != report.PodsEver {
		t.Errorf("of %d pods %d were bound, or there are faults: %v", report.PodsEver, report.Binds, report)
	}
	if results["scheduled"] != float64(report.Binds) || len(results) == 0 || results["error"] > 0 || results["unschedulable"] > 0 || again > 0 {
		t.Errorf("attempts failed: %v, and %v second ones, for %d pods", results, again, report.Binds)
	}
	if perSecond := float64(report.Binds) / took; perSecond < leastRate {
		t.Errorf("%.0f pods a second are less than %d", perSecond, leastRate)
	}
	for _, line := range strings.Split(i.shim.said(), "\n") {
		if strings.Contains(line, "quarantined") || strings.Contains(line, "is parked") {
			t.Error(line)
		}
	}
}
