// A virtual week on a cluster of GPUs: use, waiting time and lost work of several schedulers, beside textbook EASY
// backfill and an upper bound for all schedulers.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

type options struct {
	outboard    string
	example     string
	nodes, gpus int
	hours       float64
	declared    float64
	mostWaiting int
	jobs        int
	seeds       int
	folder      string
}

func (o options) until() float64 { return o.hours * 3600 }

// schedulers in the table's order; the simulated ones have a configuration.
var schedulers = []string{"default", "ai", "backfill", "easy", "easy-pool", "fluid"}

var titles = map[string]string{
	"default":   "default profile",
	"ai":        "ai-scheduler",
	"backfill":  "ai-scheduler with Backfill",
	"easy":      "EASY, on nodes",
	"easy-pool": "EASY, one pool of GPUs",
	"fluid":     "fluid bound",
}

func main() {
	var o options
	var loads, which, jsonFile string
	flag.StringVar(&o.outboard, "outboard", filepath.Join(os.Getenv("OUTBOARD_BIN"), "outboard"), "the program to measure")
	flag.StringVar(&o.example, "config", "../deploy/examples/ai-scheduler.yaml", "configuration whose first profile is the ai-scheduler")
	flag.IntVar(&o.nodes, "nodes", 100, "nodes")
	flag.IntVar(&o.gpus, "gpus-per-node", 8, "GPUs of each")
	flag.Float64Var(&o.hours, "hours", 168, "hours in which jobs arrive and are measured")
	flag.Float64Var(&o.declared, "declared", 1, "declared run time of jobs, as a multiple of the actual one")
	flag.IntVar(&o.mostWaiting, "most-waiting", 3000, "a simulation ends when more pods than this wait")
	flag.IntVar(&o.jobs, "jobs", 2, "concurrent simulations")
	flag.IntVar(&o.seeds, "seeds", 10, "number of workloads for each load")
	flag.StringVar(&loads, "loads", "0.7,0.9,1.1", "requested GPU-hours, divided by the available ones")
	flag.StringVar(&which, "schedulers", strings.Join(schedulers, ","), "schedulers to measure")
	flag.StringVar(&jsonFile, "json", "", "file of results, one a line; existing results are not measured again")
	flag.Parse()
	wanted := map[string]bool{}
	for _, name := range strings.Split(which, ",") {
		if titles[name] == "" {
			log.Fatalf("--schedulers: unknown %q; use: %s", name, strings.Join(schedulers, ", "))
		}
		wanted[name] = true
	}
	var err error
	if o.folder, err = os.MkdirTemp("", "outboard-week-"); err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(o.folder)
	if err := o.writeConfigs(); err != nil {
		log.Fatal(err)
	}
	kept, err := openLedger(jsonFile, o.setting())
	if err != nil {
		log.Fatalf("--json: %v", err)
	}
	for _, text := range strings.Split(loads, ",") {
		load, err := strconv.ParseFloat(text, 64)
		if err != nil {
			log.Fatalf("--loads: %v", err)
		}
		results, err := o.measure(load, wanted, kept)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(table(load, o.hours, results))
	}
}

// measure plays every workload of a load with every scheduler, except results measured before.
func (o options) measure(load float64, wanted map[string]bool, kept *ledger) ([]result, error) {
	tasks := make(chan run)
	var lock sync.Mutex
	var results []result
	var failed error
	var workers sync.WaitGroup
	for range o.jobs {
		workers.Go(func() {
			for t := range tasks {
				began := time.Now()
				f, err := o.play(load, t.seed, t.scheduler)
				f.Seconds = time.Since(began).Seconds()
				measured := result{t.scheduler, load, t.seed, f}
				if err == nil {
					err = kept.add(measured)
				}
				lock.Lock()
				if err != nil && failed == nil {
					failed = fmt.Errorf("%s, load %g, seed %d: %w", t.scheduler, load, t.seed, err)
				}
				results = append(results, measured)
				lock.Unlock()
				log.Printf("load %g, seed %d, %s: %.1f s", load, t.seed, t.scheduler, f.Seconds)
			}
		})
	}
	for seed := 1; seed <= o.seeds; seed++ {
		var left []run
		for _, scheduler := range schedulers {
			if !wanted[scheduler] {
				continue
			}
			asked := run{scheduler, load, seed}
			if before, known := kept.find(asked); known {
				lock.Lock()
				results = append(results, before)
				lock.Unlock()
			} else {
				left = append(left, asked)
			}
		}
		if len(left) == 0 {
			continue
		}
		if err := o.generate(load, seed); err != nil {
			lock.Lock()
			failed = err
			lock.Unlock()
			break
		}
		for _, t := range left {
			tasks <- t
		}
	}
	close(tasks)
	workers.Wait()
	return results, failed
}

func (o options) file(kind string, load float64, seed int) string {
	return filepath.Join(o.folder, fmt.Sprintf("%s-%g-%d", kind, load, seed))
}

func (o options) generate(load float64, seed int) error {
	command := exec.Command(o.outboard, "generate-workload", "--nodes", fmt.Sprint(o.nodes), "--gpus-per-node", fmt.Sprint(o.gpus),
		"--load", fmt.Sprint(load), "--hours", fmt.Sprint(o.hours), "--seed", fmt.Sprint(seed), "--declared", fmt.Sprint(o.declared),
		"--cluster", o.file("cluster", load, seed), "--trace", o.file("trace", load, seed))
	command.Stderr = os.Stderr
	return command.Run()
}

// play runs one week with one scheduler.
func (o options) play(load float64, seed int, scheduler string) (figures, error) {
	text, err := os.ReadFile(o.file("trace", load, seed))
	if err != nil {
		return figures{}, err
	}
	jobs, err := readJobs(bytes.NewReader(text))
	if err != nil {
		return figures{}, err
	}
	capacity := float64(o.nodes*o.gpus) * o.until()
	switch scheduler {
	case "fluid":
		bound := fluidBound(jobs, o.nodes*o.gpus, o.until()) / capacity
		return figures{Utilisation: bound, Useful: bound, EndedAt: o.hours}, nil
	case "easy", "easy-pool":
		outcomes, used := playEasy(jobs, o.nodes, o.gpus, scheduler == "easy-pool", o.until())
		f := figures{Utilisation: used / capacity, Useful: used / capacity, EndedAt: o.hours}
		f.noteWaits(jobs, outcomes, o.until())
		return f, nil
	}
	command := exec.Command(o.outboard, "simulate", "--cluster", o.file("cluster", load, seed), "--trace", o.file("trace", load, seed),
		"--config", filepath.Join(o.folder, scheduler+".yaml"), "--to", fmt.Sprint(o.until()), "--until", fmt.Sprint(o.until()),
		"--most-waiting", fmt.Sprint(o.mostWaiting), "--equivalence-cache", "-o", "json")
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return figures{}, fmt.Errorf("%w\n%s", err, said.Bytes()[max(0, said.Len()-2000):])
	}
	return readFigures(jobs, output, o.nodes*o.gpus)
}

// readFigures reads the output of `outboard simulate --trace … -o json`.
func readFigures(jobs []job, output []byte, gpus int) (figures, error) {
	numbers := map[string]int{}
	outcomes := make([]outcome, len(jobs))
	for i, j := range jobs {
		numbers["default/"+j.name] = i
		outcomes[i].start = -1
	}
	var f figures
	found := false
	scanner := bufio.NewScanner(bytes.NewReader(output))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := struct {
			Job            string
			Bound          *float64
			GPUSecondsLost float64
			GPUSecondsIdle float64
			Summary        *struct {
				From, To, GPU float64
			}
		}{}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return f, err
		}
		if line.Summary != nil {
			f.Utilisation, f.EndedAt, found = line.Summary.GPU, line.Summary.To/3600, true
			continue
		}
		i, known := numbers[line.Job]
		if !known {
			return f, fmt.Errorf("unknown job, not in the trace: %s", scanner.Text())
		}
		if line.Bound != nil {
			outcomes[i].start = *line.Bound
		}
		f.LostHours += line.GPUSecondsLost / 3600
		f.IdleHours += line.GPUSecondsIdle / 3600
	}
	if !found {
		return f, fmt.Errorf("missing summary")
	}
	f.Useful = f.Utilisation - (f.LostHours+f.IdleHours)/(float64(gpus)*f.EndedAt)
	f.noteWaits(jobs, outcomes, f.EndedAt*3600)
	return f, nil
}

// writeConfigs writes the measured profiles: all of them schedule default-scheduler's pods.
func (o options) writeConfigs() error {
	text, err := os.ReadFile(o.example)
	if err != nil {
		return err
	}
	documents := strings.SplitN(string(text), "\n---\n", 2)
	if len(documents) != 2 {
		return fmt.Errorf("%s: want two documents", o.example)
	}
	for _, name := range []string{"default", "ai", "backfill"} {
		config := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
		if name != "default" {
			if err := yaml.Unmarshal([]byte(documents[0]), &config); err != nil {
				return fmt.Errorf("%s: %w", o.example, err)
			}
			if err := changeProfile(config, name == "backfill"); err != nil {
				return fmt.Errorf("%s: %w", o.example, err)
			}
		}
		made, err := yaml.Marshal(config)
		if err != nil {
			return err
		}
		all := string(made) + "---\n" + documents[1]
		if err := os.WriteFile(filepath.Join(o.folder, name+".yaml"), []byte(all), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// The weight of GPUPacking in the ai-scheduler, as Backfill's README recommends for profiles with both.
const backfillWeight = 10

// changeProfile makes the first profile the only one, removes GPULoad, which needs a Prometheus, and adds Backfill.
func changeProfile(config map[string]any, backfill bool) error {
	profiles, _ := config["profiles"].([]any)
	if len(profiles) == 0 {
		return fmt.Errorf("missing profile")
	}
	profile, _ := profiles[0].(map[string]any)
	config["profiles"] = []any{profile}
	profile["schedulerName"] = "default-scheduler"
	plugins, _ := profile["plugins"].(map[string]any)
	multiPoint, _ := plugins["multiPoint"].(map[string]any)
	enabled, _ := multiPoint["enabled"].([]any)
	enabled = without(enabled, "GPULoad")
	if backfill {
		enabled = append(without(enabled, "Backfill"), map[string]any{"name": "Backfill", "weight": backfillWeight})
	} else {
		enabled = without(enabled, "Backfill")
	}
	if multiPoint == nil {
		return fmt.Errorf("missing plugins.multiPoint")
	}
	multiPoint["enabled"] = enabled
	if args, ok := profile["pluginConfig"].([]any); ok {
		profile["pluginConfig"] = without(args, "GPULoad")
	}
	return nil
}

func without(list []any, name string) []any {
	var kept []any
	for _, entry := range list {
		if its, ok := entry.(map[string]any); !ok || its["name"] != name {
			kept = append(kept, entry)
		}
	}
	return kept
}

func table(load, hours float64, results []result) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\nload %g\n| scheduler | GPUs in use, %% | useful, %% | mean wait, min | p95 wait, min | gangs' mean wait, min | not started, %% | work lost, GPU h | idle in gangs, GPU h | ended at, h | runs | s a run |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n", load)
	for _, name := range schedulers {
		var all []figures
		for _, r := range results {
			if r.Scheduler == name {
				all = append(all, r.figures)
			}
		}
		if len(all) == 0 {
			continue
		}
		cells := []string{titles[name],
			cell(all, 100, 1, func(f figures) float64 { return f.Utilisation }),
			cell(all, 100, 1, func(f figures) float64 { return f.Useful }),
			cell(all, 1.0/60, 1, func(f figures) float64 { return f.QueueMean }),
			cell(all, 1.0/60, 1, func(f figures) float64 { return f.QueueP95 }),
			cell(all, 1.0/60, 1, func(f figures) float64 { return f.GangMean }),
			cell(all, 100, 2, func(f figures) float64 { return f.Unstarted }),
			cell(all, 1, 0, func(f figures) float64 { return f.LostHours }),
			cell(all, 1, 0, func(f figures) float64 { return f.IdleHours }),
			cell(all, 1, 1, func(f figures) float64 { return f.EndedAt }),
			fmt.Sprint(len(all)),
			cell(all, 1, 1, func(f figures) float64 { return f.Seconds })}
		if name == "fluid" {
			for i := 3; i < 9; i++ {
				cells[i] = ""
			}
		}
		fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | "))
	}
	return text.String()
}
