// Package scenarios plays small scenarios on real API servers, with the real kube-scheduler and with Outboard, and
// compares the results: events, pod conditions, placements. See README.md.
package scenarios

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed testdata
var testdata embed.FS

// Scenario is a file of testdata/scenarios.
type Scenario struct {
	Name  string `json:"-"` // the file's name, which is the namespace too
	About string `json:"about"`
	// Needs names a feature that the scenario needs and Outboard does not serve yet; then only kube-scheduler plays
	// it.
	Needs string `json:"needs,omitempty"`
	Steps []Step `json:"steps"`
}

// Step has exactly one field set.
type Step struct {
	// Create creates objects in order. Between nodes and pods the player waits until the scheduler has seen the nodes.
	Create []Object `json:"create,omitempty"`
	Delete *Target  `json:"delete,omitempty"`
	Patch  *Patch   `json:"patch,omitempty"`
	Await  *Await   `json:"await,omitempty"`
	// Quiet waits until nothing has changed for longer than a pod's first backoff.
	Quiet bool `json:"quiet,omitempty"`
}

// Object is a Kubernetes object; complete adds the omitted defaults.
type Object map[string]any

// Target names an object of this scenario.
type Target struct {
	APIVersion string `json:"apiVersion,omitempty"` // default: v1
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Patch is a JSON merge patch.
type Patch struct {
	Target      `json:",inline"`
	Subresource string         `json:"subresource,omitempty"`
	Patch       map[string]any `json:"patch"`
}

// Await waits until the API shows a state of a pod. It has one of bound, unschedulable, gated and failures.
type Await struct {
	Pod           string `json:"pod"`
	Bound         bool   `json:"bound,omitempty"`         // it has a node and a Scheduled event
	Unschedulable bool   `json:"unschedulable,omitempty"` // its condition and a FailedScheduling event show it
	Gated         bool   `json:"gated,omitempty"`         // its condition shows it
	Failures      int    `json:"failures,omitempty"`      // number of FailedScheduling events, series counted
}

// Load reads all scenarios in the order of their names.
func Load() ([]*Scenario, error) {
	const dir = "testdata/scenarios"
	entries, err := testdata.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	for _, entry := range entries {
		data, err := testdata.ReadFile(path.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		s := &Scenario{Name: strings.TrimSuffix(entry.Name(), ".yaml")}
		if err := yaml.UnmarshalStrict(data, s); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if err := s.validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		all = append(all, s)
	}
	return all, nil
}

func (s *Scenario) validate() error {
	if s.About == "" || len(s.Steps) == 0 {
		return fmt.Errorf("about and steps are required")
	}
	for i, step := range s.Steps {
		set := 0
		for _, is := range []bool{step.Create != nil, step.Delete != nil, step.Patch != nil, step.Await != nil, step.Quiet} {
			if is {
				set++
			}
		}
		if set != 1 {
			return fmt.Errorf("step %d has %d actions", i+1, set)
		}
		if a := step.Await; a != nil && !a.Bound && !a.Unschedulable && !a.Gated && a.Failures == 0 {
			return fmt.Errorf("step %d awaits nothing", i+1)
		}
	}
	return nil
}

// Configuration returns the KubeSchedulerConfiguration of both schedulers.
func Configuration() (string, error) {
	data, err := testdata.ReadFile("testdata/configuration.yaml")
	return string(data), err
}

// complete adds the fields that every node and every container needs.
func (o Object) complete() *unstructured.Unstructured {
	object := (&unstructured.Unstructured{Object: o}).DeepCopy()
	if object.GetAPIVersion() == "" {
		object.SetAPIVersion("v1")
	}
	switch object.GetKind() {
	case "Node":
		allocatable := map[string]any{"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "100Gi"}
		given, _, _ := unstructured.NestedMap(object.Object, "status", "allocatable")
		for name, quantity := range given {
			allocatable[name] = quantity
		}
		unstructured.SetNestedMap(object.Object, allocatable, "status", "allocatable")
		unstructured.SetNestedMap(object.Object, allocatable, "status", "capacity")
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/hostname"] = object.GetName()
		object.SetLabels(labels)
	case "Pod":
		for _, field := range []string{"containers", "initContainers"} {
			completeContainers(object, field)
		}
	}
	return object
}

func completeContainers(pod *unstructured.Unstructured, field string) {
	containers, found, _ := unstructured.NestedSlice(pod.Object, "spec", field)
	if !found {
		if field != "containers" {
			return
		}
		containers = []any{map[string]any{}}
	}
	for i := range containers {
		container := containers[i].(map[string]any)
		if container["name"] == nil {
			container["name"] = fmt.Sprintf("%s-%d", strings.ToLower(field), i)
		}
		if container["image"] == nil {
			container["image"] = "example.com/app:1"
		}
	}
	unstructured.SetNestedSlice(pod.Object, slices.Clone(containers), "spec", field)
}
