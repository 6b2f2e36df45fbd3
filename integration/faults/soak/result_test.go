package soak

import (
	"strings"
	"testing"
)

func piece(change func(*Result)) *Result {
	r := &Result{Name: "piece-01", Commit: "abc", Seed: 1, Binds: 100, Seconds: 2, Faults: map[string]int{"host killed": 3}, Waits: Histogram{},
		Memory: []Memory{{Process: "shim", Binds: 50, First: 50, Last: 54}}}
	r.Waits.Add(20)
	change(r)
	return r
}

// TestTotal: what fails in one piece fails the whole, and the whole must have enough.
func TestTotal(t *testing.T) {
	second := piece(func(r *Result) {
		r.Name, r.Seed, r.Faults = "piece-02", 2, map[string]int{"host killed": 1, "shim killed": 1}
	})
	for name, test := range map[string]struct {
		first  func(*Result)
		wanted string
	}{
		"good":           {func(*Result) {}, ""},
		"lost":           {func(r *Result) { r.Lost = 1 }, "piece-01: 1 pods lost"},
		"twice":          {func(r *Result) { r.Twice = 2 }, "piece-01: 2 pods bound twice"},
		"overcommitted":  {func(r *Result) { r.Overcommitted = 1 }, "piece-01: 1 binds that overcommit a node"},
		"unfenced":       {func(r *Result) { r.Unfenced = 1 }, "piece-01: 1 unfenced binds"},
		"differs":        {func(r *Result) { r.Differs = 1 }, "piece-01: 1 pods that differ between the API and the history"},
		"grew":           {func(r *Result) { r.Memory[0].Last = 56 }, "piece-01: shim grew from 50.0 to 56.0 MiB"},
		"no memory":      {func(r *Result) { r.Memory = nil }, "piece-01: no process lived long enough to judge its memory"},
		"short":          {func(r *Result) { r.Short = true }, "piece-01: too short for a judgement of memory"},
		"other commit":   {func(r *Result) { r.Commit = "def" }, `piece-01: of commit "def", not "abc"`},
		"the same seed":  {func(r *Result) { r.Seed = 2 }, "piece-01 and piece-02 have the same seed"},
		"too few binds":  {func(r *Result) { r.Binds = 99 }, "199 binds, not 200"},
		"too few faults": {func(r *Result) { r.Faults = nil }, "2 faults, not 5"},
	} {
		t.Run(name, func(t *testing.T) {
			table, failures := Total([]*Result{piece(test.first), second}, 200, 5, "abc")
			if got := strings.Join(failures, "; "); got != test.wanted {
				t.Errorf("got %q, want %q", got, test.wanted)
			}
			for _, wanted := range []string{"| piece-01 | ", "| piece-02 | 2 | 100 | 50 |", "| all | ", "| shim killed | 1 |"} {
				if !strings.Contains(table, wanted) {
					t.Errorf("no %q in\n%s", wanted, table)
				}
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	h := Histogram{}
	if got := h.Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for i := range 100 {
		h.Add(float64(i + 1))
	}
	for q, wanted := range map[float64]float64{0.5: 50, 0.99: 99, 1: 100} {
		if got := h.Quantile(q); got < wanted || got > wanted*step {
			t.Errorf("quantile %v: %v, not within a bucket of %v", q, got, wanted)
		}
	}
}
