package upstream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Outcome of one test, or of one row of a table.
type Outcome string

const (
	Passed  Outcome = "green"
	Failed  Outcome = "FAILED"
	Skipped Outcome = "skipped"
)

// Result is the result of a test without subtests.
type Result struct {
	Test    string
	Outcome Outcome
	// Reason is one of Reasons, Why the rest of the message; of skipped tests.
	Reason, Why string
	// Output is that of a failed test.
	Output  string
	Seconds float64
}

// event is an event of `go test -json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

var notRun = regexp.MustCompile(`not run: ([a-z ]+): ([^\n]*)`)

// readResults reads the output of `go test -json` for one package. A package that fails without a failed test is one
// more failure.
func readResults(reader io.Reader) ([]Result, error) {
	outputs := map[string]*strings.Builder{}
	var results []Result
	var packageFailed bool
	scanner := bufio.NewScanner(reader)
	scanner.Buffer(make([]byte, 1<<20), 64<<20)
	for scanner.Scan() {
		var e event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%w: %s", err, scanner.Text())
		}
		if e.Action == "build-output" {
			e.Action = "output"
		}
		output := outputs[e.Test]
		if output == nil {
			output = &strings.Builder{}
			outputs[e.Test] = output
		}
		switch e.Action {
		case "output":
			output.WriteString(e.Output)
		case "pass", "fail", "skip":
			if e.Test == "" {
				packageFailed = e.Action == "fail"
				continue
			}
			results = append(results, resultOf(e, output.String()))
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	leaves := slices.DeleteFunc(slices.Clone(results), func(r Result) bool {
		return r.Outcome != Failed && slices.ContainsFunc(results, func(other Result) bool { return strings.HasPrefix(other.Test, r.Test+"/") })
	})
	// A test that fails only because of its subtest is not counted.
	leaves = slices.DeleteFunc(leaves, func(r Result) bool {
		return slices.ContainsFunc(results, func(other Result) bool { return other.Outcome == Failed && strings.HasPrefix(other.Test, r.Test+"/") })
	})
	slices.SortFunc(leaves, func(a, b Result) int { return strings.Compare(a.Test, b.Test) })
	if packageFailed && !slices.ContainsFunc(leaves, func(r Result) bool { return r.Outcome == Failed }) {
		text := ""
		if output := outputs[""]; output != nil {
			text = output.String()
		}
		leaves = append(leaves, Result{Test: "(the package)", Outcome: Failed, Output: text})
	}
	return leaves, nil
}

func resultOf(e event, output string) Result {
	r := Result{Test: e.Test, Seconds: e.Elapsed}
	switch e.Action {
	case "pass":
		r.Outcome = Passed
	case "skip":
		r.Outcome = Skipped
		if match := notRun.FindStringSubmatch(output); match != nil && isReason(match[1]) {
			r.Reason, r.Why = match[1], match[2]
		} else {
			r.Outcome, r.Output = Failed, "skipped without one of the reasons "+strings.Join(sortedReasons(), ", ")+":\n"+output
		}
	default:
		r.Outcome, r.Output = Failed, output
	}
	return r
}

// Table has one line for each result, and a closing line with totals.
func Table(results []Result) string {
	var out strings.Builder
	count := map[Outcome]int{}
	for _, r := range results {
		count[r.Outcome]++
		what := string(r.Outcome)
		if r.Outcome == Skipped {
			what += ": " + r.Reason + ": " + r.Why
		}
		fmt.Fprintf(&out, "%6.1f s  %s: %s\n", r.Seconds, r.Test, what)
	}
	fmt.Fprintf(&out, "%d passed, %d failed, %d skipped\n", count[Passed], count[Failed], count[Skipped])
	return out.String()
}
