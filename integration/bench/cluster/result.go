package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/devices"
	controlplane "outboard.dev/integration/control_plane"
)

// Result is one measurement of one contender. A figure that does not apply is zero.
type Result struct {
	Contender string `json:"contender"`
	Run       int    `json:"run"`

	PodsPerSecond        float64            `json:"podsPerSecond"`        // from the first create to the last bound
	SchedulingThroughput float64            `json:"schedulingThroughput"` // scheduler_perf's average over seconds
	CPUMillisPerPod      float64            `json:"cpuMillisPerPod"`      // all processes of the scheduler
	CPUMillisByProcess   map[string]float64 `json:"cpuMillisByProcess"`
	RSSMiB               float64            `json:"rssMiB"` // all processes, at their peaks
	// What the scheduler's requests and watches cost API server and etcd.
	APIServerCPUMillisPerPod float64         `json:"apiServerCpuMillisPerPod"`
	EtcdCPUMillisPerPod      float64         `json:"etcdCpuMillisPerPod"`
	AlgorithmP50             float64         `json:"algorithmP50Millis,omitzero"`
	AlgorithmP99             float64         `json:"algorithmP99Millis,omitzero"`
	AlgorithmMean            float64         `json:"algorithmMeanMillis,omitzero"`
	AlgorithmSource          string          `json:"algorithmSource,omitempty"`
	CreateToBoundP50         float64         `json:"createToBoundP50Millis"`
	CreateToBoundP99         float64         `json:"createToBoundP99Millis"`
	ForeignLoad              float64         `json:"foreignLoad"` // share of all CPUs that other programs used meanwhile
	Check                    *checker.Report `json:"check"`
	Devices                  *devices.Report `json:"devices,omitempty"` // of workloads with claims
}

// relevantFaults returns the checker's faults that apply to the contender: the ceiling does not check resources.
func (r *Result) relevantFaults() int {
	faults := r.Check.Faults()
	if r.Devices != nil {
		faults += r.Devices.Faults()
	}
	if r.Contender == "bind-at-once" {
		faults -= r.Check.Overcommitted
	}
	return faults
}

func (r *Result) String() string {
	parts := []string{fmt.Sprintf("%-14s", r.Contender)}
	for _, column := range columns {
		if value := column.value(r); value != 0 {
			parts = append(parts, fmt.Sprintf("%s %s", column.title, column.format(value)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.CPUMillisByProcess)) {
		parts = append(parts, fmt.Sprintf("%s %.3f ms CPU/pod", name, r.CPUMillisByProcess[name]))
	}
	if r.ForeignLoad > 0.05 {
		parts = append(parts, fmt.Sprintf("DISTURBED: other programs used %.0f %% of the machine", 100*r.ForeignLoad))
	}
	text := strings.Join(parts, "; ") + "\n       check: " + r.Check.String()
	if r.Devices != nil {
		text += "\n       devices: " + r.Devices.String()
	}
	return text
}

// snapshot holds the values read before and after. The zero value stands for the scheduler's start.
type snapshot struct {
	usage   map[string]controlplane.Usage
	metrics map[string]*dto.MetricFamily
	// The control plane's processes.
	cpu map[string]time.Duration
}

func takeSnapshot(ctx context.Context, c *controlplane.ControlPlane, scheduler controlplane.Scheduler) (snapshot, error) {
	s := snapshot{usage: map[string]controlplane.Usage{}}
	for _, process := range scheduler.Processes() {
		usage, err := process.Usage()
		if err != nil {
			return s, err
		}
		s.usage[process.Name] = usage
	}
	var err error
	if s.cpu, err = c.ProcessCPU(); err != nil {
		return s, err
	}
	s.metrics, err = scheduler.Metrics(ctx)
	return s, err
}

func evaluate(contender string, created, bound []time.Time, before, after snapshot) *Result {
	r := &Result{Contender: contender, CPUMillisByProcess: map[string]float64{}}
	n := float64(len(bound))
	firstCreate := slices.MinFunc(created, time.Time.Compare)
	firstBound, lastBound := slices.MinFunc(bound, time.Time.Compare), slices.MaxFunc(bound, time.Time.Compare)
	if *backlog {
		r.PodsPerSecond = n / lastBound.Sub(firstBound).Seconds()
	} else {
		r.PodsPerSecond = n / lastBound.Sub(firstCreate).Seconds()
	}
	r.SchedulingThroughput = schedulingThroughput(bound)
	for name, usage := range after.usage {
		millis := float64((usage.CPU - before.usage[name].CPU).Microseconds()) / 1000 / n
		r.CPUMillisByProcess[name] = millis
		r.CPUMillisPerPod += millis
		r.RSSMiB += float64(usage.PeakRSS) / (1 << 20)
	}
	if before.cpu != nil { // With a backlog they did other work before.
		others := func(name string) float64 {
			return float64((after.cpu[name] - before.cpu[name]).Microseconds()) / 1000 / n
		}
		r.APIServerCPUMillisPerPod, r.EtcdCPUMillisPerPod = others("kube-apiserver"), others("etcd")
	}
	latencies := make([]time.Duration, len(bound))
	for i := range bound {
		latencies[i] = bound[i].Sub(created[i])
	}
	slices.Sort(latencies)
	r.CreateToBoundP50, r.CreateToBoundP99 = percentile(latencies, 50), percentile(latencies, 99)
	r.algorithm(before.metrics, after.metrics)
	return r
}

func percentile(sorted []time.Duration, p int) float64 {
	return float64(sorted[(len(sorted)-1)*p/100].Microseconds()) / 1000
}

// schedulingThroughput computes the same as scheduler_perf: pods bound in each second, without the first second; a
// second without binds is merged with the next; the average of these rates.
func schedulingThroughput(bound []time.Time) float64 {
	times := slices.SortedFunc(slices.Values(bound), time.Time.Compare)
	begin := times[0]
	var rates []float64
	lastSample, counted := begin, 0
	for tick := begin.Add(time.Second); ; tick = tick.Add(time.Second) {
		upTo, _ := slices.BinarySearchFunc(times, tick, time.Time.Compare)
		if upTo > counted {
			end := tick
			if upTo == len(times) {
				end = times[len(times)-1]
			}
			rates = append(rates, float64(upTo-counted)/max(end.Sub(lastSample).Seconds(), 1e-3))
			lastSample, counted = tick, upTo
		}
		if upTo == len(times) {
			break
		}
	}
	if len(rates) > 2 {
		rates = rates[1:]
	}
	sum := 0.0
	for _, rate := range rates {
		sum += rate
	}
	return sum / float64(len(rates))
}

// algorithmHistograms in order of preference. The first has finer buckets; those of the second begin at a
// millisecond.
var algorithmHistograms = []string{
	"outboard_algorithm_duration_seconds",
	"scheduler_scheduling_algorithm_duration_seconds",
}

func (r *Result) algorithm(before, after map[string]*dto.MetricFamily) {
	for _, name := range algorithmHistograms {
		buckets, sum, count := difference(before[name], after[name])
		if count == 0 {
			continue
		}
		r.AlgorithmSource = name
		r.AlgorithmP50 = quantile(buckets, count, 0.50) * 1000
		r.AlgorithmP99 = quantile(buckets, count, 0.99) * 1000
		r.AlgorithmMean = sum / count * 1000
		return
	}
}

// difference returns the increase of a histogram: cumulative counts by upper bound, the sum and the count.
func difference(before, after *dto.MetricFamily) (buckets map[float64]float64, sum, count float64) {
	buckets = map[float64]float64{}
	add := func(family *dto.MetricFamily, sign float64) {
		for _, metric := range family.GetMetric() {
			histogram := metric.GetHistogram()
			sum += sign * histogram.GetSampleSum()
			count += sign * float64(histogram.GetSampleCount())
			for _, bucket := range histogram.GetBucket() {
				buckets[bucket.GetUpperBound()] += sign * float64(bucket.GetCumulativeCount())
			}
		}
	}
	add(after, 1)
	add(before, -1)
	return buckets, sum, count
}

// quantile interpolates within a bucket, as Prometheus' histogram_quantile does.
func quantile(buckets map[float64]float64, count, q float64) float64 {
	rank, lower, below := q*count, 0.0, 0.0
	for _, upper := range slices.Sorted(maps.Keys(buckets)) {
		if at := buckets[upper]; at >= rank && at > below {
			if math.IsInf(upper, 1) {
				return lower
			}
			return lower + (upper-lower)*(rank-below)/(at-below)
		} else {
			below = at
		}
		lower = upper
	}
	return lower
}
