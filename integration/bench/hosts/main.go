// Command hosts measures the cost of one more host in a profile: pods go one after the other through the shim's own
// queue and cycle (bench/hosts.cc), with the built-in plugins on one host, on two, or with one more plugin on a host
// in another language.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	controlplane "outboard.dev/integration/control_plane"
)

var (
	nodes  = flag.Int("nodes", 5000, "number of nodes")
	pods   = flag.Int("pods", 1000, "measured pods in each run, after 200 unmeasured ones")
	runs   = flag.Int("runs", 3, "runs of each row, in turns; the table has the medians")
	only   = flag.String("rows", "", "only rows whose names contain this")
	readme = flag.String("readme", "", "write the table into this document, between its marks")
	check  = flag.Bool("check", false, "fail if pods without claims take more than 1.05 times as long, filter and score, with the host for claims in their profile")
)

const (
	begin = "<!-- ./dev bench hosts writes this table -->\n"
	end   = "<!-- end of the hosts' table -->\n"
)

// row is an arrangement of hosts. One host has the built-in plugins; `plugins` restricts them.
type row struct {
	name    string
	plugins string
	// Commands of other hosts, without --listen: after the first host in the configuration (second) or before it
	// (ahead); empty: none.
	second, ahead []string
	// Plugins of the profile in addition to the default ones.
	added []string
	// Claims of each pod.
	claims int
}

const (
	oneHost       = "one host"
	withoutClaims = "+ Go, the host for claims; pods without"
)

type result struct {
	P50Micros      float64 `json:"p50Micros"`
	P99Micros      float64 `json:"p99Micros"`
	PodsPerSecond  float64 `json:"podsPerSecond"`
	ShimCPUMicros  float64 `json:"shimCpuMicros"`
	HostsCPUMicros float64 `json:"hostsCpuMicros"`
}

func main() {
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench hosts:", err)
		os.Exit(1)
	}
}

// programs is the folder with outboard-host and outboard-bench-hosts.
func programs() (string, error) {
	bin := os.Getenv("OUTBOARD_BIN")
	if bin == "" {
		bin = "../build/release/bin"
	}
	return filepath.Abs(bin)
}

func rows(bin string) ([]row, error) {
	all := []row{
		{name: oneHost},
		{name: "+ C++, with a cache (NodeAffinity there)", plugins: "-NodeAffinity",
			second: []string{filepath.Join(bin, "outboard-host"), "--plugins", "NodeAffinity"}},
	}
	if python := os.Getenv("OUTBOARD_PYTHON"); python != "" {
		sdk, err := filepath.Abs("../sdk/python")
		if err != nil {
			return nil, err
		}
		plugin, err := filepath.Abs("bench/hosts/prices.py")
		if err != nil {
			return nil, err
		}
		command := []string{"env", "PYTHONPATH=" + sdk, python, plugin}
		all = append(all,
			row{name: "+ Python, with a cache", second: command, added: []string{"Prices"}},
			row{name: "+ Python, `inline_nodes`", second: append(slices.Clone(command), "--inline-nodes"), added: []string{"Prices"}},
			row{name: "+ Python, `inline_nodes` in columns", second: append(slices.Clone(command), "--columns"), added: []string{"Prices"}})
	}
	examples, err := filepath.Abs("../build/examples")
	if err != nil {
		return nil, err
	}
	if program, err := controlplane.ClaimsHostProgram(); err == nil {
		all = append(all, row{name: withoutClaims, ahead: []string{program}},
			row{name: "+ Go, the host for claims; pods with one each", ahead: []string{program}, claims: 1})
	}
	inGo, inJava := filepath.Join(examples, "go/power-domains"), filepath.Join(examples, "java/licences-1.jar")
	if _, err := os.Stat(inGo); err == nil {
		all = append(all, row{name: "+ Go, with a cache (the example)", second: []string{inGo}, added: []string{"PowerDomains"}})
	}
	if _, err := os.Stat(inJava); err == nil {
		all = append(all, row{name: "+ Java, `inline_nodes` (the example)", added: []string{"Licences"},
			second: []string{"env", "SKIP_BUILD=1", "examples/java/run.sh"}})
	}
	return slices.DeleteFunc(all, func(r row) bool { return !strings.Contains(r.name, *only) }), nil
}

func run(ctx context.Context) error {
	bin, err := programs()
	if err != nil {
		return err
	}
	all, err := rows(bin)
	if err != nil {
		return err
	}
	results := make([][]result, len(all))
	for turn := range *runs {
		for i, r := range all {
			measured, err := measure(ctx, bin, r)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			fmt.Fprintf(os.Stderr, "run %d  %s: %+v\n", turn+1, r.name, measured)
			results[i] = append(results[i], measured)
		}
	}
	table := tableOf(all, results)
	fmt.Print(table)
	if *check {
		if err := checkWithoutClaims(all, results); err != nil {
			return err
		}
	}
	if *readme == "" {
		return nil
	}
	document, err := os.ReadFile(*readme)
	if err != nil {
		return err
	}
	text, err := putTable(string(document), table)
	if err != nil {
		return fmt.Errorf("%s: %w", *readme, err)
	}
	return os.WriteFile(*readme, []byte(text), 0o644)
}

// measure starts the row's hosts, schedules pods with them, and stops them.
func measure(ctx context.Context, bin string, r row) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "outboard-bench-hosts-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	first := []string{filepath.Join(bin, "outboard-host")}
	if r.plugins != "" {
		first = append(first, "--plugins", r.plugins)
	}
	args := []string{"--nodes", fmt.Sprint(*nodes), "--pods", fmt.Sprint(*pods), "--config", filepath.Join(dir, "config.yaml")}
	args = append(args, "--claims", fmt.Sprint(r.claims))
	for i, command := range [][]string{r.ahead, first, r.second} {
		if command == nil {
			continue
		}
		address := fmt.Sprintf("unix:%s/%d.sock", dir, i)
		host := exec.CommandContext(ctx, command[0], append(command[1:], "--listen", address)...)
		log, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.log", i)))
		if err != nil {
			return result{}, err
		}
		defer log.Close()
		host.Stderr = log
		host.Stdout = log
		if err := host.Start(); err != nil {
			return result{}, err
		}
		defer func() {
			_ = host.Process.Kill()
			_ = host.Wait()
		}()
		args = append(args, "--host", fmt.Sprintf("%d=%s", host.Process.Pid, address))
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(configOf(r)), 0o644); err != nil {
		return result{}, err
	}
	driver := exec.CommandContext(ctx, filepath.Join(bin, "outboard-bench-hosts"), args...)
	driver.Stderr = os.Stderr
	output, err := driver.Output()
	if err != nil {
		for i := range 3 {
			if log, readErr := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.log", i))); readErr == nil {
				fmt.Fprintf(os.Stderr, "host %d: %s\n", i, log)
			}
		}
		return result{}, err
	}
	var measured result
	return measured, json.Unmarshal(output, &measured)
}

func configOf(r row) string {
	enabled := ""
	for _, plugin := range r.added {
		enabled += "{name: " + plugin + "}, "
	}
	return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: default-scheduler\n" +
		"  plugins: {multiPoint: {enabled: [" + enabled + "]}}\n" + "---\napiVersion: config.outboard.dev/v1alpha1\nkind: ShimConfiguration\ncustomResources:\n" +
		"- {resource: resourceclaims.v1.resource.k8s.io, verbs: [create, delete, patch, patchStatus]}\n" +
		"- {resource: resourceslices.v1.resource.k8s.io}\n- {resource: deviceclasses.v1.resource.k8s.io}\n"
}

// checkWithoutClaims compares pods without claims with the row of one host.
func checkWithoutClaims(all []row, results [][]result) error {
	p50 := map[string]float64{}
	for i, r := range all {
		p50[r.name] = median(results[i], func(r result) float64 { return r.P50Micros })
	}
	if p50[oneHost] == 0 || p50[withoutClaims] == 0 {
		return fmt.Errorf("--check: missing rows %q and %q", oneHost, withoutClaims)
	}
	ratio := p50[withoutClaims] / p50[oneHost]
	fmt.Printf("pods without claims, filter and score, p50: %.3f times one host\n", ratio)
	if ratio > 1.05 {
		return fmt.Errorf("%.3f is above the limit of 1.05", ratio)
	}
	return nil
}

func median(results []result, value func(result) float64) float64 {
	var values []float64
	for _, r := range results {
		values = append(values, value(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func tableOf(all []row, results [][]result) string {
	var b strings.Builder
	b.WriteString("| hosts of the profile | filter and score µs, p50 / p99 | pods/s | CPU µs a pod: shim | hosts |\n|---|---:|---:|---:|---:|\n")
	for i, r := range all {
		fmt.Fprintf(&b, "| %s | %.0f / %.0f | %.0f | %.0f | %.0f |\n", r.name,
			median(results[i], func(r result) float64 { return r.P50Micros }),
			median(results[i], func(r result) float64 { return r.P99Micros }),
			median(results[i], func(r result) float64 { return r.PodsPerSecond }),
			median(results[i], func(r result) float64 { return r.ShimCPUMicros }),
			median(results[i], func(r result) float64 { return r.HostsCPUMicros }))
	}
	return b.String()
}

// putTable replaces the table between the marks of a document.
func putTable(document, table string) (string, error) {
	before, rest, found := strings.Cut(document, begin)
	if !found {
		return "", fmt.Errorf("missing line %q", strings.TrimSpace(begin))
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("missing line %q after the first mark", strings.TrimSpace(end))
	}
	return before + begin + table + end + after, nil
}
