package upstream

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	controlplane "outboard.dev/integration/control_plane"
)

// Upstream's tests take minutes to build and to run: go test ./upstream -timeout 90m -args -packages filters,taint,
// or all.
var (
	packages = flag.String("packages", "", "packages of upstream's integration tests to run, or all; empty: skip")
	only     = flag.String("only", "", "only the matching tests of these packages, like go test's -run")
)

func TestUpstreamsSuite(t *testing.T) {
	if *packages == "" {
		t.Skip("-packages is empty")
	}
	list := strings.Split(*packages, ",")
	if *packages == "all" {
		list = Packages
	}
	programs, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := controlplane.BuildTools(t.Context(), false, t.Logf); err != nil {
		t.Fatal(err)
	}
	tools, err := controlplane.ToolsDirectory()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := os.Getenv("OUTBOARD_UPSTREAM_FOLDER")
	if folder == "" {
		folder = t.TempDir()
	}
	options := Options{Module: "..", Copied: filepath.Join(cache, "outboard", "upstream", "kubernetes"), Folder: folder, Programs: programs,
		Etcd: tools, Run: *only}
	for _, name := range list {
		t.Run(strings.ReplaceAll(name, "/", "."), func(t *testing.T) {
			results, err := Run(t.Context(), options, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, result := range results {
				t.Run(strings.ReplaceAll(result.Test, "/", "."), func(t *testing.T) {
					switch result.Outcome {
					case Failed:
						t.Error(result.Output)
					case Skipped:
						t.Skip(result.Reason + ": " + result.Why)
					}
				})
			}
			t.Logf("%s\n%s", name, Table(results))
		})
	}
}

// Every rule has a reason from the list, and a name that can match.
func TestRulesAreSound(t *testing.T) {
	names := []string{}
	for _, rule := range rules.Skip {
		if !isReason(rule.Reason) || rule.Why == "" {
			t.Errorf("%+v has no reason from the list", rule)
		}
		names = append(names, rule.Test)
	}
	for _, rule := range rules.Neutral {
		names = append(names, rule.Test)
	}
	for _, name := range names {
		if _, err := regexp.Compile(name); err != nil || strings.Contains(name, " ") {
			t.Errorf("%q matches no test: %v", name, err)
		}
	}
}

func TestRunIsWaitedFor(t *testing.T) {
	source := "package p\n\nfunc f() {\n\tgo testCtx.Scheduler.Run(ctx)\n\tgo controller.Run(ctx)\n\tgo a.b.Scheduler.Run(x)\n}\n"
	want := "package p\n\nfunc f() {\n\ttestCtx.Scheduler.Run(ctx)\n\tgo controller.Run(ctx)\n\ta.b.Scheduler.Run(x)\n}\n"
	if text, err := waitForRun([]byte(source)); err != nil || string(text) != want {
		t.Errorf("%v:\n%s", err, text)
	}
}

func TestReadResultsTakesLeavesAndWantsAReason(t *testing.T) {
	text := `{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/green"}
{"Action":"pass","Test":"TestA/green","Elapsed":1.5}
{"Action":"output","Test":"TestA/gated","Output":"    x.go:1: not run: gate: A=false\n"}
{"Action":"skip","Test":"TestA/gated"}
{"Action":"pass","Test":"TestA"}
{"Action":"output","Test":"TestB/why","Output":"    x.go:1: not run: weather: rain\n"}
{"Action":"skip","Test":"TestB/why"}
{"Action":"pass","Test":"TestB"}
{"Action":"output","Test":"TestC/bad","Output":"wrong\n"}
{"Action":"fail","Test":"TestC/bad"}
{"Action":"fail","Test":"TestC"}
{"Action":"fail"}
`
	results, err := readResults(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{{Test: "TestA/gated", Outcome: Skipped, Reason: "gate", Why: "A=false"}, {Test: "TestA/green", Outcome: Passed, Seconds: 1.5},
		{Test: "TestB/why", Outcome: Failed}, {Test: "TestC/bad", Outcome: Failed, Output: "wrong\n"}}
	got := slices.Clone(results)
	if got[2].Output == "" {
		t.Error("a skipped test without a reason is not reported")
	}
	got[2].Output = ""
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if table := Table(results); !strings.HasSuffix(table, "1 passed, 2 failed, 1 skipped\n") || !strings.Contains(table, "TestA/gated: skipped: gate: A=false\n") {
		t.Error(table)
	}
}

// A leaking goroutine, or a panic outside a test, fails only the package.
func TestReadResultsCountsAPackageThatFailsByItself(t *testing.T) {
	text := "{\"Action\":\"pass\",\"Test\":\"TestA\"}\n{\"Action\":\"output\",\"Output\":\"leak\\n\"}\n{\"Action\":\"fail\"}\n"
	results, err := readResults(strings.NewReader(text))
	if err != nil || len(results) != 2 || results[1].Outcome != Failed || results[1].Output != "leak\n" {
		t.Errorf("%+v, %v", results, err)
	}
}
