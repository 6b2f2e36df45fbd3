package main

import "sort"

// fluidBound is the most GPU-seconds that any scheduler can have in use until `until`: jobs ask for their GPUs from the moment when they
// arrive, for as long as they run; what is more than there is waits as a fluid does, and is served as soon as there is room. No job can
// have done more by any time than it had asked for, and no machine more than it can:
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
