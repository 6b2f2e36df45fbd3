package hints

import (
	"path/filepath"
	"strings"
	"testing"

	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	ndftesting "k8s.io/component-helpers/nodedeclaredfeatures/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
)

// Folders with such cases whose plugins exist only in Outboard.
var own = map[string]bool{"gpu_aware": true, "atomic_replica_coordinator": true, "coscheduling": true, "backfill": true, "not_served": true, "cost_optimized": true, "cost_aware_preemptor": true, "objectives": true, "topology_aware_gpu_gate": true, "workload_type_filter": true, "gpu_model_match": true, "gpu_packing": true, "gpu_load": true, "latest_start_sort": true, "metric_score": true, "training_job_placement": true, "static_ip": true}

// pluginOf returns `NodeAffinity` for `node_affinity`.
func pluginOf(folder string) string {
	var name strings.Builder
	for _, part := range strings.Split(folder, "_") {
		name.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return name.String()
}

// kube-scheduler's plugins give the hints of the cases; Outboard's plugins are tested with the same cases.
func TestKubeSchedulersPluginsAgreeWithTheCases(t *testing.T) {
	ndftesting.SetFrameworkDuringTest(t, *ndf.New([]ndf.Feature{feature("A"), feature("B")}))
	folders, err := filepath.Glob("../../../plugins/*")
	if err != nil {
		t.Fatal(err)
	}
	registry := plugins.NewInTreeRegistry()
	compared := map[string]int{}
	for _, folder := range folders {
		cases, err := ReadCases(folder)
		if err != nil {
			t.Error(err)
		}
		plugin := pluginOf(filepath.Base(folder))
		if len(cases) == 0 || own[filepath.Base(folder)] {
			continue
		}
		if registry[plugin] == nil {
			t.Errorf("kube-scheduler has no plugin %s", plugin)
			continue
		}
		t.Run(plugin, func(t *testing.T) {
			for _, c := range cases {
				if c.NeedsClaims() {
					t.Logf("%s: skipped: plugins know device classes through the tracker of resource claims; upstream's own queueing table covers this rule", c.Where)
					continue
				}
				answers, err := Answers(t.Context(), plugin, c)
				if err != nil {
					t.Errorf("%s: %v", c.Where, err)
					continue
				}
				for event, hint := range answers {
					compared[plugin]++
					if c.Hints[event] != hint {
						t.Errorf("%s: %s: the case says %q, kube-scheduler %q", c.Where, event, c.Hints[event], hint)
					}
				}
			}
		})
	}
	// All plugins with hints, so that none is lost.
	if len(compared) < 15 {
		t.Errorf("only %d plugins were compared: %v", len(compared), compared)
	}
	t.Log(compared)
}
