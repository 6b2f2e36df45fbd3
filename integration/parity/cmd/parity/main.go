// Command parity compares `outboard simulate` with kube-scheduler's own plugin code on generated cases. Without
// --outboard it runs only the oracle and prints the coverage of the cases.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"outboard.dev/integration/parity/compare"
	"outboard.dev/integration/parity/generate"
)

func main() {
	seeds := flag.String("seeds", "1-300", "seeds, as FIRST-LAST or a list with commas")
	outboard := flag.String("outboard", "", "path of the outboard program")
	output := flag.String("output", "", "directory for reproductions (default: a new temporary one)")
	keep := flag.Bool("keep", false, "keep the files of every case in the output directory, also of equal ones")
	stop := flag.Int("stop", 10, "stop after this many differing clusters; 0: never")
	runs := flag.Int("reduce", 80, "number of runs to reduce a difference; 0: no reduction")
	sequence := flag.Int("sequence", 0, "instead of small clusters: number of pods, one after the other, on clusters of --nodes nodes")
	nodes := flag.String("nodes", "200,1000,5000", "sizes of clusters for --sequence; every seed is run with each")
	jobs := flag.Int("jobs", runtime.NumCPU(), "number of concurrent clusters")
	coverage := flag.Bool("coverage", false, "print the coverage of the cases")
	featureList := flag.String("features", "all", "rules that cases may exercise beside resources, taints, node affinity, ports and images: "+
		"a list of spread, affinity, volumes, preemption, features (that nodes declare) untouched (DynamicResources is enabled) and claims (for devices), or all but the last")
	flag.Parse()
	// The configuration loader's log would hide the report.
	klog.SetLogger(logr.Discard())
	options := options{outboard: *outboard, output: *output, keep: *keep, stop: *stop, runs: *runs, jobs: *jobs,
		coverage: *coverage || *outboard == ""}
	var err error
	if options.features, err = generate.ParseFeatures(*featureList); err == nil {
		options.seeds, err = parseSeeds(*seeds)
	}
	if err == nil {
		err = options.plan(*sequence, *nodes)
	}
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(2)
	}
	differences, err := options.run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(2)
	}
	if differences > 0 {
		os.Exit(1)
	}
}

type options struct {
	seeds []uint64
	// cases create one case each.
	cases            []func() *generate.Case
	features         generate.Features
	outboard, output string
	keep, coverage   bool
	stop, runs, jobs int
}

func parseSeeds(text string) ([]uint64, error) {
	var seeds []uint64
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 32)
		if err != nil {
			return nil, err
		}
		to, err := strconv.ParseUint(last, 10, 32)
		if err != nil {
			return nil, err
		}
		for seed := from; seed <= to; seed++ {
			seeds = append(seeds, seed)
		}
	}
	return seeds, nil
}

// plan lists the cases.
func (o *options) plan(sequence int, nodes string) error {
	for _, seed := range o.seeds {
		if sequence == 0 {
			o.cases = append(o.cases, func() *generate.Case { return generate.New(seed, o.features) })
			continue
		}
		for _, word := range strings.Split(nodes, ",") {
			size, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			o.cases = append(o.cases, func() *generate.Case { return generate.NewSequence(seed, o.features, size, sequence) })
		}
	}
	return nil
}

func (o *options) run(ctx context.Context) (int, error) {
	scratch, err := os.MkdirTemp("", "parity-")
	if err != nil {
		return 0, err
	}
	if o.output == "" {
		o.output = scratch
	}
	var totals compare.Totals
	covered := compare.NewCoverage()
	begin := time.Now()
	different := 0
	kinds := map[string]int{}
	cases := make([]*generate.Case, len(o.cases))
	create := func(i int) *generate.Case {
		cases[i] = o.cases[i]()
		return cases[i]
	}
	batch := compare.Batch{Directory: scratch, Outboard: o.outboard, Jobs: o.jobs}
	if o.keep {
		batch.Directory, batch.Keep = o.output, true
	}
	err = batch.Run(ctx, len(o.cases), create, func(i int, outcome *compare.Outcome) (bool, error) {
		c := cases[i]
		cases[i] = nil
		totals.Add(outcome.Totals)
		covered.Add(len(c.Nodes), outcome.Expected)
		if !outcome.Differs() {
			return true, nil
		}
		different++
		kinds[kind(outcome)]++
		if err := o.report(ctx, c, outcome); err != nil {
			return false, err
		}
		if o.stop > 0 && different == o.stop {
			fmt.Printf("stopped after %d differing clusters\n", different)
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	for kind, count := range kinds {
		fmt.Printf("%d clusters differ first in: %s\n", count, kind)
	}
	if o.coverage {
		covered.Print(os.Stdout)
	}
	fmt.Printf("%v (in %d clusters), %.1f s\n", totals, different, time.Since(begin).Seconds())
	if different == 0 && !o.keep {
		return 0, os.RemoveAll(scratch)
	}
	return different, nil
}

// kind names the first difference of a case; the following ones may be consequences.
func kind(outcome *compare.Outcome) string {
	if outcome.Failure != nil {
		return "no answer"
	}
	what, _, _ := strings.Cut(outcome.Differences[0].What, ",")
	return what
}

func (o *options) report(ctx context.Context, c *generate.Case, outcome *compare.Outcome) error {
	directory := filepath.Join(o.output, fmt.Sprintf("difference-%d-of-%d-nodes", c.Seed, len(c.Nodes)))
	fmt.Printf("seed %d: ", c.Seed)
	if outcome.Failure != nil {
		fmt.Println(outcome.Failure)
	} else {
		fmt.Printf("%d differences, the first: %v\n", len(outcome.Differences), outcome.Differences[0])
	}
	if err := compare.Reproduce(ctx, c, directory, o.outboard, o.runs); err != nil {
		return err
	}
	fmt.Printf("  reproduction: %s/difference.txt\n", directory)
	return nil
}
