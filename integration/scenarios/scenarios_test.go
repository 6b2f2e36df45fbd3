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
// Outboard says what that one says.
func TestScenarios(t *testing.T) {
	scenarios, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	var stages [2]*Stage
	for i, scheduler := range []string{"kube-scheduler", *against} {
		stages[i] = startStage(t, scheduler)
	}
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			if scenario.Needs != "" && *against == "outboard" {
				t.Skipf("needs %s, not served yet", scenario.Needs)
			}
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

func startStage(t *testing.T, scheduler string) *Stage {
	t.Helper()
	if scheduler == "outboard" {
		if _, err := controlplane.OutboardDirectory(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := Configuration()
	if err != nil {
		t.Fatal(err)
	}
	config := controlplane.SchedulerConfig{Text: text}
	c := controlplane.ForTest(t, controlplane.Options{Pinned: scheduler == "kube-scheduler"})
	if scheduler == "outboard" {
		_, err = c.StartOutboard(t.Context(), controlplane.OutboardOptions{Config: config})
	} else {
		_, err = c.StartKubeScheduler(t.Context(), config)
	}
	if err != nil {
		t.Fatal(err)
	}
	stage, err := NewStage(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return stage
}
