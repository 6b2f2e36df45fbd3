package parity

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"outboard.dev/integration/parity/compare"
	"outboard.dev/integration/parity/generate"
)

// A set is the first cases of some features. Several tests look at the same set: whether both sides agree, and what
// its cases exercise. Both sides run once for all of these tests, because that takes minutes.
type set struct {
	features generate.Features
	count    int
}

// result is what both sides made of some cases.
type result struct {
	totals    compare.Totals
	covered   *compare.Coverage
	claims    *claimCoverage
	differing []int // indexes of the first few
}

const mostDiffering = 5

// By set. No test of this package is parallel.
var results = map[set]*result{}

func (s set) create(i int) *generate.Case { return generate.New(uint64(i+1), s.features) }

// outboard returns the program to compare with, or an empty string.
func (s set) outboard(t *testing.T) string {
	if s.features == generate.Claims {
		return claimsProgram(t)
	}
	return program(t)
}

// run runs the set, unless an earlier test has. Without a program the oracle runs alone.
func (s set) run(t *testing.T) *result {
	t.Helper()
	if results[s] == nil {
		results[s] = run(t, s.outboard(t), s.count, s.create)
	}
	return results[s]
}

// mustAgree skips the test without a program.
func (s set) mustAgree(t *testing.T) *result {
	t.Helper()
	outboard := s.outboard(t)
	if outboard == "" {
		t.Skip(missing)
	}
	r := s.run(t)
	r.mustAgree(t, outboard, s.create)
	return r
}

func run(t *testing.T, outboard string, count int, create func(i int) *generate.Case) *result {
	t.Helper()
	r := &result{covered: compare.NewCoverage(), claims: newClaimCoverage()}
	cases := make([]*generate.Case, count)
	keep := func(i int) *generate.Case {
		cases[i] = create(i)
		return cases[i]
	}
	batch := compare.Batch{Directory: t.TempDir(), Outboard: outboard, Jobs: runtime.NumCPU()}
	if err := batch.Run(context.Background(), count, keep, func(i int, outcome *compare.Outcome) (bool, error) {
		r.totals.Add(outcome.Totals)
		r.covered.Add(len(cases[i].Nodes), outcome.Expected)
		r.claims.add(cases[i], outcome.Expected)
		cases[i] = nil
		if outcome.Differs() && len(r.differing) < mostDiffering {
			r.differing = append(r.differing, i)
		}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	return r
}

// mustAgree fails for each of the first few differing cases, with a reproduction.
func (r *result) mustAgree(t *testing.T, outboard string, create func(i int) *generate.Case) {
	t.Helper()
	for _, i := range r.differing {
		c := create(i)
		directory, err := os.MkdirTemp("", fmt.Sprintf("parity-seed-%d-", c.Seed))
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
	t.Log(r.totals)
}
