package scenarios

import (
	"context"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	controlplane "outboard.dev/integration/control_plane"
)

var (
	against = flag.String("against", "outboard",
		"the scheduler to compare with kube-scheduler: outboard, or kube-scheduler to check that the comparison itself is stable")
	verboseTranscripts = flag.Bool("transcripts", false, "log the transcript of every scenario")
)

// TestScenarios plays every scenario with kube-scheduler and with Outboard, each on its own control plane, at the
// same time. Every difference is a failure. kube-scheduler and its API server are always of the pinned release:
// Outboard must give the same results on an older API server, too.
func TestScenarios(t *testing.T) {
	scenarios, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if *against == "outboard" {
		if _, err := controlplane.OutboardDirectory(); err != nil {
			t.Fatal(err)
		}
	}
	// Scenarios mostly wait, so some are played beside each other, on other control planes.
	pairs := controlplane.NewPool(2, func() (stages [2]*Stage, err error) {
		for i, scheduler := range []string{"kube-scheduler", *against} {
			if stages[i], err = startStage(t, scheduler); err != nil {
				return stages, err
			}
		}
		return stages, nil
	})
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			if scenario.Needs != "" && *against == "outboard" {
				t.Skipf("needs %s, not served yet", scenario.Needs)
			}
			stages := pairs.Lend(t)
			var transcripts [2][]string
			var group sync.WaitGroup
			for i, stage := range stages {
				group.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					var err error
					if transcripts[i], err = stage.Play(ctx, scenario); err != nil {
						t.Errorf("%s: %v\n%s", []string{"kube-scheduler", *against}[i], err, strings.Join(transcripts[i], "\n"))
						stage.clean(context.Background(), scenario.Name)
					}
				})
			}
			group.Wait()
			if len(transcripts[0]) == 0 {
				t.Fatal("the transcript is empty")
			}
			if diff := cmp.Diff(transcripts[0], transcripts[1]); diff != "" {
				t.Errorf("- kube-scheduler, + %s:\n%s", *against, diff)
			}
			if *verboseTranscripts {
				t.Logf("%s\n%s", scenario.About, strings.Join(transcripts[0], "\n"))
			}
		})
	}
}

// startStage starts a control plane that ends with the test, and a scheduler.
func startStage(t *testing.T, scheduler string) (*Stage, error) {
	text, err := Configuration()
	if err != nil {
		return nil, err
	}
	config := controlplane.SchedulerConfig{Text: text}
	c, err := controlplane.StartForTest(t, controlplane.Options{Pinned: scheduler == "kube-scheduler"})
	if err != nil {
		return nil, err
	}
	if scheduler == "outboard" {
		_, err = c.StartOutboard(t.Context(), controlplane.OutboardOptions{Config: config})
	} else {
		_, err = c.StartKubeScheduler(t.Context(), config)
	}
	if err != nil {
		return nil, err
	}
	return NewStage(t.Context(), c)
}
