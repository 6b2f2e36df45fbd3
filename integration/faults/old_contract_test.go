package faults

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	bench "outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
)

var (
	oldPrograms = flag.String("contract.old", "", "folder with outboard-host and outboard-shim of version 0.1; empty: only the example host in Go is tested in that version, built from the history of the repository")
	oldRounds   = flag.Int("contract.rounds", 2, "how often the old host is replaced and comes back")
)

const (
	// The last commit whose hosts speak only v1alpha1.
	v1alpha1Commit = "9b8fde570bfbc3254632544cd851868257bb5d59"
	contractRate   = 150
	// Each cycle has calls to a second host, one after the other: far less than half of what these take, because other
	// tests run beside it.
	exampleRate   = 40
	contractNodes = 200
	quiet         = 2 * time.Second // between two replacements
)

// contractStory is a stream of pods beside which hosts of two versions of the contract replace each other.
type contractStory struct {
	rate int // pods a second
	*testing.T
	*controlplane.ControlPlane
	client   kubernetes.Interface
	outboard *controlplane.Outboard
	load     *bench.Load
}

func startContractStory(t *testing.T, options controlplane.OutboardOptions) *contractStory {
	t.Helper()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no host")
	}
	options.SocketDirectory = true
	s := &contractStory{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{})}
	var err error
	if s.client, err = s.Client(); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), s.client, contractNodes); err != nil {
		t.Fatal(err)
	}
	if s.outboard, err = s.StartOutboard(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *contractStory) startLoad(rate int) {
	s.Helper()
	const stream = "stream"
	if _, err := s.client.CoreV1().Namespaces().Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stream}}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.rate = rate
	s.load = bench.Start(s.Context(), s.client, stream, rate, bench.NewPod)
	s.pause()
}

func (s *contractStory) pause() {
	s.Helper()
	if err := bench.SleepUntil(s.Context(), time.Now().Add(quiet)); err != nil {
		s.Fatal(err)
	}
}

// serves waits until the newest instance of the host serves, and returns it.
func (s *contractStory) serves(host string, started time.Time) controlplane.HostInstance {
	s.Helper()
	var serving controlplane.HostInstance
	within(s.T, time.Minute, "a new instance of "+host+" serves", func() error {
		hosts, err := s.outboard.Hosts(s.Context())
		if err != nil {
			return err
		}
		for _, instance := range hosts {
			if instance.Host == host && instance.State == "serving" && instance.Since.After(started) {
				serving = instance
				return nil
			}
		}
		return fmt.Errorf("the instances are %+v", hosts)
	})
	return serving
}

// end waits until all pods are bound, and checks etcd's history and the shim's count of attempts.
func (s *contractStory) end() {
	s.Helper()
	if err := s.load.End(s.Context()); err != nil {
		s.Fatal(err)
	}
	var took []float64
	for _, pod := range s.load.Latencies() {
		took = append(took, float64(pod.Took.Microseconds())/1000)
	}
	s.Logf("%d pods at %d a second; created to bound, ms: p50 %.1f, p99 %.1f, most %.1f",
		len(took), s.rate, bench.Quantile(took, 0.5), bench.Quantile(took, 0.99), bench.Quantile(took, 1))
	within(s.T, time.Minute, "all pods are bound, and their events written", func() error {
		report, err := checker.Check(s.Context(), s.EtcdURL, s.client)
		if err == nil && (report.Faults() > 0 || report.Binds != report.PodsEver) {
			err = fmt.Errorf("of %d pods %d were bound, or there are faults: %v", report.PodsEver, report.Binds, report)
		}
		if err == nil {
			s.Log(report)
		}
		return err
	})
	metrics, err := s.outboard.Metrics(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, metric := range metrics["scheduler_schedule_attempts_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "result" && label.GetValue() != "scheduled" && metric.GetCounter().GetValue() > 0 {
				s.Errorf("%v attempts ended with %s", metric.GetCounter().GetValue(), label.GetValue())
			}
		}
	}
}

func run(t *testing.T, directory, name string, arguments ...string) {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Dir = directory
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
}

// exampleHost builds the example host in Go, of this commit or, from the history, of another one.
func exampleHost(t *testing.T, commit string) string {
	t.Helper()
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "power-domains")
	if commit != "" {
		sources := t.TempDir()
		if exec.Command("git", "-C", root, "cat-file", "-e", commit).Run() != nil {
			t.Skipf("this clone has no commit %s: it is shallow", commit)
		}
		run(t, root, "bash", "-o", "pipefail", "-c", fmt.Sprintf("git archive %s proto integration/examples/go | tar -x -C '%s'", commit, sources))
		root = sources
	}
	example := filepath.Join(root, "integration", "examples", "go")
	run(t, root, filepath.Join(example, "contract.sh"))
	run(t, example, "go", "build", "-o", program, ".")
	return program
}

// An old host serves a plugin of a profile under this shim, is replaced by a new one, and comes back, while pods are
// scheduled: no pod is lost, and no attempt fails.
func TestOldContractExample(t *testing.T) {
	t.Parallel()
	programs := []string{exampleHost(t, v1alpha1Commit), exampleHost(t, "")}
	s := startContractStory(t, controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{
		Text: "profiles: [{plugins: {multiPoint: {disabled: [{name: PowerDomains}]}}}]"}})
	start := func(version int) *controlplane.Process {
		t.Helper()
		host, err := s.StartProcess("power-domains", programs[version], "--listen", "unix:"+filepath.Join(s.outboard.SocketDirectory(), "power@{instance}.sock"))
		if err != nil {
			t.Fatal(err)
		}
		return host
	}
	// Only now the plugin has a host.
	began := time.Now()
	host := start(0)
	within(t, time.Minute, "the host of the plugin comes", func() error {
		hosts, err := s.outboard.Hosts(t.Context())
		if err == nil && len(hosts) < 2 {
			err = fmt.Errorf("the instances are %+v", hosts)
		}
		return err
	})
	config, err := os.ReadFile(s.outboard.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.outboard.ConfigFile(), []byte(strings.Replace(string(config), "disabled:", "enabled:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.serves("power", began)
	s.startLoad(exampleRate)
	for round := range 2 * *oldRounds {
		began := time.Now()
		next := start((round + 1) % 2)
		t.Logf("%+v", s.serves("power", began).Build)
		host.Stop(10 * time.Second)
		host = next
		s.pause()
	}
	s.end()
}

// The same with the whole host, which has all default plugins.
func TestOldContractHost(t *testing.T) {
	if *oldPrograms == "" {
		t.Skip("without -contract.old: programs of version 0.1 take ten minutes to build")
	}
	programs := []string{filepath.Join(*oldPrograms, "outboard-host"), ""}
	s := startContractStory(t, controlplane.OutboardOptions{HostProgram: programs[0]})
	s.startLoad(contractRate)
	for round := range 2 * *oldRounds {
		previous := s.outboard.Host
		s.outboard.SetHostProgram(programs[(round+1)%2])
		began := time.Now()
		if err := s.outboard.StartHost(); err != nil {
			t.Fatal(err)
		}
		s.serves("default", began)
		previous.Stop(10 * time.Second)
		s.pause()
	}
	s.end()
}

// A new host comes to an old shim: the shim says why it does not use it, and goes on with the old host.
func TestOldContractShim(t *testing.T) {
	if *oldPrograms == "" {
		t.Skip("without -contract.old: programs of version 0.1 take ten minutes to build")
	}
	s := startContractStory(t, controlplane.OutboardOptions{
		HostProgram: filepath.Join(*oldPrograms, "outboard-host"), ShimCommand: []string{filepath.Join(*oldPrograms, "outboard-shim")}})
	s.startLoad(contractRate)
	s.outboard.SetHostProgram("")
	if err := s.outboard.StartHost(); err != nil {
		t.Fatal(err)
	}
	const says = "the host supports contract versions v1beta1, this shim supports v1alpha1"
	within(t, time.Minute, "the shim says why", func() error {
		if !strings.Contains(s.outboard.Shim.LogTail(), says) {
			return fmt.Errorf("the shim has not logged %q", says)
		}
		return nil
	})
	s.pause()
	s.end()
}
