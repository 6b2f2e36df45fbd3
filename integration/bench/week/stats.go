package main

import (
	"fmt"
	"math"
	"sort"
)

// figures of one week with one scheduler.
type figures struct {
	Utilisation float64 `json:"utilisation"` // share of the GPUs that pods held
	Useful      float64 `json:"useful"`      // the same without repeated work and without GPUs of incomplete gangs
	QueueMean   float64 `json:"queueMean"`   // seconds; jobs that never started waited to the end
	QueueP95    float64 `json:"queueP95"`
	GangMean    float64 `json:"gangMean"`  // seconds, of jobs of several pods
	Unstarted   float64 `json:"unstarted"` // share of the arrived jobs
	LostHours   float64 `json:"lostHours"` // repeated GPU-hours
	IdleHours   float64 `json:"idleHours"` // GPU-hours held by gang members while other members had no node
	EndedAt     float64 `json:"endedAt"`   // hours; earlier than requested if too many pods waited
	Seconds     float64 `json:"seconds"`   // run time of the measurement
}

// noteWaits records the waiting times of jobs that arrived before `end`.
func (f *figures) noteWaits(jobs []job, outcomes []outcome, end float64) {
	f.QueueMean, f.QueueP95, f.Unstarted = queueFigures(jobs, outcomes, end)
	var gangs []job
	var their []outcome
	for i, j := range jobs {
		if j.pods > 1 {
			gangs, their = append(gangs, j), append(their, outcomes[i])
		}
	}
	f.GangMean, _, _ = queueFigures(gangs, their, end)
}

// queueFigures returns the mean and 95th percentile of the waiting times of jobs that arrived before `end`.
func queueFigures(jobs []job, outcomes []outcome, end float64) (mean, p95, unstarted float64) {
	var waits []float64
	never := 0
	for i, j := range jobs {
		if j.arrival >= end {
			continue
		}
		start := outcomes[i].start
		if start < 0 || start > end {
			start = end
			never++
		}
		waits = append(waits, start-j.arrival)
	}
	if len(waits) == 0 {
		return 0, 0, 0
	}
	sort.Float64s(waits)
	for _, wait := range waits {
		mean += wait
	}
	n := float64(len(waits))
	return mean / n, waits[max(0, int(math.Ceil(0.95*n))-1)], float64(never) / n
}

// Student's t for a two-sided 95 % interval, by degrees of freedom from 1; beyond: the normal distribution.
var student = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
	2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045}

// interval returns the mean, and half the width of its 95 % confidence interval; NaN for a single value.
func interval(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, math.NaN()
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	t := 1.96
	if len(values)-2 < len(student) {
		t = student[len(values)-2]
	}
	return mean, t * math.Sqrt(squares/(n-1)/n)
}

// cell is a mean with its interval.
func cell(all []figures, scale float64, digits int, of func(figures) float64) string {
	values := make([]float64, len(all))
	for i, f := range all {
		values[i] = of(f) * scale
	}
	mean, half := interval(values)
	if math.IsNaN(half) {
		return fmt.Sprintf("%.*f", digits, mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", digits, mean, digits, half)
}
