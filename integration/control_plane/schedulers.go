package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"
)

// SchedulerConfig is the configuration of every scheduler under test.
type SchedulerConfig struct {
	// Text is a KubeSchedulerConfiguration without clientConnection, and with at most the durations of
	// leaderElection; empty: the default profile.
	Text string
	// QPS limits the client; zero: 5000, with the same burst.
	QPS int
	// LeaderElect makes the scheduler wait for its lease, as in a cluster.
	LeaderElect bool
}

// render adds the connection and the lease to the text.
func (s SchedulerConfig) render(kubeconfig, leaseName string) ([]byte, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(s.Text), &config); err != nil {
		return nil, fmt.Errorf("KubeSchedulerConfiguration: %w", err)
	}
	qps := s.QPS
	if qps == 0 {
		qps = 5000
	}
	config["apiVersion"] = "kubescheduler.config.k8s.io/v1"
	config["kind"] = "KubeSchedulerConfiguration"
	config["clientConnection"] = map[string]any{"kubeconfig": kubeconfig, "qps": qps, "burst": qps}
	lease, _ := config["leaderElection"].(map[string]any) // The text may set its durations.
	if lease == nil {
		lease = map[string]any{}
	}
	lease["leaderElect"], lease["resourceName"], lease["resourceNamespace"] = s.LeaderElect, leaseName, "kube-system"
	config["leaderElection"] = lease
	return yaml.Marshal(config)
}

// Scheduler is a scheduler under test: processes and metrics.
type Scheduler interface {
	Name() string
	Processes() []*Process
	Metrics(context.Context) (map[string]*dto.MetricFamily, error)
	Stop()
}

// KubeScheduler is the real kube-scheduler. A test may kill and restart it.
type KubeScheduler struct {
	Process *Process

	controlPlane *ControlPlane
	args         []string
	url          string
}

// StartKubeScheduler returns when it is ready; with LeaderElect it may not lead yet.
func (c *ControlPlane) StartKubeScheduler(ctx context.Context, config SchedulerConfig) (*KubeScheduler, error) {
	kubeconfig, err := c.Kubeconfig("system:kube-scheduler")
	if err != nil {
		return nil, err
	}
	text, err := config.render(kubeconfig, "kube-scheduler")
	if err != nil {
		return nil, err
	}
	file := c.file("kube-scheduler.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	k := &KubeScheduler{
		controlPlane: c,
		url:          fmt.Sprintf("https://127.0.0.1:%d", ports[0]),
		args: []string{
			"--config=" + file, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(ports[0]), "--cert-dir=" + c.Dir,
			"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
		},
	}
	if err := k.Start(); err != nil {
		return nil, err
	}
	return k, k.WaitReady(ctx)
}

// Start starts or restarts the process.
func (k *KubeScheduler) Start() (err error) {
	k.Process, err = k.controlPlane.StartProcess("kube-scheduler", k.controlPlane.tools.Scheduler, k.args...)
	return err
}

// WaitReady waits until it reports ready.
func (k *KubeScheduler) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return k.Process.WaitUntil(ctx, "not ready", HTTPOK(k.url+"/readyz"))
}

func (*KubeScheduler) Name() string { return "kube-scheduler" }

func (k *KubeScheduler) Processes() []*Process { return []*Process{k.Process} }

func (k *KubeScheduler) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	return Scrape(ctx, k.url+"/metrics")
}

func (k *KubeScheduler) Stop() { k.Process.Stop(10 * time.Second) }

// OutboardOptions configures StartOutboard.
type OutboardOptions struct {
	Config SchedulerConfig
	// Name distinguishes several instances on one control plane; it is a part of their file names.
	Name string
	// User is the user of the shim's kubeconfig, by default OutboardUser; another one needs LetSchedule.
	User string
	// APIServer is the address at which the shim reaches the API server, such as a proxy's; empty: the API server's.
	APIServer string
	// ShimPrefix precedes the shim's program, for example `nsenter -n -t 123`.
	ShimPrefix []string
	// Shim is merged into the ShimConfiguration document (YAML), over hosts and servingAddress.
	Shim string
	// HostArgs and ShimArgs are further arguments of the two programs.
	HostArgs, ShimArgs []string
	// Split lists plugins, separated by commas, that a second host serves; by default $OUTBOARD_SPLIT.
	Split string
	// SocketDirectory makes the shim watch a directory in which each host has its own socket, so that StartHost
	// starts a further instance beside the serving one.
	SocketDirectory bool
	// ServingAddress is the shim's; empty: a free port.
	ServingAddress string
	// Hosts are entries of the ShimConfiguration's `hosts`, instead of one host that StartOutboard starts.
	Hosts []map[string]any
	// Claims starts a second host for device claims; with ClaimsLater the test starts it with StartClaimsHost.
	Claims, ClaimsLater bool
	// HostProgram replaces the host program of ./dev build.
	HostProgram string
	// ShimCommand replaces the shim program of ./dev build: a program and its first arguments.
	ShimCommand []string
}

// Outboard is a host and a shim that communicate over a Unix socket. A test may kill and restart either.
type Outboard struct {
	Host, Shim *Process
	// SplitHost serves the plugins of Split; nil without it.
	SplitHost *Process
	// ClaimsHost serves device claims; nil if not started.
	ClaimsHost *Process

	controlPlane   *ControlPlane
	options        OutboardOptions
	socket, config string
	url            string
}

// ErrNoOutboard reports that Outboard's programs have not been built.
var ErrNoOutboard = errors.New("outboard-host and outboard-shim are not built: run ./dev build, or set OUTBOARD_BIN")

// OutboardDirectory returns the folder of Outboard's programs: $OUTBOARD_BIN, or the output of ./dev build. Returns
// ErrNoOutboard if they do not exist.
func OutboardDirectory() (string, error) {
	dir := os.Getenv("OUTBOARD_BIN")
	if dir == "" {
		root, err := Repository()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "build", "release", "bin")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"outboard-host", "outboard-shim"} {
		if !isExecutable(filepath.Join(dir, name)) {
			return "", fmt.Errorf("%w (looked for %s)", ErrNoOutboard, filepath.Join(dir, name))
		}
	}
	return dir, nil
}

// StartOutboard starts the host and the shim and returns when the shim is ready.
func (c *ControlPlane) StartOutboard(ctx context.Context, options OutboardOptions) (*Outboard, error) {
	user := options.User
	if user == "" {
		user = OutboardUser
	}
	kubeconfig, err := c.Kubeconfig(user)
	if options.APIServer != "" {
		kubeconfig, err = c.kubeconfigThrough(options.APIServer, options.Name, user)
	}
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	serving := options.ServingAddress
	if serving == "" {
		serving = fmt.Sprintf("127.0.0.1:%d", ports[0])
	}
	if options.Split == "" {
		options.Split = os.Getenv("OUTBOARD_SPLIT")
	}
	o := &Outboard{controlPlane: c, options: options, socket: c.file("host" + options.Name + ".sock"), config: c.file("outboard-shim" + options.Name + ".yaml"),
		url: "http://" + serving}
	schedulerDocument, err := options.Config.render(kubeconfig, "outboard-scheduler")
	if err != nil {
		return nil, err
	}
	shim := map[string]any{}
	if err := yaml.Unmarshal([]byte(options.Shim), &shim); err != nil {
		return nil, fmt.Errorf("ShimConfiguration: %w", err)
	}
	shim["apiVersion"], shim["kind"] = "config.outboard.dev/v1alpha1", "ShimConfiguration"
	hosts := []any{map[string]any{"name": "default", "address": "unix:" + o.socket}}
	if options.SocketDirectory {
		if err := os.MkdirAll(o.SocketDirectory(), 0o700); err != nil {
			return nil, err
		}
		shim["socketDirectory"] = o.SocketDirectory()
		hosts = []any{map[string]any{"name": "default"}}
	}
	if options.Split != "" {
		split := map[string]any{"name": "split"}
		if !options.SocketDirectory {
			split["address"] = "unix:" + o.splitSocket()
		}
		hosts = append(hosts, split)
	}
	if options.Hosts != nil {
		hosts = nil
		for _, host := range options.Hosts {
			hosts = append(hosts, host)
		}
	}
	if options.Claims || options.ClaimsLater {
		if hosts, err = o.addClaims(ctx, shim, hosts, user); err != nil {
			return nil, err
		}
	}
	shim["hosts"] = hosts
	shim["servingAddress"] = serving
	shimDocument, err := yaml.Marshal(shim)
	if err != nil {
		return nil, err
	}
	text := bytes.Join([][]byte{schedulerDocument, shimDocument}, []byte("---\n"))
	if err := os.WriteFile(o.config, text, 0o600); err != nil {
		return nil, err
	}
	if options.Hosts == nil {
		if err := o.StartHost(); err != nil {
			return nil, err
		}
	}
	if options.Split != "" {
		if err := o.StartSplitHost(); err != nil {
			return nil, err
		}
	}
	if options.Claims {
		if err := o.StartClaimsHost(); err != nil {
			return nil, err
		}
	}
	if err := o.StartShim(); err != nil {
		return nil, err
	}
	return o, o.WaitReady(ctx)
}

// StartHost starts or restarts the host.
func (o *Outboard) StartHost() (err error) {
	dir, err := OutboardDirectory()
	if err != nil {
		return err
	}
	listen := "unix:" + o.socket
	if o.options.SocketDirectory {
		listen = "unix:" + filepath.Join(o.SocketDirectory(), "default@{instance}.sock")
	}
	args := append([]string{"--listen", listen}, o.options.HostArgs...)
	if o.options.Split != "" {
		args = append(args, "--plugins=-"+strings.ReplaceAll(o.options.Split, ",", ",-"))
	}
	program := o.options.HostProgram
	if program == "" {
		program = filepath.Join(dir, "outboard-host")
	}
	o.Host, err = o.controlPlane.StartProcess("outboard-host"+o.options.Name, program, args...)
	return err
}

// SocketDirectory is where hosts create their sockets, if the options say so.
func (o *Outboard) SocketDirectory() string { return o.controlPlane.file("hosts" + o.options.Name) }

// SetHostProgram sets the program of later calls of StartHost and its further arguments; empty: the one of ./dev
// build.
func (o *Outboard) SetHostProgram(program string, args ...string) {
	o.options.HostProgram, o.options.HostArgs = program, args
}

// SetShimCommand sets the program of later calls of StartShim and its first arguments; none: the one of ./dev build.
func (o *Outboard) SetShimCommand(command ...string) { o.options.ShimCommand = command }

// HostInstance is an instance as the shim reports it.
type HostInstance struct {
	Host, Instance, Address, State, Why, Build, BuildDigest string
	Since, Started                                          time.Time
	Failures                                                int64
	Shadow                                                  struct {
		Cycles, Placements, PlacementsTold int64
		Plugins                            map[string]any
	}
}

// Hosts returns the instances that the shim knows.
func (o *Outboard) Hosts(ctx context.Context) ([]HostInstance, error) { return Hosts(ctx, o.url) }

// Hosts returns the instances known to a shim whose pages are at the address, such as http://127.0.0.1:10269.
func Hosts(ctx context.Context, url string) ([]HostInstance, error) {
	body, err := httpGet(ctx, url+"/hosts")
	if err != nil {
		return nil, err
	}
	var answer struct{ Instances []HostInstance }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s/hosts: %w", url, err)
	}
	return answer.Instances, nil
}

func (o *Outboard) splitSocket() string {
	if o.options.SocketDirectory {
		return filepath.Join(o.SocketDirectory(), "split@{instance}.sock")
	}
	return o.socket + ".split"
}

// StartSplitHost starts or restarts the host of the plugins of Split.
func (o *Outboard) StartSplitHost() (err error) {
	dir, err := OutboardDirectory()
	if err != nil {
		return err
	}
	args := append([]string{"--listen", "unix:" + o.splitSocket(), "--plugins", o.options.Split}, o.options.HostArgs...)
	o.SplitHost, err = o.controlPlane.StartProcess("outboard-host-split", filepath.Join(dir, "outboard-host"), args...)
	return err
}

// StartShim starts or restarts the shim.
func (o *Outboard) StartShim() (err error) {
	dir, err := OutboardDirectory()
	if err != nil {
		return err
	}
	program := o.options.ShimCommand
	if len(program) == 0 {
		program = []string{filepath.Join(dir, "outboard-shim")}
	}
	command := slices.Concat(o.options.ShimPrefix, program, []string{"--config", o.config}, o.options.ShimArgs)
	o.Shim, err = o.controlPlane.StartProcess("outboard-shim"+o.options.Name, command[0], command[1:]...)
	return err
}

// WaitReady waits until the shim reports ready.
func (o *Outboard) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := o.Shim.WaitUntil(ctx, "not ready", HTTPOK(o.url+"/readyz"))
	if err != nil && o.Host != nil {
		err = fmt.Errorf("%w\nend of outboard-host's log:\n%s", err, o.Host.LogTail())
	}
	return err
}

// Check asks for a health check, such as /livez. An error has the beginning of the page.
func (o *Outboard) Check(ctx context.Context, path string) error { return HTTPOK(o.url + path)(ctx) }

func (*Outboard) Name() string { return "outboard" }

// ConfigFile returns the path of the shim's configuration.
func (o *Outboard) ConfigFile() string { return o.config }

// URL returns the address of the shim's /metrics and health checks.
func (o *Outboard) URL() string { return o.url }

func (o *Outboard) Processes() []*Process {
	processes := []*Process{o.Shim, o.Host}
	for _, further := range []*Process{o.SplitHost, o.ClaimsHost} {
		if further != nil {
			processes = append(processes, further)
		}
	}
	return processes
}

func (o *Outboard) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	return Scrape(ctx, o.url+"/metrics")
}

func (o *Outboard) Stop() {
	for _, process := range o.Processes() {
		process.Stop(10 * time.Second)
	}
}

// Scrape reads a metrics page.
func Scrape(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	body, err := httpGet(ctx, url)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return families, nil
}
