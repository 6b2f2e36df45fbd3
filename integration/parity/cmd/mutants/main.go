// Command mutants breaks rules of plugins in a copy of the tree, one at a time, rebuilds the host and checks that
// parity notices. It exits with 1 if a mutant survives.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"outboard.dev/integration/parity/compare"
	"outboard.dev/integration/parity/generate"
	"outboard.dev/integration/parity/mutants"
)

func main() {
	root := flag.String("root", "..", "root of the repository")
	scratch := flag.String("scratch", "", "directory for the copy and its build, kept and reused (default: a temporary one)")
	only := flag.String("only", "", "run only mutants whose name contains this")
	from := flag.String("from", "", "begin with the first mutant whose name contains this")
	seeds := flag.Int("seeds", 150, "seeds after which a mutant has survived")
	jobs := flag.Int("jobs", runtime.NumCPU(), "number of concurrent compilers and clusters")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	r := &runner{seeds: *seeds, jobs: *jobs}
	survivors, err := r.run(context.Background(), *root, *scratch, *only, *from)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

type runner struct {
	tree        string
	seeds, jobs int
}

func (r *runner) run(ctx context.Context, root, scratch, only, from string) (int, error) {
	all, err := mutants.Load()
	if err != nil {
		return 0, err
	}
	for i := range all {
		if err := all[i].Check(root); err != nil {
			return 0, err
		}
	}
	if scratch == "" {
		if scratch, err = os.MkdirTemp("", "outboard-mutants-"); err != nil {
			return 0, err
		}
		defer os.RemoveAll(scratch)
	}
	r.tree = filepath.Join(scratch, "tree")
	if err := copyTree(ctx, root, r.tree); err != nil {
		return 0, err
	}
	fmt.Println("building the unmodified tree")
	if err := r.build(ctx, "outboard", "outboard-host"); err != nil {
		return 0, err
	}
	caught, survivors, begun := 0, 0, false
	for i := range all {
		if begun = begun || strings.Contains(all[i].Name, from); !begun || !strings.Contains(all[i].Name, only) {
			continue
		}
		verdict, found, err := r.try(ctx, &all[i])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", all[i].Name, err)
		}
		fmt.Printf("%-45s %s\n", all[i].Name, verdict)
		if found {
			caught++
		} else {
			survivors++
		}
	}
	fmt.Printf("%d caught, %d survived\n", caught, survivors)
	return survivors, nil
}

// try builds the host with the mutant and looks for a seed that differs.
func (r *runner) try(ctx context.Context, mutant *mutants.Mutant) (verdict string, caught bool, err error) {
	undo, err := mutant.Apply(r.tree)
	if err != nil {
		return "", false, err
	}
	defer func() {
		if undone := undo(); err == nil {
			err = undone
		}
	}()
	begin := time.Now()
	if err := r.build(ctx, "outboard-host"); err != nil {
		return "", false, fmt.Errorf("does not build: %w", err)
	}
	built := time.Since(begin)
	features, err := generate.ParseFeatures(mutant.Features)
	if err != nil {
		return "", false, err
	}
	directory, err := os.MkdirTemp("", "outboard-mutant-")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(directory)
	batch := compare.Batch{Directory: directory, Outboard: filepath.Join(r.tree, "build", "release", "bin", "outboard"), Jobs: r.jobs}
	verdict = fmt.Sprintf("SURVIVED %d seeds", r.seeds)
	err = batch.Run(ctx, r.seeds, func(i int) *generate.Case { return generate.New(uint64(i+1), features) },
		func(i int, outcome *compare.Outcome) (bool, error) {
			if !outcome.Differs() {
				return true, nil
			}
			caught, verdict = true, fmt.Sprintf("caught by seed %d", i+1)
			if outcome.Failure != nil {
				verdict += " (no answer)"
			}
			return false, nil
		})
	return fmt.Sprintf("%s, %.0f s to build and %.0f s to find", verdict, built.Seconds(), (time.Since(begin) - built).Seconds()), caught, err
}

func (r *runner) build(ctx context.Context, targets ...string) error {
	arguments := append([]string{"-C", filepath.Join("build", "release"), "-j" + strconv.Itoa(r.jobs)}, targets...)
	if _, err := os.Stat(filepath.Join(r.tree, "build", "release", "build.ninja")); err != nil {
		if err := command(ctx, r.tree, "cmake", "--preset", "release"); err != nil {
			return err
		}
	}
	return command(ctx, r.tree, "ninja", arguments...)
}

// copyTree copies the files known to git from the working tree. Unchanged files keep their times in the copy, so that
// its build is incremental.
func copyTree(ctx context.Context, root, tree string) error {
	listing := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	listing.Dir = root
	output, err := listing.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(output), "\x00"), "\x00") {
		from, to := filepath.Join(root, name), filepath.Join(tree, name)
		info, err := os.Stat(from)
		if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
			continue
		} else if err != nil {
			return err
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if there, err := os.ReadFile(to); err == nil && bytes.Equal(there, data) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

func command(ctx context.Context, directory, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = directory
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, output[max(0, len(output)-3000):])
	}
	return nil
}
