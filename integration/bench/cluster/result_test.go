package main

import (
	"math"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

func histogram(sum float64, cumulative map[float64]uint64, count uint64) *dto.MetricFamily {
	h := &dto.Histogram{SampleSum: &sum, SampleCount: &count}
	for upper, at := range cumulative {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &upper, CumulativeCount: &at})
	}
	return &dto.MetricFamily{Metric: []*dto.Metric{{Histogram: h}}}
}

func TestAlgorithmIsTheDifferenceOfTwoHistograms(t *testing.T) {
	const name = "scheduler_scheduling_algorithm_duration_seconds"
	inf := math.Inf(1)
	// Before: 100 slow ones. Since then: 50 in (1, 2] ms, 50 in (2, 4] ms.
	before := histogram(1, map[float64]uint64{0.001: 0, 0.002: 0, 0.004: 0, 0.008: 100, inf: 100}, 100)
	after := histogram(1.2, map[float64]uint64{0.001: 0, 0.002: 50, 0.004: 100, 0.008: 200, inf: 200}, 200)
	r := &Result{}
	r.algorithm(map[string]*dto.MetricFamily{name: before}, map[string]*dto.MetricFamily{name: after})
	for what, pair := range map[string][2]float64{
		"p50": {r.AlgorithmP50, 2}, "p99": {r.AlgorithmP99, 3.96}, "mean": {r.AlgorithmMean, 2},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
	if r.AlgorithmSource != name {
		t.Errorf("source %q", r.AlgorithmSource)
	}
}

func TestAlgorithmPrefersFinerBuckets(t *testing.T) {
	families := map[string]*dto.MetricFamily{
		algorithmHistograms[0]: histogram(0.01, map[float64]uint64{0.0001: 100, 0.0002: 100}, 100),
		algorithmHistograms[1]: histogram(0.01, map[float64]uint64{0.001: 100, 0.002: 100}, 100),
	}
	r := &Result{}
	r.algorithm(nil, families)
	if r.AlgorithmP50 != 0.05 {
		t.Errorf("p50 is %v ms", r.AlgorithmP50)
	}
}

func TestQuantileBeyondTheLastBucketIsItsBound(t *testing.T) {
	if got := quantile(map[float64]float64{1: 10, math.Inf(1): 100}, 100, 0.99); got != 1 {
		t.Errorf("got %v", got)
	}
}

func TestSchedulingThroughput(t *testing.T) {
	begin := time.Unix(0, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	var bound []time.Time
	add := func(n int, from, to float64) {
		for i := range n {
			bound = append(bound, at(from+(to-from)*float64(i)/float64(n)))
		}
	}
	add(10, 0, 1)  // the first second, dropped
	add(100, 1, 2) // 100/s
	// nothing from 2 to 3, merged with the next: 60 in 2 s, 30/s
	add(60, 3, 4)
	add(50, 4, 4.5) // 50 in 0.49 s
	want := (100 + 30 + 50/0.49) / 3
	if got := schedulingThroughput(bound); math.Abs(got-want) > 0.01 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTableComparesMedians(t *testing.T) {
	all := map[string][]*Result{
		"kube-scheduler": {{PodsPerSecond: 100, CPUMillisPerPod: 2}, {PodsPerSecond: 900}, {PodsPerSecond: 200, CPUMillisPerPod: 3}},
		"outboard":       {{PodsPerSecond: 400, CPUMillisPerPod: 0.5}},
	}
	got := table([]string{"kube-scheduler", "outboard"}, all)
	for _, want := range []string{"| pods/s | 200 | 400 | 2.00 |", "| CPU ms/pod | 2.000 | 0.500 | 0.25 |", "| p50 | – | – | – |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := verdict(all); !strings.HasPrefix(got, "Outboard: 2.00 times kube-scheduler's pods/s, at 0.25 of its CPU") {
		t.Error(got)
	}
}

func TestSummaryGoesIntoItsPlace(t *testing.T) {
	works := map[string]workload{"basic": {about: "plain", measured: 10, initial: 2}}
	results := map[string]map[string][]*Result{"basic": {
		"kube-scheduler": {{PodsPerSecond: 100, CPUMillisPerPod: 2, RSSMiB: 300}},
		"outboard":       {{PodsPerSecond: 250, CPUMillisPerPod: 0.5, RSSMiB: 150}},
	}}
	table := summary([]string{"basic"}, works, results)
	if want := "| `basic`: plain | 10, 2 | 100 | 250 | 2.50 | – | – | 0.50 : 2.00 = 0.25 | 150 : 300 |\n"; !strings.HasSuffix(table, want) {
		t.Errorf("got %s want %s", table, want)
	}
	before, after := "above\n"+tableBegins+" with --x -->\n", tableEnds+"\nbelow\n"
	got, err := updateTable(before+"old\n"+after, table)
	if err != nil || got != before+table+after {
		t.Errorf("%v: %s", err, got)
	}
	const head, other = "| a |\n|---|\n", "| `other`: rows stay | 1 |\n"
	rows := func(lines ...string) string { return before + head + strings.Join(lines, "") + after }
	got, err = updateTable(rows("| `one`: old | 1 |\n", other), head+"| `two`: new | 2 |\n| `one`: new | 2 |\n")
	if want := rows("| `one`: new | 2 |\n", other, "| `two`: new | 2 |\n"); err != nil || got != want {
		t.Errorf("%v: got %s want %s", err, got, want)
	}
	if _, err := updateTable(after+before, table); err == nil {
		t.Error("a document without the marks is accepted")
	}
}
