// Package generate creates random clusters, pods and scheduler configurations, reproducible by seed.
package generate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// object is a manifest. Manifests are untyped, so that every notation is written to the file.
type object = map[string]any

type random struct{ *rand.Rand }

func newRandom(seed uint64, stream uint64) random {
	return random{rand.New(rand.NewPCG(seed, stream))}
}

// chance is true in percent out of a hundred cases.
func (r random) chance(percent float64) bool { return r.Float64()*100 < percent }

// between returns an integer in [low, high].
func (r random) between(low, high int) int { return low + r.IntN(high-low+1) }

func pick[T any](r random, values ...T) T { return values[r.IntN(len(values))] }

// some returns n different elements in random order.
func some[T any](r random, n int, values []T) []T {
	var result []T
	for _, i := range r.Perm(len(values))[:min(n, len(values))] {
		result = append(result, values[i])
	}
	return result
}

// cpu returns thousandths of a core in one of the notations of users.
func (r random) cpu(millis int) any {
	forms := []any{fmt.Sprintf("%dm", millis), fmt.Sprintf("%dm", millis), fmt.Sprintf("%dm", millis)}
	decimal := strconv.FormatFloat(float64(millis)/1000, 'f', -1, 64)
	forms = append(forms, decimal, fmt.Sprintf("%d000u", millis), fmt.Sprintf("%de-3", millis), decimal+"e0")
	if millis%1000 == 0 {
		forms = append(forms, millis/1000, fmt.Sprintf("%d", millis/1000), fmt.Sprintf("+%d", millis/1000))
	}
	if millis%100 == 0 {
		// Bare numbers in a manifest.
		forms = append(forms, float64(millis)/1000)
	}
	return pick(r, forms...)
}

// bytes returns an amount of memory or storage; the value is exact in every notation.
func (r random) bytes(value int64) any {
	forms := []any{fmt.Sprintf("%d", value)}
	for suffix, unit := range []int64{1 << 10, 1 << 20, 1 << 30} {
		name := []string{"Ki", "Mi", "Gi"}[suffix]
		if value%unit == 0 {
			forms = append(forms, fmt.Sprintf("%d%s", value/unit, name), fmt.Sprintf("%d%s", value/unit, name))
		} else if value%(unit/2) == 0 {
			forms = append(forms, fmt.Sprintf("%d.5%s", value/unit, name))
		}
	}
	for i, unit := range []int64{1e3, 1e6, 1e9} {
		if value%unit == 0 {
			forms = append(forms, fmt.Sprintf("%d%s", value/unit, []string{"k", "M", "G"}[i]),
				fmt.Sprintf("%de%d", value/unit, 3*(i+1)), fmt.Sprintf("%dE%d", value/unit, 3*(i+1)))
		}
	}
	if value < 1<<40 {
		forms = append(forms, fmt.Sprintf("%d000m", value), value)
	}
	return pick(r, forms...)
}

// odd returns a quantity that needs rounding, or careful parsing.
func (r random) odd(resource string) any {
	if resource == "cpu" {
		return pick[any](r, "0.0001", "1u", "100n", "0.10001", "1e-4", "0", "0.0", "2500e-3", "1500000u", "0.3333")
	}
	return pick[any](r, "1.5Gi", "0.5Gi", "2.75Mi", "100.1", "0.1", "1e3", "1E3", "123456789m", "1.1k", "0", "0Ki", "10.25M", "3e8")
}

// huge returns an amount that no node has, up to the largest valid one and beyond.
func (r random) huge(resource string) any {
	if resource == "cpu" {
		return pick[any](r, "1k", "512", "1e4", "0.5M")
	}
	return pick[any](r, "2E", "1Ei", "9e18", "3P", "1Pi", "5Ti", "8E", "7Ei")
}
