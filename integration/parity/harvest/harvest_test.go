package harvest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Upstream's tests take minutes to build: go test ./parity/harvest -args -packages nodeports,tainttoleration, or all
var packages = flag.String("packages", "", "packages of upstream's plugins to harvest, or all; empty: skip")

func TestUpstreamsTablesThroughOutboard(t *testing.T) {
	if *packages == "" {
		t.Skip("-packages is empty")
	}
	list := strings.Split(*packages, ",")
	if *packages == "all" {
		list = Packages
	}
	outboard := os.Getenv("OUTBOARD_BINARY")
	if outboard == "" {
		outboard = "../../../build/release/bin/outboard"
	}
	outboard, err := filepath.Abs(outboard)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := Record(context.Background(), "../..", filepath.Join(cache, "outboard", "harvest", "kubernetes"), t.TempDir(), list)
	if err != nil {
		t.Fatal(err)
	}
	results, err := Replay(context.Background(), cases, outboard, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for group, result := range results {
		slices.Sort(result.Refusals)
		for i, refusal := range slices.Compact(result.Refusals) {
			if i < 12 {
				t.Logf("%s: not counted: %s", group.Plugin, refusal)
			}
		}
		for i, failure := range result.Failed {
			if i == 10 {
				t.Errorf("%s: … and %d more", group.Plugin, len(result.Failed)-i)
				break
			}
			t.Errorf("%s: %s", group.Plugin, failure)
		}
	}
	var report bytes.Buffer
	Report(&report, results)
	t.Logf("\n%s", report.String())
	if share := Share(results); share < 80 {
		t.Errorf("%.1f %% of the rows under the default feature gates are replayed, want at least 80 %%", share)
	}
}

func TestReportCountsRowsOfTheDefaultGates(t *testing.T) {
	results := map[Group]*Result{
		{"A", "default"}:        {Rows: 10, Taken: 9, Equal: 8, Skipped: map[string][]string{SkipError: {"TestX"}}},
		{"A", "X=true"}:         {Rows: 5, Taken: 1, Equal: 1, Skipped: map[string][]string{SkipGates: {"TestX", "TestX", "TestY", "TestY"}}},
		{"B", "put to default"}: {Rows: 6, Taken: 3, Equal: 3, Skipped: map[string][]string{SkipPlaced: {"TestZ", "TestZ", "TestW"}}},
	}
	if share := Share(results); share != 75 {
		t.Errorf("share %v, want 75", share)
	}
	var report bytes.Buffer
	Report(&report, results)
	for _, want := range []string{
		"A default 10 10 9 8 1 1 90.0 %\n", "A X=true 5 0 1 1 0 4 -\n", "all default 16 16 12 11 1 4 75.0 %\n",
		"B, put to default: 3 skipped: " + SkipPlaced + " (TestW, TestZ)\n",
	} {
		if text := regexp.MustCompile(" +").ReplaceAllString(report.String(), " "); !strings.Contains(text, want) {
			t.Errorf("missing %q in:\n%s", want, text)
		}
	}
}

// The rewritten file must keep its content, with one more function for each recorded one.
func TestRewriteAddsRecorders(t *testing.T) {
	source := `package sample

import (
	"bytes"
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

type Plugin struct{}

func New(_ context.Context, _ runtime.Object, _ fwk.Handle) (fwk.Plugin, error) { return &Plugin{}, nil }

func (pl *Plugin) Filter(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status { return nil }

// Filter of another kind stays as it is.
func (pl *Plugin) Score(a, b int) int { return a + b }
`
	text, name, err := rewrite([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if name != "sample" {
		t.Errorf("package %q", name)
	}
	for _, want := range []string{
		"func unrecordedNew(_ context.Context",
		"func New(p0 context.Context, p1 runtime.Object, p2 fwk.Handle) (fwk.Plugin, error) {\n\tr0, r1 := unrecordedNew(p0, p1, p2)\n\tharvestMade(r0, p1, p2, nil)\n\treturn r0, r1\n}",
		"func (pl *Plugin) unrecordedFilter(ctx context.Context",
		"func (harvested *Plugin) Filter(p0 context.Context, p1 fwk.CycleState, p2 *v1.Pod, p3 fwk.NodeInfo) (*fwk.Status) {\n" +
			"\tr0 := harvested.unrecordedFilter(p0, p1, p2, p3)\n\tharvestFilter(harvested, p1, p2, p3, r0)\n\treturn r0\n}",
		"func (pl *Plugin) Score(a, b int) int { return a + b }",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("missing: %s\nin:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "unrecordedScore") {
		t.Error("a method with other parameters is recorded")
	}
	if !slices.Contains(Packages, "nodeaffinity") {
		t.Error("nodeaffinity is not harvested")
	}
}
