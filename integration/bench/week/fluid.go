package main

import "sort"

// fluidBound is the maximum of GPU-seconds that any scheduler can have in use until `until`. Jobs request their GPUs
// from their arrival on, for as long as they run; demand above the capacity waits like a fluid and is served as soon
// as there is room. At no time can jobs have done more than they had requested, or a machine more than its capacity:
// S(T) <= min over s <= T of A(s) + C (T - s).
func fluidBound(jobs []job, gpus int, until float64) float64 {
	type step struct {
		when float64
		gpus float64
	}
	var steps []step
	for _, j := range jobs {
		wanted := float64(j.pods * j.gpus)
		steps = append(steps, step{j.arrival, wanted}, step{j.arrival + j.run, -wanted})
	}
	sort.Slice(steps, func(a, b int) bool { return steps[a].when < steps[b].when })
	capacity := float64(gpus)
	bound := capacity * until // s = 0
	asked, rate, last := 0.0, 0.0, 0.0
	at := func(when float64) {
		asked += rate * (when - last)
		last = when
		bound = min(bound, asked+capacity*(until-when))
	}
	for _, s := range steps {
		if s.when >= until {
			break
		}
		at(s.when)
		rate += s.gpus
	}
	at(until)
	return bound
}
