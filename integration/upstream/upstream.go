// Package upstream runs kube-scheduler's own integration tests with Outboard instead of the scheduler. Upstream's
// sources are read from the module cache; generated files are outside the repository.
package upstream

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"outboard.dev/integration/upstream/kubecopy"
)

// Prefix is the path of upstream's tests; Packages use only the API; Queueing has the table of which events requeue
// which pods.
const (
	Prefix   = "k8s.io/kubernetes/test/integration/scheduler"
	Queueing = "queueing"
)

var Packages = []string{"filters", "scoring", "scheduler", "taint", "preemption", "preemption/misc", "preemption/nominatednodename", Queueing}

//go:embed scheduler.go.txt
var schedulerText string

//go:embed util.go.txt
var utilText string

//go:embed queueing_test.go.txt
var queueingText string

// Options are the paths of a run.
type Options struct {
	// Module is the directory of a Go module that requires k8s.io/kubernetes, Copied that of its copy, Folder that of
	// files of this run, including logs.
	Module, Copied, Folder string
	// Programs is the directory of Outboard's programs, Etcd that of etcd.
	Programs, Etcd string
	// Run, if not empty, limits the tests, like go test's flag.
	Run string
}

// substituted are upstream's functions and methods that ours replace.
var substituted = map[string][]string{
	"pkg/scheduler/scheduler.go":    {"New", "Scheduler.Run"},
	"pkg/scheduler/schedule_one.go": {"Scheduler.ScheduleOne"},
	"test/integration/util/util.go": {"InitTestAPIServer", "InitTestSchedulerWithOptions"},
}

// Run builds and runs the tests of a package, and returns their results.
func Run(ctx context.Context, options Options, packageName string) ([]Result, error) {
	tree, err := kubecopy.Prepare(ctx, options.Module, options.Copied, options.Folder)
	if err != nil {
		return nil, err
	}
	if err := substitute(tree); err != nil {
		return nil, err
	}
	rules, err := json.Marshal(rules)
	if err != nil {
		return nil, err
	}
	rulesFile := filepath.Join(options.Folder, "rules.json")
	if err := os.WriteFile(rulesFile, rules, 0o644); err != nil {
		return nil, err
	}
	logs := filepath.Join(options.Folder, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	run := options.Run
	if run == "" && packageName == Queueing {
		run = "^TestOutboard"
	}
	arguments := []string{"-json", "-count=1", "-timeout=60m"}
	if run != "" {
		arguments = append(arguments, "-run="+run)
	}
	tests := tree.Go(ctx, "test", append(arguments, importPath(packageName))...)
	tests.Env = append(os.Environ(), "OUTBOARD_BIN="+options.Programs, "OUTBOARD_UPSTREAM_RULES="+rulesFile, "OUTBOARD_UPSTREAM_LOGS="+logs,
		"PATH="+options.Etcd+string(filepath.ListSeparator)+os.Getenv("PATH"), "KUBE_INTEGRATION_ETCD_URL=http://127.0.0.1:1")
	output, err := os.Create(filepath.Join(logs, strings.ReplaceAll(packageName, "/", "-")+".json"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	var stderr strings.Builder
	tests.Stdout, tests.Stderr = output, &stderr
	failed := tests.Run()
	if _, err := output.Seek(0, 0); err != nil {
		return nil, err
	}
	results, err := readResults(output)
	if err == nil && len(results) == 0 {
		err = fmt.Errorf("go test ran no test: %w\n%s", errors.Join(failed), stderr.String())
	}
	return results, err
}

func importPath(packageName string) string {
	if packageName == "scheduler" {
		return Prefix
	}
	return Prefix + "/" + packageName
}

func substitute(tree *kubecopy.Tree) error {
	paths, err := filepath.Glob(filepath.Join(tree.Original, "test/integration/scheduler", "*_test.go"))
	if err != nil {
		return err
	}
	for _, name := range Packages {
		more, err := filepath.Glob(filepath.Join(tree.Original, "test/integration/scheduler", name, "*_test.go"))
		if err != nil {
			return err
		}
		paths = append(paths, more...)
	}
	files := map[string][]string{}
	for _, path := range paths {
		relative, err := filepath.Rel(tree.Original, path)
		if err != nil {
			return err
		}
		files[relative] = nil
	}
	maps.Copy(files, substituted)
	for path, names := range files {
		err := tree.Rewrite(path, func(source []byte) ([]byte, error) {
			text, count, err := kubecopy.Rename(source, "inProcess", func(_ *token.FileSet, _ *ast.File, function *ast.FuncDecl) (bool, error) {
				return slices.Contains(names, qualified(function)), nil
			})
			if err == nil && count != len(names) {
				err = fmt.Errorf("not all of %v exist", names)
			}
			if err != nil {
				return nil, err
			}
			return waitForRun(text)
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(tree.Add("pkg/scheduler/zz_outboard.go", schedulerText), tree.Add("test/integration/util/zz_outboard.go", utilText),
		tree.Add("test/integration/scheduler/queueing/zz_outboard_test.go", queueingText))
}

// waitForRun turns `go ….Scheduler.Run(…)` into ordinary calls: ours returns when Outboard is ready.
func waitForRun(source []byte) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var cuts [][2]int
	ast.Inspect(file, func(node ast.Node) bool {
		statement, ok := node.(*ast.GoStmt)
		if !ok {
			return true
		}
		method, ok := statement.Call.Fun.(*ast.SelectorExpr)
		if !ok || method.Sel.Name != "Run" {
			return true
		}
		if of, ok := method.X.(*ast.SelectorExpr); ok && of.Sel.Name == "Scheduler" {
			cuts = append(cuts, [2]int{set.Position(statement.Go).Offset, set.Position(statement.Call.Pos()).Offset})
		}
		return true
	})
	for _, cut := range slices.Backward(cuts) {
		source = slices.Delete(source, cut[0], cut[1])
	}
	return source, nil
}

// qualified returns a function's name, with that of its receiver's type.
func qualified(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + function.Name.Name
	}
	return ""
}
