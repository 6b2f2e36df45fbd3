// Command size measures the memory and CPU time of shim and hosts by the size of the cluster and by profile, with
// objects as large as those of real clusters. See README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	controlplane "outboard.dev/integration/control_plane"
)

// size is a size of clusters; values.yaml of the chart has presets of these names.
type size struct {
	Name                string
	nodes, pods, claims int
}

var sizes = []size{{"small", 100, 3000, 400}, {"medium", 1000, 30000, 4000}, {"large", 5000, 150000, 8000}}

// kubeScheduler is measured for comparison, with its default configuration.
const kubeScheduler = "kube-scheduler"

// installs are the folders of deploy/kustomize whose configuration is measured, and kubeScheduler.
var installs = []string{"sidecar", "ai-scheduler", kubeScheduler}

var (
	chosen    = flag.String("sizes", "small,medium,large", "sizes of the cluster: small (100 nodes, 3,000 pods), medium (1,000 and 30,000), large (5,000 and 150,000), separated by commas")
	profiles  = flag.String("installs", strings.Join(installs, ","), "installs of deploy/kustomize whose configuration is used, and kube-scheduler for comparison, separated by commas")
	rate      = flag.Int("rate", 50, "pods created each second while CPU time a pod is measured")
	rest      = flag.Duration("rest", 30*time.Second, "how long the CPU time at rest is measured")
	jsonFile  = flag.String("json", "", "write the results into this file")
	readme    = flag.String("readme", "", "write the table into this document, between the comments `size:begin` and `size:end`")
	keepsLogs = flag.Bool("keep-logs", false, "keep the logs of every measurement")
)

// usage is what one process used. Memory in bytes.
type usage struct {
	Process                 string
	Start, Rest, Peak       int64         // after the start without a cluster; with the cluster, at rest; the most, a replaced host included
	CPUAtRest               float64       // of a core
	CPUOfPod, CPUOfClaimPod time.Duration // for each pod that is scheduled, without and with a claim
}

type result struct {
	Size, Install      string
	Nodes, Pods        int
	Claims             int
	ReadyAfter, Resync time.Duration // from the start of all processes until pods can be scheduled; from the start of another host
	Usages             []usage
}

// Which rights an install grants does not change its size.
const allRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: size}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + controlplane.OutboardUser + `}]
`

func main() {
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench size:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var results []*result
	for _, name := range strings.Split(*chosen, ",") {
		i := slices.IndexFunc(sizes, func(s size) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("--sizes: %q is not small, medium or large", name)
		}
		measured, err := measure(ctx, sizes[i], strings.Split(*profiles, ","))
		results = append(results, measured...)
		if err != nil {
			fmt.Println(table(results)) // Each size takes long.
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	text := table(results)
	fmt.Println(text)
	if *jsonFile != "" {
		data, err := json.MarshalIndent(results, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*jsonFile, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	if *readme == "" {
		return nil
	}
	return writeTable(*readme, text)
}

// measure creates a cluster once, and measures each install on it.
func measure(ctx context.Context, of size, installs []string) (all []*result, err error) {
	c, err := controlplane.Start(ctx, controlplane.Options{Controllers: controlplane.ClaimControllers, SpareMemory: true, Progress: say})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil && !*keepsLogs {
			c.Stop()
		} else if kept, keepErr := c.StopKeepingLogs(); keepErr == nil {
			say("logs: %s", kept)
		}
	}()
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.ApplyCustomResources(ctx), c.Apply(ctx, allRights)); err != nil {
		return nil, err
	}
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	cluster, err := newCluster(client, of)
	if err != nil {
		return nil, err
	}
	empty := map[string][]int64{}
	for _, install := range installs {
		if empty[install], err = memoryWithoutCluster(ctx, c, install); err != nil {
			return nil, fmt.Errorf("%s: %w", install, err)
		}
	}
	say("%s: creating %d nodes, %d pods, %d claims", of.Name, of.nodes, of.pods, of.claims)
	err = controlplane.InParallel(ctx, creators, of.nodes, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Nodes().Create(ctx, cluster.newNode(i), metav1.CreateOptions{})
		return err
	})
	err = errors.Join(err, cluster.createJob(ctx), controlplane.InParallel(ctx, creators, of.pods, cluster.createRunning), cluster.createDevices(ctx))
	if err != nil {
		return nil, err
	}
	for _, install := range installs {
		measured, err := measureInstall(ctx, c, cluster, install, empty[install])
		if err != nil {
			return all, fmt.Errorf("%s: %w", install, err)
		}
		say("%s, %s: done", of.Name, install)
		all = append(all, measured)
	}
	return all, nil
}

// contender is what is measured: Outboard with the configuration of an install, or kube-scheduler.
type contender struct {
	controlplane.Scheduler
	profile string   // of pods that it schedules
	names   []string // of its processes
}

func (c *contender) usages() (all []controlplane.Usage, err error) {
	for _, process := range c.Processes() {
		used, err := process.Usage()
		if err != nil {
			return nil, err
		}
		all = append(all, used)
	}
	return all, nil
}

func start(ctx context.Context, c *controlplane.ControlPlane, install string) (*contender, error) {
	if install != kubeScheduler {
		return startOutboard(ctx, c, install)
	}
	scheduler, err := c.StartKubeScheduler(ctx, controlplane.SchedulerConfig{QPS: 1000, LeaderElect: true})
	if err != nil {
		return nil, err
	}
	return &contender{scheduler, corev1.DefaultSchedulerName, []string{kubeScheduler}}, nil
}

func startOutboard(ctx context.Context, c *controlplane.ControlPlane, install string) (*contender, error) {
	root, err := controlplane.Repository()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy/kustomize", install, "config.yaml"))
	if err != nil {
		return nil, err
	}
	scheduler, shim, found := strings.Cut(string(text), "\n---\n")
	if !found {
		return nil, fmt.Errorf("%s: one document", install)
	}
	var documents struct {
		Profiles        []struct{ SchedulerName string }
		CustomResources []struct{ Resource string }
	}
	if err := errors.Join(yaml.Unmarshal([]byte(scheduler), &documents), yaml.Unmarshal([]byte(shim), &documents)); err != nil {
		return nil, err
	}
	// Addresses and hosts are those of this machine; the host for claims brings its own custom resources.
	changed := map[string]any{}
	if err := yaml.Unmarshal([]byte(shim), &changed); err != nil {
		return nil, err
	}
	for _, field := range []string{"servingAddress", "secureServing", "socketDirectory", "hosts"} {
		delete(changed, field)
	}
	var others []any
	for _, rule := range changed["customResources"].([]any) {
		if name := rule.(map[string]any)["resource"].(string); !strings.HasSuffix(name, ".resource.k8s.io") {
			others = append(others, rule)
		}
	}
	changed["customResources"] = others
	shimText, err := yaml.Marshal(changed)
	if err != nil {
		return nil, err
	}
	outboard, err := c.StartOutboard(ctx, controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: scheduler, QPS: 1000, LeaderElect: true},
		Shim: string(shimText), SocketDirectory: true, Claims: true})
	if err != nil {
		return nil, err
	}
	return &contender{outboard, documents.Profiles[0].SchedulerName, []string{"shim", "host", "claims"}}, nil
}

func memoryWithoutCluster(ctx context.Context, c *controlplane.ControlPlane, install string) (all []int64, err error) {
	of, err := start(ctx, c, install)
	if err != nil {
		return nil, err
	}
	defer of.Stop()
	usages, err := of.usages()
	for _, used := range usages {
		all = append(all, used.RSS)
	}
	return all, err
}

func measureInstall(ctx context.Context, c *controlplane.ControlPlane, cluster *cluster, install string, empty []int64) (*result, error) {
	began := time.Now()
	of, err := start(ctx, c, install)
	if err != nil {
		return nil, err
	}
	defer of.Stop()
	measured := &result{Size: cluster.size.Name, Install: install, Nodes: cluster.size.nodes, Pods: cluster.size.pods, Claims: cluster.size.claims, ReadyAfter: time.Since(began)}
	atRest, err := of.usages()
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(*rest): // The measured time.
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	rested, err := of.usages()
	if err != nil {
		return nil, err
	}
	pods := min(2000, cluster.size.nodes*2)
	withGPU := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources = cluster.newPod("", 1).Spec.Containers[0].Resources
	}
	if err := cluster.schedule(ctx, strings.ToLower(install)+"-gpu", of.profile, pods, *rate, withGPU); err != nil {
		return nil, err
	}
	scheduled, err := of.usages()
	if err != nil {
		return nil, err
	}
	claimed, withClaim := min(500, cluster.size.nodes*2), func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new(template)}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
	if err := cluster.schedule(ctx, strings.ToLower(install)+"-claim", of.profile, claimed, *rate, withClaim); err != nil {
		return nil, err
	}
	allocated, err := of.usages()
	if err != nil {
		return nil, err
	}
	if outboard, ok := of.Scheduler.(*controlplane.Outboard); ok {
		if measured.Resync, err = replaceHost(ctx, outboard); err != nil {
			return nil, err
		}
	}
	ended, err := of.usages()
	if err != nil {
		return nil, err
	}
	for i, name := range of.names {
		measured.Usages = append(measured.Usages, usage{Process: name, Start: empty[i], Rest: rested[i].RSS, Peak: max(allocated[i].PeakRSS, ended[i].PeakRSS),
			CPUAtRest: float64(rested[i].CPU-atRest[i].CPU) / float64(*rest), CPUOfPod: (scheduled[i].CPU - rested[i].CPU) / time.Duration(pods),
			CPUOfClaimPod: (allocated[i].CPU - scheduled[i].CPU) / time.Duration(claimed)})
	}
	return measured, nil
}

// replaceHost starts another instance of the host beside the first one, and ends that one when the other serves.
func replaceHost(ctx context.Context, outboard *controlplane.Outboard) (time.Duration, error) {
	old, began := outboard.Host, time.Now()
	if err := outboard.StartHost(); err != nil {
		return 0, err
	}
	for limit := began.Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) { // Poll interval.
		hosts, err := outboard.Hosts(ctx)
		if err != nil {
			return 0, err
		}
		serves := func(h controlplane.HostInstance) bool {
			return h.Host == "default" && h.State == "serving" && h.Started.After(began)
		}
		if slices.ContainsFunc(hosts, serves) {
			took := time.Since(began)
			old.Stop(10 * time.Second)
			return took, nil
		}
		if time.Now().After(limit) {
			return 0, fmt.Errorf("the other host does not serve: %+v", hosts)
		}
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func mib(bytes int64) string { return fmt.Sprintf("%.0f", math.Ceil(float64(bytes)/(1<<20))) }

func table(results []*result) string {
	var text strings.Builder
	text.WriteString("| nodes, pods, claims | install | ready after | process | MiB without a cluster | MiB at rest | MiB at most | cores at rest | ms of CPU a pod | with a claim |\n|---|---|---:|---|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range results {
		for i, u := range r.Usages {
			cluster, install, ready := "", "", ""
			if i == 0 {
				cluster, install, ready = fmt.Sprintf("%s: %d, %d, %d", r.Size, r.Nodes, r.Pods, r.Claims), "`"+r.Install+"`", fmt.Sprintf("%.1f s", r.ReadyAfter.Seconds())
			}
			fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %.3f | %.2f | %.2f |\n", cluster, install, ready, u.Process, mib(u.Start), mib(u.Rest), mib(u.Peak),
				u.CPUAtRest, u.CPUOfPod.Seconds()*1000, u.CPUOfClaimPod.Seconds()*1000)
		}
	}
	return text.String()
}

const tableBegin, tableEnd = "<!-- size:begin -->\n", "<!-- size:end -->"

func writeTable(file, table string) error {
	document, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(document), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		return fmt.Errorf("--readme %s: it lacks %s or %s", file, strings.TrimSpace(tableBegin), tableEnd)
	}
	return os.WriteFile(file, []byte(before+tableBegin+"\n"+table+"\n"+tableEnd+after), 0o644)
}
