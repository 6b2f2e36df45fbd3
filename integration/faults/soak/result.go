// Package soak binds very many pods while processes, requests and objects fail at random, and checks each bind in
// etcd's history. See README.md.
package soak

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
)

// Result is the result of a piece: of one control plane from its start to its end.
type Result struct {
	Name     string   `json:"name"`
	Commit   string   `json:"commit"`
	Seed     uint64   `json:"seed"`
	Seconds  float64  `json:"seconds"` // with pods: without the start of the control plane
	Load     string   `json:"load"`    // the machine's load averages at the end
	Binds    int      `json:"binds"`   // by the two replicas
	Others   int      `json:"others"`  // binds of the same pods by another client
	Leaders  int      `json:"leaders"` // changes of the lease's holder
	Examples []string `json:"examples"`

	// Faults counts what was done, by kind.
	Faults map[string]int `json:"faults"`

	Lost          int `json:"lost"`          // pods that exist at the end without a node
	Twice         int `json:"twice"`         // pods whose node was set more than once, or changed
	Overcommitted int `json:"overcommitted"` // binds after which a node held more than it has
	Unfenced      int `json:"unfenced"`      // binds by a replica that did not hold the lease at that revision
	Differs       int `json:"differs"`       // pods that differ between the API and etcd's history at the end

	// Explained, and therefore no faults.
	AfterTheft int `json:"afterTheft"` // binds by a leader whose lease another client deleted or overwrote a moment before
	GoneNode   int `json:"goneNode"`   // binds to a node that had been deleted a moment before

	Waits  Histogram `json:"waits"` // milliseconds from a pod's creation to its bind, in etcd
	Memory []Memory  `json:"memory"`
	Short  bool      `json:"short"` // too short for a judgement of memory
}

// Memory is the memory of a process in the part of its life in which it should not grow.
type Memory struct {
	Process     string  `json:"process"` // and whether its replica led
	Binds       int     `json:"binds"`   // in the steady part
	First, Last float64 // MiB resident, mean of the first and of the last tenth of these binds
}

// MaxGrowth is the limit for Memory.Last, compared with First.
const MaxGrowth = 1.1

// TotalFaults returns their number.
func (r *Result) TotalFaults() (total int) {
	for _, n := range r.Faults {
		total += n
	}
	return total
}

// Failures names what must not be.
func (r *Result) Failures() (failures []string) {
	for _, failure := range []struct {
		what string
		n    int
	}{
		{"pods lost", r.Lost}, {"pods bound twice", r.Twice}, {"binds that overcommit a node", r.Overcommitted},
		{"unfenced binds", r.Unfenced}, {"pods that differ between the API and the history", r.Differs},
	} {
		if failure.n > 0 {
			failures = append(failures, fmt.Sprintf("%d %s", failure.n, failure.what))
		}
	}
	if !r.Short {
		if len(r.Memory) == 0 {
			failures = append(failures, "no process lived long enough to judge its memory")
		}
		for _, m := range r.Memory {
			if m.Last > MaxGrowth*m.First {
				failures = append(failures, fmt.Sprintf("%s grew from %.1f to %.1f MiB", m.Process, m.First, m.Last))
			}
		}
	}
	return failures
}

// Write writes the result to a file.
func (r *Result) Write(path string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Read reads what Write wrote.
func Read(path string) (*Result, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	return r, json.Unmarshal(data, r)
}

// Header and Row are of a Markdown table with a row for each piece.
const Header = "| piece | seed | binds | binds/s | leaders | faults | lost | twice | overcommitted | unfenced | after a theft | " +
	"wait p50 / p99 / max, ms | RSS of the last / first tenth, at most | load averages |\n" +
	"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---|---|\n"

// Row is the piece's row. Of its processes it names the one whose memory grew most.
func (r *Result) Row() string {
	memory := ""
	if len(r.Memory) > 0 {
		m := slices.MaxFunc(r.Memory, func(a, b Memory) int { return cmp.Compare(a.Last/a.First, b.Last/b.First) })
		memory = fmt.Sprintf("%.2f (%s, %.1f / %.1f MiB)", m.Last/m.First, m.Process, m.Last, m.First)
	}
	return fmt.Sprintf("| %s | %d | %d | %.0f | %d | %d | %d | %d | %d | %d | %d | %.0f / %.0f / %.0f | %s | %s |\n", r.Name, r.Seed, r.Binds,
		float64(r.Binds)/max(r.Seconds, 1), r.Leaders, r.TotalFaults(), r.Lost, r.Twice, r.Overcommitted, r.Unfenced, r.AfterTheft,
		r.Waits.Quantile(0.5), r.Waits.Quantile(0.99), r.Waits.Quantile(1), memory, r.Load)
}

// Add adds a further piece.
func (r *Result) Add(other *Result) {
	r.Seconds += other.Seconds
	r.Binds += other.Binds
	r.Others += other.Others
	r.Leaders += other.Leaders
	r.Lost += other.Lost
	r.Twice += other.Twice
	r.Overcommitted += other.Overcommitted
	r.Unfenced += other.Unfenced
	r.Differs += other.Differs
	r.AfterTheft += other.AfterTheft
	r.GoneNode += other.GoneNode
	r.Memory = append(r.Memory, other.Memory...)
	if r.Faults == nil {
		r.Faults, r.Waits = map[string]int{}, Histogram{}
	}
	for kind, n := range other.Faults {
		r.Faults[kind] += n
	}
	for bucket, n := range other.Waits {
		r.Waits[bucket] += n
	}
}

// Total returns a row for each piece, the sum and the faults by kind, and what must not be: a piece with a failure, one
// of another commit (unless that is empty), the same seed twice, fewer binds or faults than wanted.
func Total(pieces []*Result, binds, faults int, commit string) (table string, failures []string) {
	var text strings.Builder
	text.WriteString(Header)
	sum, seeds := &Result{Name: "all"}, map[uint64]string{}
	for _, piece := range pieces {
		text.WriteString(piece.Row())
		sum.Add(piece)
		for _, failure := range piece.Failures() {
			failures = append(failures, piece.Name+": "+failure)
		}
		if piece.Short {
			failures = append(failures, piece.Name+": too short for a judgement of memory")
		}
		if commit != "" && piece.Commit != commit {
			failures = append(failures, fmt.Sprintf("%s: of commit %q, not %q", piece.Name, piece.Commit, commit))
		}
		if other, twice := seeds[piece.Seed]; twice {
			failures = append(failures, fmt.Sprintf("%s and %s have the same seed", other, piece.Name))
		}
		seeds[piece.Seed] = piece.Name
	}
	text.WriteString(sum.Row() + "\n" + sum.FaultTable())
	fmt.Fprintf(&text, "\n%d binds to a node deleted a moment before, %d binds by another client, %.0f s\n", sum.GoneNode, sum.Others, sum.Seconds)
	if sum.Binds < binds {
		failures = append(failures, fmt.Sprintf("%d binds, not %d", sum.Binds, binds))
	}
	if total := sum.TotalFaults(); total < faults {
		failures = append(failures, fmt.Sprintf("%d faults, not %d", total, faults))
	}
	return text.String(), failures
}

// FaultTable returns the faults by kind, as a Markdown table.
func (r *Result) FaultTable() string {
	var text strings.Builder
	text.WriteString("| fault | times |\n|---|---:|\n")
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(&text, "| %s | %d |\n", kind, r.Faults[kind])
	}
	return text.String()
}

// Histogram counts values by the power of `step` below them, so that several can be added.
type Histogram map[int]int

const step = 1.05

// Add counts a value of at least 0.01.
func (h Histogram) Add(value float64) {
	h[int(math.Floor(math.Log(max(value, 0.01))/math.Log(step)))]++
}

// Quantile returns the upper limit of the quantile's bucket; 0 if empty.
func (h Histogram) Quantile(q float64) float64 {
	total := 0
	for _, n := range h {
		total += n
	}
	rank, seen := int(math.Ceil(q*float64(total))), 0
	for _, bucket := range slices.Sorted(maps.Keys(h)) {
		if seen += h[bucket]; seen >= rank && seen > 0 {
			return math.Pow(step, float64(bucket+1))
		}
	}
	return 0
}
