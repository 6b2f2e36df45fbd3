package harvest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Share is the share of replayed rows among those with kube-scheduler's default feature gates, in percent.
func Share(results map[Group]*Result) float64 {
	rows, taken := 0, 0
	for group, result := range results {
		if group.Default() {
			rows, taken = rows+result.Rows, taken+result.Taken
		}
	}
	return percent(taken, rows)
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Report prints a line for each plugin and gates, and totals: all rows, those with default gates, and the replayed,
// equal, failed and skipped ones. Then the reasons for skipped rows with default gates.
func Report(w io.Writer, results map[Group]*Result) {
	groups := slices.SortedFunc(maps.Keys(results), func(a, b Group) int {
		return cmp.Or(strings.Compare(a.Plugin, b.Plugin), strings.Compare(a.Gates, b.Gates))
	})
	fmt.Fprintf(w, "%-32s %-40s %6s %8s %6s %6s %7s %8s %8s\n", "plugin", "gates", "rows", "matching", "taken", "equal", "failed", "skipped", "share")
	line := func(plugin, gates string, matching int, result *Result) {
		share := "-"
		if matching > 0 {
			share = fmt.Sprintf("%.1f %%", percent(result.Taken, matching))
		}
		fmt.Fprintf(w, "%-32s %-40s %6d %8d %6d %6d %7d %8d %8s\n", plugin, gates, result.Rows, matching, result.Taken, result.Equal,
			result.Taken-result.Equal, result.Rows-result.Taken, share)
	}
	total, others := Result{}, Result{}
	for _, group := range groups {
		result, matching, sum := results[group], results[group].Rows, &total
		if !group.Default() {
			matching, sum = 0, &others
		}
		line(group.Plugin, group.Gates, matching, result)
		sum.Rows, sum.Taken, sum.Equal = sum.Rows+result.Rows, sum.Taken+result.Taken, sum.Equal+result.Equal
	}
	line("all", "others than default", 0, &others)
	line("all", "default", total.Rows, &total)
	fmt.Fprintln(w)
	for _, group := range groups {
		if !group.Default() {
			continue
		}
		for _, reason := range slices.Sorted(maps.Keys(results[group].Skipped)) {
			tests := results[group].Skipped[reason]
			names := slices.Clone(tests)
			slices.Sort(names)
			fmt.Fprintf(w, "%s, %s: %d skipped: %s (%s)\n", group.Plugin, group.Gates, len(tests), reason, strings.Join(slices.Compact(names), ", "))
		}
	}
}
