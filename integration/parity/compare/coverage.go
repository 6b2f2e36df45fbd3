package compare

import (
	"fmt"
	"io"
	"regexp"
	"sort"

	"outboard.dev/integration/parity/oracle"
)

// Coverage is what a set of cases exercises.
type Coverage struct {
	// Results counts pods by result; gated pods are a result of their own.
	Results map[string]int
	// Reasons counts nodes by "code plugin: reason".
	Reasons map[string]int
	// Messages counts pods by messages that come from no node: PreFilter, PreEnqueue, no nodes, errors.
	Messages map[string]int
	// Scored counts pods by plugin, Decided those for which the plugin's scores are not all equal.
	Scored, Decided map[string]int
	// Rejections counts nodes by the plugin that rejected them.
	Rejections map[string]int
	// Pods counts attempts on clusters of at least three nodes; Choices those with at least two feasible nodes and
	// one rejected node.
	Pods, Choices int
	// Preemptions counts pods that got a nomination, Victims their evicted pods, Violations the victims protected by
	// a budget.
	Preemptions, Victims, Violations int
	// CutShort counts pods whose search ended before all nodes were examined.
	CutShort int
	// Narrowed counts pods for which PreFilter ruled out nodes by name.
	Narrowed int
}

// NewCoverage returns an empty Coverage.
func NewCoverage() *Coverage {
	return &Coverage{Results: map[string]int{}, Reasons: map[string]int{}, Messages: map[string]int{},
		Scored: map[string]int{}, Decided: map[string]int{}, Rejections: map[string]int{}}
}

// Add counts one case on a cluster of this many nodes.
func (c *Coverage) Add(nodes int, verdicts []oracle.Verdict) {
	for _, verdict := range verdicts {
		c.Results[verdict.Result]++
		if verdict.Result != oracle.Scheduled && len(verdict.Filter) == 0 {
			c.Messages[withoutNumbers(verdict.Message)]++
		}
		if attempted := verdict.Feasible > 0 || len(verdict.Filter) > 0; nodes > 2 && attempted {
			c.Pods++
			if verdict.Feasible > 1 && len(verdict.Filter) > 0 {
				c.Choices++
			}
		}
		if verdict.NominatedNode != "" {
			c.Preemptions++
		}
		c.Victims += len(verdict.Victims)
		c.Violations += int(verdict.Violations)
		if verdict.Result == oracle.Scheduled && verdict.Feasible+len(verdict.Filter) < nodes {
			c.CutShort++
		}
		narrowed := false
		for _, rejection := range verdict.Filter {
			narrowed = narrowed || rejection.Plugin == ""
			c.Rejections[rejection.Plugin]++
			for _, reason := range rejection.Reasons {
				c.Reasons[fmt.Sprintf("%s %s: %s", rejection.Code, rejection.Plugin, reason)]++
			}
		}
		if narrowed {
			c.Narrowed++
		}
		c.addScores(verdict.Scores)
	}
}

func (c *Coverage) addScores(scores map[string]oracle.NodeScore) {
	lowest, highest := map[string]int64{}, map[string]int64{}
	for _, score := range scores {
		for plugin, value := range score.Plugins {
			if _, ok := lowest[plugin]; !ok {
				lowest[plugin], highest[plugin] = value, value
			}
			lowest[plugin], highest[plugin] = min(lowest[plugin], value), max(highest[plugin], value)
		}
	}
	for plugin := range lowest {
		c.Scored[plugin]++
		if lowest[plugin] != highest[plugin] {
			c.Decided[plugin]++
		}
	}
}

var numbers = regexp.MustCompile(`[0-9]+`)

// withoutNumbers makes messages of one kind equal.
func withoutNumbers(message string) string { return numbers.ReplaceAllString(message, "#") }

// Print writes a table of everything.
func (c *Coverage) Print(w io.Writer) {
	print := func(title string, counts map[string]int) {
		fmt.Fprintln(w, title)
		var names []string
		for name := range counts {
			names = append(names, name)
		}
		sort.Slice(names, func(i, j int) bool {
			return counts[names[i]] > counts[names[j]] || counts[names[i]] == counts[names[j]] && names[i] < names[j]
		})
		for _, name := range names {
			fmt.Fprintf(w, "  %8d %s\n", counts[name], name)
		}
	}
	print("pods by result", c.Results)
	print("nodes by plugin", c.Rejections)
	print("nodes by reason", c.Reasons)
	print("pods by message without nodes", c.Messages)
	print("pods scored by plugin", c.Scored)
	print("of these with different scores", c.Decided)
	fmt.Fprintf(w, "pods with a choice of two nodes or more, but not of all: %d of %d\n", c.Choices, c.Pods)
	fmt.Fprintf(w, "pods that preempt: %d, their victims: %d, of these protected by a budget: %d\n", c.Preemptions, c.Victims, c.Violations)
	fmt.Fprintf(w, "searches cut short: %d, pods narrowed to named nodes: %d\n", c.CutShort, c.Narrowed)
}
