package images_test

import (
	"bytes"
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
)

var (
	swaps    = flag.Int("images.swaps", 20, "number of replacements of the host's image")
	rollouts = flag.Int("images.rollouts", 3, "number of replacements of all shipped pods")
	rate     = flag.Int("images.rate", 120, "pods created each second meanwhile")
	nodes    = flag.Int("images.nodes", 200, "number of nodes")
	cycle    = flag.Duration("images.cycle", time.Second, "deadline of a cycle; longer than Outboard's default for a busy machine")
	baseline = flag.Duration("images.baseline", 15*time.Second, "time without replacements at the beginning")
)

const (
	// Where the image's shim serves by default, and where its health check looks.
	pages = "http://127.0.0.1:10269"
	// The default of pods.
	grace = 30 * time.Second
	// The required rate.
	leastRate = 100
	// Everything else is the default.
	configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/outboard/kubeconfig, qps: 1000, burst: 2000}
leaderElection: {leaderElect: false}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
socketDirectory: /run/outboard/hosts
hosts: [{name: main}]
deadlines: {cycle: %s}
`
)

// installed is a shim and its hosts as `docker run` starts the images: without arguments, and with only the folder of
// the configuration and the shared folder of the sockets.
type installed struct {
	*testing.T
	*controlplane.ControlPlane
	sockets string // the --mount flag
	shim    *container
}

func install(t *testing.T, image string) *installed {
	t.Helper()
	i := &installed{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{})}
	kubeconfig, err := i.Kubeconfig(controlplane.OutboardUser)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"config.yaml": fmt.Sprintf(configuration, *cycle), "kubeconfig": string(credentials)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil { // For the images' user.
			t.Fatal(err)
		}
	}
	i.sockets = sharedSockets(t)
	i.shim = runContainer(t, "the shim", image, append(slices.Clone(confined), i.sockets, "--mount=type=bind,readonly,target=/etc/outboard,source="+folder))
	return i
}

func (i *installed) startHost(name, image string) *container {
	i.Helper()
	return runContainer(i.T, name, image, append(slices.Clone(confined), i.sockets))
}

// serving waits until an instance started after `started` serves, and returns it.
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

// attempts returns the number of attempts by result, and the number of attempts beyond the first of each pod.
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

// anotherBuild creates an image whose program differs in its build ID, like one with changed sources; the shim treats
// it as another build.
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

// A new image of the host replaces the old one, repeatedly, while pods are created: no pod is lost, none needs a
// second attempt, and no attempt ends without an answer.
func TestReplacingTheHostsImage(t *testing.T) {
	images := images(t)
	hostImages := []string{images["host"], anotherBuild(t, images["host"])}
	i := install(t, images["shim"])
	host := i.startHost("the first host", hostImages[0])
	before := i.serving(time.Time{})
	i.healthy(i.shim)
	i.healthy(host)
	i.shim.isConfined()
	host.isConfined()

	s := startStream(t, i.ControlPlane, corev1.DefaultSchedulerName)
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
	report := s.end(false)
	t.Logf("%d replacements of the host's image; from `docker run` to serving %.2f s (p50), %.2f s (most); `docker stop` %.2f s (p50), %.2f s (most)",
		*swaps, load.Quantile(warmUps, 0.5), load.Quantile(warmUps, 1), load.Quantile(stops, 0.5), load.Quantile(stops, 1))
	i.healthy(i.shim)
	i.healthy(host)
	results, again := i.attempts()
	t.Logf("attempts by result: %v; second attempts of a pod: %v", results, again)
	if results["scheduled"] != float64(report.Binds) || results["error"] > 0 || results["unschedulable"] > 0 || again > 0 {
		t.Errorf("attempts failed: %v, and %v second ones, for %d pods", results, again, report.Binds)
	}
	for _, line := range strings.Split(i.shim.said(), "\n") {
		if strings.Contains(line, "quarantined") || strings.Contains(line, "is parked") {
			t.Error(line)
		}
	}
}

// `kubectl set image` of the shipped Deployment, repeatedly, while pods are created: its pods, each a shim and two
// hosts, are replaced one after the other. A new one is ready before an old one gets SIGTERM, and the leader's pod
// releases the lease.
func TestRollingOutTheShippedPods(t *testing.T) {
	images := images(t)
	hostImages := []string{images["host"], anotherBuild(t, images["host"])}
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	deployment := applyShipped(t, c, client)
	start := func(build int) *kubelet {
		k := newKubelet(t, c, client, deployment, map[string]string{"shim": images["shim"], "host": hostImages[build], "claims": images["claims"]})
		k.start()
		return k
	}
	leader := func() string {
		lease, err := client.CoordinationV1().Leases(shippedNamespace).Get(t.Context(), "outboard-scheduler", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	pods := []*kubelet{}
	for range *deployment.Spec.Replicas {
		pods = append(pods, start(0))
	}
	eventually(t, func() error {
		if leader() == "" {
			return fmt.Errorf("no shim leads")
		}
		return nil
	})
	s := startStream(t, c, "outboard-scheduler")
	led := map[string]bool{leader(): true}
	var ending sync.WaitGroup
	for n := 1; n <= *rollouts; n++ {
		for i, old := range pods {
			pods[i] = start(n % 2)
			ending.Go(old.stop)
			led[leader()] = true
		}
		ending.Wait()
		led[leader()] = true
	}
	// After SIGTERM a shim has two seconds for its events; on a busy machine that may be too short.
	s.end(true)
	delete(led, "") // Released and not acquired yet.
	t.Logf("%d roll-outs of %d pods; %d shims led, one after the other", *rollouts, len(pods), len(led))
	if len(led) < 2 {
		t.Error("the lease did not change its holder: the test is void")
	}
	events, err := client.EventsV1().Events(streamNamespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		t.Errorf("%s: %s", event.Regarding.Name, event.Note)
	}
	for _, pod := range pods {
		pod.stop()
	}
}

const streamNamespace = "stream"

// stream is a steady load of pods, at first without other activity on the cluster.
type stream struct {
	*testing.T
	*controlplane.ControlPlane
	client           kubernetes.Interface
	load             *load.Load
	began, disturbed time.Time
}

// startStream creates the nodes, and returns when the time without replacements is over.
func startStream(t *testing.T, c *controlplane.ControlPlane, scheduler string) *stream {
	t.Helper()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, *nodes); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: streamNamespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &stream{T: t, ControlPlane: c, client: client, began: time.Now()}
	s.load = load.Start(t.Context(), client, streamNamespace, *rate, func(name string) *corev1.Pod {
		pod := load.NewPod(name)
		pod.Spec.SchedulerName = scheduler
		return pod
	})
	s.disturbed = s.began.Add(*baseline)
	if err := load.SleepUntil(t.Context(), s.disturbed); err != nil {
		t.Fatal(err)
	}
	return s
}

// end waits until all pods are bound, and checks etcd's history: no pod lost or bound twice, no node overcommitted,
// and no event missing unless events may be lost.
func (s *stream) end(mayLoseEvents bool) *checker.Report {
	s.Helper()
	ended := time.Now()
	if err := s.load.End(s.Context()); err != nil {
		s.Fatal(err)
	}
	took := time.Since(s.began).Seconds()
	pods := s.load.Latencies()
	perSecond := float64(len(pods)) / took
	var quiet, busy []float64 // milliseconds
	for _, pod := range pods {
		ms := float64(pod.Took.Microseconds()) / 1000
		if pod.Created.Before(s.disturbed) {
			quiet = append(quiet, ms)
		} else if pod.Created.Before(ended) {
			busy = append(busy, ms)
		}
	}
	s.Logf("%.0f pods a second; created to bound, ms: p50 %.1f, p99 %.1f, most %.1f of %d pods without replacements; p50 %.1f, p99 %.1f, most %.1f of %d pods meanwhile",
		perSecond, load.Quantile(quiet, 0.5), load.Quantile(quiet, 0.99), load.Quantile(quiet, 1), len(quiet),
		load.Quantile(busy, 0.5), load.Quantile(busy, 0.99), load.Quantile(busy, 1), len(busy))
	if perSecond < leastRate {
		s.Errorf("%.0f pods a second, want at least %d", perSecond, leastRate)
	}
	var report *checker.Report
	eventually(s.T, func() (err error) { // Events follow the binds.
		if report, err = checker.Check(s.Context(), s.EtcdURL, s.client); err != nil {
			return err
		}
		faults := report.Faults()
		if mayLoseEvents {
			faults -= report.NoEvent
		}
		if faults > 0 || report.Binds != report.PodsEver {
			return fmt.Errorf("of %d pods %d were bound, or there are faults: %v", report.PodsEver, report.Binds, report)
		}
		return nil
	})
	s.Log(report)
	return report
}
