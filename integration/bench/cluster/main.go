// Command cluster measures schedulers side by side on real API servers: the real kube-scheduler, Outboard, and a
// program that binds at once, as the machine's limit. Every measurement has its own control plane; the contenders
// take turns. See README.md for the meaning of the columns.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	controlplane "outboard.dev/integration/control_plane"
)

var (
	nodes      = flag.Int("nodes", 5000, "number of nodes; without this flag workloads with claims have 500")
	pods       = flag.Int("pods", 0, "number of measured pods; 0: the workload's default (basic: 10000)")
	shape      = flag.String("workload", "basic", "workloads: names separated by commas, or all; see README.md")
	initial    = flag.Int("initial", -1, "number of pods that exist before; -1: the workload's default")
	creators   = flag.Int("creators", 30, "number of concurrent creators of pods")
	qps        = flag.Int("qps", 5000, "client QPS and burst of every scheduler")
	runs       = flag.Int("runs", 3, "number of measurements of each contender")
	contenders = flag.String("contenders", "kube-scheduler,outboard,bind-at-once", "contenders, in this order")
	backlog    = flag.Bool("backlog", false, "create the pods before the scheduler starts; no warm-up")
	configFile = flag.String("config", "", "a KubeSchedulerConfiguration for both schedulers; default: the default profile")
	ceiling    = flag.String("ceiling-command", "", "another program for bind-at-once; it gets --kubeconfig FILE --victims N")
	jsonFile   = flag.String("json", "", "write all results into this file")
	readme     = flag.String("readme", "", "write the medians of every workload without a fault into the table of this document")
	keepLogs   = flag.Bool("keep-logs", false, "keep the logs of every measurement")
)

func main() {
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench cluster:", err)
		os.Exit(1)
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func run(ctx context.Context) error {
	names := strings.Split(*contenders, ",")
	for _, name := range names {
		if !slices.Contains([]string{"kube-scheduler", "outboard", "bind-at-once"}, name) {
			return fmt.Errorf("--contenders: %q is not kube-scheduler, outboard or bind-at-once", name)
		}
	}
	if slices.Contains(names, "outboard") {
		if _, err := controlplane.OutboardDirectory(); err != nil {
			return err
		}
	}
	config := controlplane.SchedulerConfig{QPS: *qps, LeaderElect: true}
	if *configFile != "" {
		text, err := os.ReadFile(*configFile)
		if err != nil {
			return err
		}
		config.Text = string(text)
	}
	if slices.Contains(names, "bind-at-once") && *ceiling == "" {
		program, remove, err := buildCeiling(ctx)
		if err != nil {
			return err
		}
		defer remove()
		*ceiling = program
	}
	shapes, err := chosenWorkloads(*shape)
	if err != nil {
		return err
	}
	if slices.Contains(names, "outboard") && slices.ContainsFunc(shapes, func(shape string) bool { return workloads[shape].claims }) {
		if _, err := controlplane.ClaimsHostProgram(); err != nil {
			return err
		}
	}
	faults := 0
	measured := map[string]any{}
	results, works := map[string]map[string][]*Result{}, map[string]workload{}
	for _, shape := range shapes {
		works[shape] = chosenWorkload(shape)
		all, found, err := runWorkload(ctx, shape, works[shape], names, config)
		if err != nil {
			return fmt.Errorf("%s: %w", shape, err)
		}
		faults += found
		measured[shape] = jsonOf(names, all)
		results[shape] = all
		if *readme != "" && found == 0 {
			if err := writeReadme(*readme, summary([]string{shape}, works, results)); err != nil {
				return err
			}
		}
	}
	table := summary(shapes, works, results)
	say("%s", table)
	if *jsonFile != "" {
		data, err := json.MarshalIndent(map[string]any{
			"nodes": *nodes, "creators": *creators, "qps": *qps, "backlog": *backlog, "cpus": runtime.NumCPU(), "workloads": measured,
		}, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*jsonFile, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	if faults > 0 {
		return fmt.Errorf("the checker found %d faults (see above)", faults)
	}
	return nil
}

// writeReadme writes a table into a document; rows of other workloads stay in it.
func writeReadme(file, table string) error {
	document, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := updateTable(string(document), table)
	if err != nil {
		return fmt.Errorf("--readme %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func chosenWorkload(shape string) workload {
	work := workloads[shape]
	if *pods > 0 {
		work.measured = *pods
	}
	if *initial >= 0 {
		work.initial = *initial
	}
	given := work.nodes == 0
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "nodes" })
	if given {
		work.nodes = *nodes
	}
	return work
}

// runWorkload measures every contender --runs times, in turns.
func runWorkload(ctx context.Context, shape string, work workload, names []string, config controlplane.SchedulerConfig,
) (all map[string][]*Result, faults int, err error) {
	say("%s: %s. %d nodes, %d pods after %d, %d creators, QPS %d, %d CPUs; scheduler starts %s the pods exist; %d runs, contenders in turns.",
		shape, work.about, work.nodes, work.measured, work.initial, *creators, *qps, runtime.NumCPU(),
		map[bool]string{false: "before", true: "after"}[*backlog], *runs)
	if work.claims { // bind-at-once does not support claims.
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "bind-at-once" })
	}
	all = map[string][]*Result{}
	for i := range *runs {
		for _, name := range names {
			result, err := measure(ctx, name, config, work)
			if err != nil {
				return nil, 0, fmt.Errorf("run %d of %s: %w", i+1, name, err)
			}
			result.Run = i + 1
			all[name] = append(all[name], result)
			faults += result.relevantFaults()
			say("run %d  %s", i+1, result)
		}
	}
	say("\n%s\n%s", table(names, all), verdict(all))
	return all, faults, nil
}

func jsonOf(names []string, all map[string][]*Result) any {
	medians := map[string]map[string]float64{}
	for _, name := range names {
		medians[name] = map[string]float64{}
		for _, column := range columns {
			medians[name][column.key] = median(all[name], column.value)
		}
	}
	return map[string]any{"runs": all, "medians": medians}
}
