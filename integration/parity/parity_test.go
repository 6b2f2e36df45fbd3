// Package parity holds the tests that compare Outboard's decisions with kube-scheduler's.
package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"outboard.dev/integration/parity/compare"
	"outboard.dev/integration/parity/generate"
	"outboard.dev/integration/parity/oracle"
)

// If set, the test binary acts as `outboard simulate`; the value is the mistake that it makes.
const pretend = "PARITY_TEST_PRETEND"

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	if mistake := os.Getenv(pretend); mistake != "" {
		if err := pretendToBeOutboard(mistake, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const missing = "missing programs of Outboard: see OUTBOARD_BINARY and CLAIMS_HOST"

// program returns the outboard program: OUTBOARD_BINARY, or the one of ./dev build; without either an empty string.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("OUTBOARD_BINARY")
	if path == "" {
		path = filepath.Join("..", "..", "build", "release", "bin", "outboard")
		if _, err := os.Stat(path); err != nil {
			return ""
		}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(absolute); err != nil {
		t.Fatal(err)
	}
	return absolute
}

// The scope of the comparison. A nightly run has more clusters: go test ./parity -timeout 5h -args -seeds 2000
var (
	featureList = flag.String("features", "all", "features of the compared cases; see generate.ParseFeatures")
	seedCount   = flag.Uint64("seeds", 300, "number of clusters of the comparison and of the coverage test")
	denseSeeds  = flag.Uint64("preemption-seeds", 150, "number of small full clusters, if the features include preemption")
)

func served(t *testing.T) generate.Features {
	features, err := generate.ParseFeatures(*featureList)
	if err != nil {
		t.Fatal(err)
	}
	return features
}

// seeds returns the number of clusters, which -short reduces.
func seeds(count uint64) int {
	if testing.Short() {
		count = min(count, 40)
	}
	return int(count)
}

func TestOutboardDecidesAsKubeScheduler(t *testing.T) {
	set{served(t), seeds(*seedCount)}.mustAgree(t)
}

func TestOutboardPreemptsAsKubeScheduler(t *testing.T) {
	if served(t)&generate.Preemption == 0 {
		t.Skip("preemption is not among the features")
	}
	set{generate.Preemption, seeds(*denseSeeds)}.mustAgree(t)
}

// Hundreds of pods, one after the other: the same nodes in the same order, with sampling of nodes.
func TestOutboardPlacesSequencesAsKubeScheduler(t *testing.T) {
	features, sizes, outboard := served(t), []int{200, 1000, 5000}, program(t)
	if outboard == "" {
		t.Skip(missing)
	}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%d nodes", size), func(t *testing.T) {
			create := func(i int) *generate.Case { return generate.NewSequence(uint64(size+i), features, size, 200) }
			run(t, outboard, 1, create).mustAgree(t, outboard, create)
		})
	}
}

func TestTheSameSeedGivesTheSameFiles(t *testing.T) {
	for i, seed := range []uint64{1, 2, 3, 20, 77, 300, 1, 20} {
		features := generate.All
		if i > 5 {
			features = generate.Claims
		}
		var contents [2][]byte
		for i := range contents {
			files, err := generate.New(seed, features).Write(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{files.Cluster, files.Pods, files.Config} {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				contents[i] = append(contents[i], data...)
			}
		}
		if !bytes.Equal(contents[0], contents[1]) {
			t.Errorf("seed %d gives different files", seed)
		}
	}
}

// writer writes files into a directory of the test.
func writer(t *testing.T) func(name, text string) string {
	directory := t.TempDir()
	return func(name, text string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// The oracle on a case small enough to check by hand with Kubernetes' documentation.
func TestOracleOnAKnownCase(t *testing.T) {
	write := writer(t)
	cluster := write("cluster.yaml", `
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: "4", memory: 4Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: c}, spec: {taints: [{key: k, effect: NoSchedule}]}, status: {allocatable: {cpu: "4", memory: 4Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: r}, spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}}
`)
	pods := write("pods.yaml", `
{apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {containers: [{name: c, resources: {limits: {cpu: 3500m, memory: 1Gi}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: first}, spec: {priority: 10, containers: [{name: c, resources: {requests: {cpu: "0.5", memory: 1Gi}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: gated}, spec: {priority: 99, schedulingGates: [{name: x}, {name: w}], containers: [{name: c}]}}
`)
	config := write("config.yaml", `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {disabled: [{name: PodTopologySpread}, {name: InterPodAffinity}, {name: DefaultPreemption}, {name: DynamicResources}]}}
`)
	verdicts, err := oracle.RunFiles(context.Background(), cluster, pods, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	if err := oracle.Write(&lines, verdicts); err != nil {
		t.Fatal(err)
	}
	// The pod `first` on a: free are 0 of 2000m and 2Gi of 4Gi, so (0+50)/2 = 25; utilisation is (0.75, 0.25) without
	// it and (1, 0.5) with it, both 0.25 from their mean: 50 + (50+75-75)/2 = 75. On b: (87+75)/2 = 81; (0, 0) and
	// (0.125, 0.25): 50 + (50+93-100)/2 = 71. Taints: 3 x 100.
	want := []string{
		`{"pod":"default/first","result":"scheduled","node":"b","message":"","filter":{"c":{"code":"UnschedulableAndUnresolvable","plugin":"TaintToleration","reasons":["node(s) had untolerated taint(s)"]}},` +
			`"scores":{"a":{"total":400,"plugins":{"ImageLocality":0,"NodeResourcesBalancedAllocation":75,"NodeResourcesFit":25,"TaintToleration":300}},` +
			`"b":{"total":452,"plugins":{"ImageLocality":0,"NodeResourcesBalancedAllocation":71,"NodeResourcesFit":81,"TaintToleration":300}}},"nominatedNode":"","victims":[]}`,
		`{"pod":"default/late","result":"scheduled","node":"b","message":"","filter":{` +
			`"a":{"code":"UnschedulableAndUnresolvable","plugin":"NodeResourcesFit","reasons":["Insufficient cpu"]},` +
			`"c":{"code":"UnschedulableAndUnresolvable","plugin":"TaintToleration","reasons":["node(s) had untolerated taint(s)"]}},"scores":{},"nominatedNode":"","victims":[]}`,
		`{"pod":"default/gated","result":"unschedulable","node":"","message":"waiting for scheduling gates: [x w]","filter":{},"scores":{},"nominatedNode":"","victims":[]}`,
	}
	got := strings.Split(strings.TrimSpace(lines.String()), "\n")
	if len(got) != len(want) {
		t.Fatalf("got %d lines:\n%s", len(got), lines.String())
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

// pretendToBeOutboard answers like the oracle, with one mistake.
func pretendToBeOutboard(mistake string, arguments []string) error {
	flags := map[string]string{}
	for i := 1; i+1 < len(arguments); i += 2 {
		flags[arguments[i]] = arguments[i+1]
	}
	verdicts, err := oracle.RunFiles(context.Background(), flags["--cluster"], flags["--pods"], flags["--config"], nil)
	if err != nil {
		return err
	}
	if mistake == "order" && len(verdicts) > 1 {
		verdicts[0], verdicts[1] = verdicts[1], verdicts[0]
	}
	if mistake == "missing" && len(verdicts) > 0 {
		verdicts = verdicts[1:]
	}
	if mistake == "crash" {
		return fmt.Errorf("something broke")
	}
	for i := range verdicts {
		if spoil(&verdicts[i], mistake) {
			break
		}
	}
	var lines bytes.Buffer
	if err := oracle.Write(&lines, verdicts); err != nil {
		return err
	}
	text := lines.String()
	if mistake == "format" {
		text = strings.ReplaceAll(text, `"victims":[]`, `"victims":null`)
	}
	_, err = os.Stdout.WriteString(text)
	return err
}

// spoil makes the mistake in the first verdict that allows it.
func spoil(verdict *oracle.Verdict, mistake string) bool {
	for node, rejection := range verdict.Filter {
		switch mistake {
		case "code":
			rejection.Code = map[string]string{"Unschedulable": "UnschedulableAndUnresolvable", "UnschedulableAndUnresolvable": "Unschedulable"}[rejection.Code]
		case "plugin":
			rejection.Plugin += "X"
		case "reason":
			rejection.Reasons = append(rejection.Reasons, "more")
		case "verdict":
			delete(verdict.Filter, node)
			return true
		default:
			continue
		}
		verdict.Filter[node] = rejection
		return true
	}
	for node, score := range verdict.Scores {
		switch mistake {
		case "score":
			for plugin := range score.Plugins {
				score.Plugins[plugin]++
				return true
			}
		case "total":
			score.Total--
			verdict.Scores[node] = score
			return true
		case "skipped plugin":
			score.Plugins["NodePorts"] = 0
			return true
		}
	}
	switch {
	case mistake == "result" && verdict.Result != oracle.Scheduled:
		verdict.Result = map[string]string{oracle.Unschedulable: oracle.Error, oracle.Error: oracle.Unschedulable}[verdict.Result]
	case mistake == "victims" && len(verdict.Victims) > 0:
		verdict.Victims = verdict.Victims[1:]
	case mistake == "order of victims" && len(verdict.Victims) > 1:
		verdict.Victims[0], verdict.Victims[1] = verdict.Victims[1], verdict.Victims[0]
	case mistake == "nominated node" && verdict.NominatedNode != "":
		verdict.NominatedNode = ""
	case mistake == "node" && verdict.Result == oracle.Scheduled:
		verdict.Node += "x"
	case mistake == "message" && verdict.Message != "":
		verdict.Message = strings.TrimSuffix(verdict.Message, ".") + "!"
	default:
		return false
	}
	return true
}

// Every kind of mistake must be found, and none in a correct answer.
func TestEveryMistakeIsFound(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mistake := range []string{"none", "result", "node", "message", "code", "plugin", "reason", "verdict", "score", "total",
		"skipped plugin", "order", "missing", "victims", "order of victims", "nominated node", "format", "crash"} {
		t.Run(mistake, func(t *testing.T) {
			t.Setenv(pretend, mistake)
			for _, seed := range []uint64{3, 8} {
				outcome, err := compare.Run(context.Background(), generate.New(seed, generate.Preemption), t.TempDir(), self)
				if err != nil {
					t.Fatal(err)
				}
				if outcome.Differs() == (mistake == "none") {
					t.Errorf("seed %d: mistake %q, differences %v, failure %v", seed, mistake, outcome.Differences, outcome.Failure)
				}
			}
		})
	}
}

func TestReproductionIsSmall(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(pretend, "score")
	directory := t.TempDir()
	if err := compare.Reproduce(context.Background(), generate.New(3, generate.None), directory, self, 100); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(directory, "expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var verdict oracle.Verdict
	if err := json.Unmarshal(data, &verdict); err != nil {
		t.Fatalf("want exactly one pod: %v\n%s", err, data)
	}
	// A score needs two nodes.
	if len(verdict.Scores) != 2 || len(verdict.Filter) != 0 {
		t.Errorf("not reduced: %s", data)
	}
	text, err := os.ReadFile(filepath.Join(directory, "difference.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "score of ") || !strings.Contains(string(text), "simulate --cluster "+directory) {
		t.Errorf("difference.txt has no difference or no command to reproduce it:\n%s", text)
	}
}
