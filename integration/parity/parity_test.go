// Package parity holds the tests that compare Outboard's decisions with kube-scheduler's.
package parity

import (
	"bytes"
	"context"
	"encoding/json"
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

// The test binary plays `outboard simulate` when this is set; its value says how it is to be wrong.
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

// program finds the outboard binary: OUTBOARD_BINARY, or where ./dev build puts it.
func program(t *testing.T) string {
	path := os.Getenv("OUTBOARD_BINARY")
	if path == "" {
		path = filepath.Join("..", "..", "build", "release", "bin", "outboard")
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no outboard program to compare with: OUTBOARD_BINARY is not set and %v", err)
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

func lastSeed() uint64 {
	if testing.Short() {
		return 40
	}
	return 300
}

func TestOutboardDecidesAsKubeScheduler(t *testing.T) {
	outboard := program(t)
	var totals compare.Totals
	different := 0
	for seed := uint64(1); seed <= lastSeed() && different < 5; seed++ {
		c := generate.New(seed, generate.None)
		outcome, err := compare.Run(context.Background(), c, t.TempDir(), outboard)
		if err != nil {
			t.Fatal(err)
		}
		totals.Add(outcome.Totals)
		if !outcome.Differs() {
			continue
		}
		different++
		directory, err := os.MkdirTemp("", fmt.Sprintf("parity-seed-%d-", seed))
		if err != nil {
			t.Fatal(err)
		}
		if err := compare.Reproduce(context.Background(), c, directory, outboard, 60); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(directory, "difference.txt"))
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s\nreproduction: %s", text, directory)
	}
	t.Log(totals)
}

func TestTheSameSeedGivesTheSameFiles(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, 20, 77, 300} {
		var contents [2][]byte
		for i := range contents {
			files, err := generate.New(seed, generate.None).Write(t.TempDir())
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

// Cases that exercise nothing would agree about nothing. The oracle's own cross-check runs here too.
func TestCasesCoverTheSlice(t *testing.T) {
	var totals compare.Totals
	covered := compare.NewCoverage()
	for seed := uint64(1); seed <= 300; seed++ {
		c := generate.New(seed, generate.None)
		outcome, err := compare.Run(context.Background(), c, t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		totals.Add(outcome.Totals)
		covered.Add(len(c.Nodes), outcome.Expected)
	}
	t.Log(totals)
	least := func(what string, got, want int) {
		if got < want {
			t.Errorf("%s: %d, want at least %d", what, got, want)
		}
	}
	least("clusters", totals.Clusters, 300)
	least("pods", totals.Pods, 5000)
	least("scheduled pods", totals.Scheduled, totals.Pods*45/100)
	least("unschedulable pods", totals.Unschedulable, totals.Pods*20/100)
	least("pods in error", totals.Errors, 5)
	least("pods with a random pick", totals.FreeChoices, 1)
	least("searches cut short", covered.CutShort, 100)
	least("pods narrowed to named nodes", covered.Narrowed, 100)
	for _, plugin := range []string{"NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "TaintToleration", "NodeAffinity"} {
		least("pods whose scores differ by "+plugin, covered.Decided[plugin], 700)
	}
	unresolvable, unschedulable := "UnschedulableAndUnresolvable ", "Unschedulable "
	for reason, want := range map[string]int{
		unresolvable + "NodeUnschedulable: node(s) were unschedulable":                          1000,
		unresolvable + "TaintToleration: node(s) had untolerated taint(s)":                      1000,
		unresolvable + "NodeAffinity: node(s) didn't match Pod's node affinity/selector":        1000,
		unresolvable + "NodeAffinity: node(s) didn't match scheduler-enforced node affinity":    500,
		unresolvable + ": node(s) didn't satisfy plugin(s) [NodeAffinity]":                      1000,
		unschedulable + "NodePorts: node(s) didn't have free ports for the requested pod ports": 300,
		unschedulable + "NodeResourcesFit: Too many pods":                                       300,
		unschedulable + "NodeResourcesFit: Insufficient cpu":                                    300,
		unschedulable + "NodeResourcesFit: Insufficient memory":                                 300,
		unschedulable + "NodeResourcesFit: Insufficient ephemeral-storage":                      100,
		unschedulable + "NodeResourcesFit: Insufficient nvidia.com/gpu":                         20,
		unschedulable + "NodeResourcesFit: Insufficient hugepages-2Mi":                          10,
		unresolvable + "NodeResourcesFit: Insufficient cpu":                                     300,
		unresolvable + "NodeResourcesFit: Insufficient memory":                                  300,
		unresolvable + "NodeResourcesFit: Insufficient ephemeral-storage":                       300,
		unresolvable + "NodeResourcesFit: Insufficient example.com/licence":                     300,
		unresolvable + "NodeResourcesFit: Insufficient hugepages-1Gi":                           100,
	} {
		least(reason, covered.Reasons[reason], want)
	}
	for text, want := range map[string]int{"waiting for scheduling gates: [": 100, "pod affinity terms conflict": 10,
		"no nodes available to schedule pods": 20, "running PreScore plugin": 5} {
		count := 0
		for message, n := range covered.Messages {
			if strings.Contains(message, text) {
				count += n
			}
		}
		if text == "running PreScore plugin" {
			count = totals.Errors
		}
		least(text, count, want)
	}
}

// The oracle on a case small enough to be judged by a reader of Kubernetes' documentation.
func TestOracleOnAKnownCase(t *testing.T) {
	directory := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
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
	// The pod `first` on a: free are 0 of 2000m and 2Gi of 4Gi, so (0+50)/2 = 25; utilisation is (0.75, 0.25) without it and
	// (1, 0.5) with it, both 0.25 away from their mean: 50 + (50+75-75)/2 = 75. On b: (87+75)/2 = 81; (0, 0) and
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

// pretendToBeOutboard answers as the oracle does, with one mistake.
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

// spoil makes the mistake in the first verdict in which it can be made.
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
	case mistake == "node" && verdict.Result == oracle.Scheduled:
		verdict.Node += "x"
	case mistake == "message" && verdict.Message != "":
		verdict.Message = strings.TrimSuffix(verdict.Message, ".") + "!"
	default:
		return false
	}
	return true
}

// Every kind of mistake must be found, and no mistake where there is none.
func TestEveryMistakeIsFound(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mistake := range []string{"none", "result", "node", "message", "code", "plugin", "reason", "verdict", "score", "total",
		"skipped plugin", "order", "missing", "format", "crash"} {
		t.Run(mistake, func(t *testing.T) {
			t.Setenv(pretend, mistake)
			for _, seed := range []uint64{3, 7} {
				outcome, err := compare.Run(context.Background(), generate.New(seed, generate.None), t.TempDir(), self)
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
		t.Errorf("difference.txt does not say what differs or how to run it:\n%s", text)
	}
}
