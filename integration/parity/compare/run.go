package compare

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"outboard.dev/integration/parity/generate"
	"outboard.dev/integration/parity/oracle"
)

// Outcome is the result of one case.
type Outcome struct {
	Expected, Actual []oracle.Verdict
	Differences      []Difference
	// Failure is set if outboard did not answer, or in an invalid format.
	Failure error
	Totals  Totals
}

// Differs returns whether there is a failure or a difference.
func (o *Outcome) Differs() bool { return o.Failure != nil || len(o.Differences) > 0 }

// Run writes the case into directory, runs both sides and compares. With an empty outboard only the oracle runs. The
// error is one of the oracle or of the file system, never a difference.
func Run(ctx context.Context, c *generate.Case, directory, outboard string) (*Outcome, error) {
	files, err := c.Write(directory)
	if err != nil {
		return nil, err
	}
	outcome := &Outcome{}
	// Where kube-scheduler chooses at random, use Outboard's node, or else its nomination, as the choice.
	choices := map[string]string{}
	if outboard != "" {
		outcome.Actual, outcome.Failure = Simulate(ctx, outboard, directory, files)
		for _, verdict := range outcome.Actual {
			choices[verdict.Pod] = verdict.Node + verdict.NominatedNode
		}
	}
	outcome.Expected, err = oracle.RunFiles(ctx, files.Cluster, files.Pods, files.Config,
		func(pod string, _ []string) string { return choices[pod] })
	if err != nil {
		return nil, fmt.Errorf("seed %d: oracle: %w", c.Seed, err)
	}
	if outboard != "" && outcome.Failure == nil {
		outcome.Differences = Diff(outcome.Expected, outcome.Actual)
	}
	outcome.Totals = Count(outcome.Expected)
	if SaysEffects(outcome.Actual) {
		outcome.Totals.ClaimsCompared = outcome.Totals.Claims
	}
	outcome.Totals.Differences = len(outcome.Differences)
	if outcome.Failure != nil {
		outcome.Totals.Differences++
	}
	return outcome, nil
}

// Simulate runs `outboard simulate` on the files of a case; its output stays in directory.
func Simulate(ctx context.Context, outboard, directory string, files generate.Files) ([]oracle.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, outboard, arguments(files)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.WaitDelay = 5 * time.Second
	err := command.Run()
	if path := filepath.Join(directory, "actual.jsonl"); os.WriteFile(path, stdout.Bytes(), 0o644) != nil {
		return nil, fmt.Errorf("cannot write %s", path)
	}
	if err != nil {
		text := stderr.String()
		return nil, fmt.Errorf("outboard simulate: %w\n%s", err, text[max(0, len(text)-2000):])
	}
	return oracle.Read(&stdout)
}

func arguments(files generate.Files) []string {
	return []string{"simulate", "--cluster", files.Cluster, "--pods", files.Pods, "--config", files.Config, "-o", "json"}
}
