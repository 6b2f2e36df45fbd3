package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"outboard.dev/integration/bench/load"
)

// sample is an event with a start and a duration.
type sample struct {
	began time.Time
	took  time.Duration
	// Of a cycle: without the time in the queue; and since the pod's first attempt, which may be another one.
	inCycle, sinceFirstTry time.Duration
}

// A line of the shim's log at level 2, for every pod that got a node.
var placed = regexp.MustCompile(`^I(\d{8} \d\d:\d\d:\d\d\.\d{6}) .* goes to node \S+: attempt \d+ of (.*), (\S+) after it was queued, of which (\S+) in this cycle, (\S+) after it was first tried`)

// readCycles reads the time from the queue to the node, and counts the attempts whose calls went to more than one
// instance of the host.
func readCycles(log string) (cycles []sample, mixed int, err error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		match := placed.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		ended, err := time.ParseInLocation("20060102 15:04:05.000000", match[1], time.Local)
		if err != nil {
			return nil, 0, err
		}
		took, err := time.ParseDuration(match[3])
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		inCycle, err := time.ParseDuration(match[4])
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		sinceFirstTry, err := time.ParseDuration(match[5])
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		cycles = append(cycles, sample{ended.Add(-took), took, inCycle, sinceFirstTry})
		instances := strings.Split(match[2], ", ")
		slices.Sort(instances)
		if len(slices.Compact(instances)) > 1 {
			mixed++
		}
	}
	return cycles, mixed, lines.Err()
}

// withoutQueue returns the durations of the cycles themselves.
func withoutQueue(cycles []sample) []sample {
	result := slices.Clone(cycles)
	for i := range result {
		result[i].began = result[i].began.Add(result[i].took - result[i].inCycle)
		result[i].took = result[i].inCycle
	}
	return result
}

// quantiles are in milliseconds.
type quantiles struct{ n, p50, p99, max float64 }

func quantilesOf(samples []sample) quantiles {
	values := make([]float64, 0, len(samples))
	for _, s := range samples {
		values = append(values, float64(s.took.Microseconds())/1000)
	}
	return quantiles{float64(len(values)), load.Quantile(values, 0.5), load.Quantile(values, 0.99), load.Quantile(values, 1)}
}

// between returns the samples that began in the interval.
func between(samples []sample, from, to time.Time) (inside []sample) {
	for _, s := range samples {
		if !s.began.Before(from) && s.began.Before(to) {
			inside = append(inside, s)
		}
	}
	return inside
}

// around returns the samples that began within a second of a switch, before or after it.
func around(samples []sample, switches []time.Time) (close []sample) {
	for _, s := range samples {
		next, _ := slices.BinarySearchFunc(switches, s.began, time.Time.Compare)
		if next > 0 && s.began.Sub(switches[next-1]) < near || next < len(switches) && switches[next].Sub(s.began) < near {
			close = append(close, s)
		}
	}
	return close
}
