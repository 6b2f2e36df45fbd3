// Command parity compares `outboard simulate` with kube-scheduler's own plugin code over generated cases.
// Without --outboard it runs the oracle alone and prints what the cases cover.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
	keep := flag.Bool("keep", false, "write the files of every case into the output directory, also of equal ones")
	stop := flag.Int("stop", 10, "stop after so many clusters that differ; 0: never")
	runs := flag.Int("reduce", 80, "runs spent on making a difference small; 0: leave it as it is")
	coverage := flag.Bool("coverage", false, "print what the cases cover")
	flag.Parse()
	// What the configuration loader has to say would drown the report.
	klog.SetLogger(logr.Discard())
	options := options{outboard: *outboard, output: *output, keep: *keep, stop: *stop, runs: *runs,
		coverage: *coverage || *outboard == ""}
	var err error
	if options.seeds, err = parseSeeds(*seeds); err == nil && flag.NArg() > 0 {
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
	seeds            []uint64
	outboard, output string
	keep, coverage   bool
	stop, runs       int
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
	for _, seed := range o.seeds {
		c := generate.New(seed)
		directory := filepath.Join(scratch, "case")
		if o.keep {
			directory = filepath.Join(o.output, fmt.Sprintf("seed-%d", seed))
		}
		if err := os.RemoveAll(filepath.Join(scratch, "case")); err != nil {
			return 0, err
		}
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return 0, err
		}
		outcome, err := compare.Run(ctx, c, directory, o.outboard)
		if err != nil {
			return 0, err
		}
		totals.Add(outcome.Totals)
		covered.Add(len(c.Nodes), outcome.Expected)
		if !outcome.Differs() {
			continue
		}
		different++
		kinds[kind(outcome)]++
		if err := o.report(ctx, c, outcome); err != nil {
			return 0, err
		}
		if o.stop > 0 && different == o.stop {
			fmt.Printf("stopped after %d clusters that differ\n", different)
			break
		}
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

// kind says in one word where a case differs first; what follows may be a consequence.
func kind(outcome *compare.Outcome) string {
	if outcome.Failure != nil {
		return "no answer"
	}
	what, _, _ := strings.Cut(outcome.Differences[0].What, ",")
	return what
}

func (o *options) report(ctx context.Context, c *generate.Case, outcome *compare.Outcome) error {
	directory := filepath.Join(o.output, fmt.Sprintf("difference-%d", c.Seed))
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
