package harvest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"outboard.dev/integration/parity/compare"
	"outboard.dev/integration/parity/generate"
	"outboard.dev/integration/parity/oracle"
)

// The reasons why a case is not replayed, or its answer not counted. The list is complete.
const (
	SkipDryRun   = "pods were added or removed in a dry run"
	SkipGates    = "feature gates are not the default ones, and the answer differs"
	SkipUnknown  = "the test did not create the plugin by its constructor, and its literal is incomplete"
	SkipMocked   = "the test mocks the features that nodes may declare"
	SkipObjects  = "objects that no API server stores: no name, duplicate names, no container"
	SkipDefaults = "objects that an API server's defaults would change"
	SkipPlaced   = "the pod already has a node, or is being deleted"
	SkipError    = "an error in upstream's own machinery"
	SkipSubset   = "only some nodes were scored, or only one"
	SkipRefused  = "outboard rejects the manifests or the configuration"
	SkipDevices  = "devices for DynamicResources to allocate, which outboard rejects"
	SkipNotAsked = "the filter would not run: PreFilter decides"
)

// Group is a plugin's rows with certain feature gates: see Case.Features. Rows without that information count as
// default.
type Group struct{ Plugin, Gates string }

// Default: the gates have kube-scheduler's defaults.
func (g Group) Default() bool { return g.Gates == gatesDefault || g.Gates == gatesPut }

const (
	gatesDefault = "default"
	gatesPut     = "put to default"
)

func (c *Case) group() Group {
	if c.Features == "unknown" || c.Features == "mocked" {
		return Group{c.Plugin, gatesDefault}
	}
	return Group{c.Plugin, c.Features}
}

// Result is the result of a group's rows: the distinct answers of Filter (including PreFilter's rejections) and
// Score.
type Result struct {
	Rows, Taken, Equal int
	// Again counts repeated answers to the same input.
	Again int
	// Skipped has the tests by reason.
	Skipped map[string][]string
	Failed  []string
	// Refusals are outboard's messages for rejected cases, or for cases recorded with other feature gates.
	Refusals []string
}

// Replay runs each case in outboard, with a profile that has only the case's plugin.
func Replay(ctx context.Context, cases []Case, outboard, folder string) (map[Group]*Result, error) {
	results := map[Group]*Result{}
	seen := map[[32]byte]bool{}
	answers := map[[32]byte]*answer{}
	for i := range cases {
		c := &cases[i]
		group := c.group()
		result := results[group]
		if result == nil {
			result = &Result{Skipped: map[string][]string{}}
			results[group] = result
		}
		data, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		key := sha256.Sum256(data)
		if seen[key] {
			result.Again++
			continue
		}
		seen[key] = true
		result.Rows++
		reason, difference := c.skip(), ""
		if reason == "" {
			got, err := c.ask(ctx, answers, outboard, folder)
			if err != nil {
				return nil, err
			}
			if got.failure != nil {
				reason = SkipRefused
				result.Refusals = append(result.Refusals, fmt.Sprintf("%s: %v", c.Test, got.failure))
			} else if c.Point == "filter" && decidedByPreFilter(&got.verdict) {
				reason = SkipNotAsked
			} else if difference = c.difference(&got.verdict); difference != "" && !group.Default() {
				reason = SkipGates
				result.Refusals = append(result.Refusals, fmt.Sprintf("%s (%s, gates): %s", c.Test, c.Point, difference))
			}
		}
		switch {
		case reason != "":
			result.Skipped[reason] = append(result.Skipped[reason], c.Test)
		case difference == "":
			result.Taken++
			result.Equal++
		default:
			result.Taken++
			result.Failed = append(result.Failed, fmt.Sprintf("%s (%s): %s", c.Test, c.Point, difference))
		}
	}
	return results, nil
}

// skip returns why the case cannot be replayed at all.
func (c *Case) skip() string {
	switch {
	case c.Features == "unknown":
		return SkipUnknown
	case c.Features == "mocked":
		return SkipMocked
	case c.DryRun:
		return SkipDryRun
	case c.Pod.Spec.NodeName != "" || c.Pod.DeletionTimestamp != nil:
		return SkipPlaced
	case c.Code == "Error":
		return SkipError
	case c.Point == "score" && (len(c.Nodes) < 2 || len(c.Scored) > 0 && len(c.Scored) != len(c.Nodes) || len(c.Scores) > 1 && len(c.Scores) != len(c.Nodes)):
		return SkipSubset
	}
	if len(c.Pod.Spec.Containers) == 0 {
		return SkipObjects
	}
	names := map[string]bool{}
	for _, node := range c.Nodes {
		if node.Node.Name == "" || names[node.Node.Name] {
			return SkipObjects
		}
		names[node.Node.Name] = true
		for _, pod := range node.Pods {
			if len(pod.Spec.Containers) == 0 {
				return SkipObjects
			}
			if changedByDefaults(pod) {
				return SkipDefaults
			}
		}
	}
	if len(names) == 0 {
		return SkipObjects
	}
	if changedByDefaults(c.Pod) {
		return SkipDefaults
	}
	if c.wantsDevices() {
		return SkipDevices
	}
	for _, class := range c.Objects["storage.k8s.io/v1/StorageClass"] {
		if !bytes.Contains(class, []byte(`"volumeBindingMode"`)) && strings.Contains(c.Reason, "VolumeBindingMode not set") {
			return SkipDefaults
		}
	}
	return ""
}

// wantsDevices: the pod requests a resource of a DeviceClass.
func (c *Case) wantsDevices() bool {
	for _, data := range c.Objects["resource.k8s.io/v1/DeviceClass"] {
		var class resourcev1.DeviceClass
		if json.Unmarshal(data, &class) != nil {
			continue
		}
		for _, container := range c.Pod.Spec.Containers {
			_, implicit := container.Resources.Requests[v1.ResourceName(resourcev1.ResourceDeviceClassPrefix+class.Name)]
			explicit := false
			if name := class.Spec.ExtendedResourceName; name != nil {
				_, explicit = container.Resources.Requests[v1.ResourceName(*name)]
			}
			if implicit || explicit {
				return true
			}
		}
	}
	return false
}

// changedByDefaults: an API server's defaulting would change fields that plugins read.
func changedByDefaults(pod *v1.Pod) bool {
	changed := pod.DeepCopy()
	corev1defaults.SetObjectDefaults_Pod(changed)
	for i := range pod.Spec.Containers {
		before, after := pod.Spec.Containers[i], changed.Spec.Containers[i]
		if len(before.Resources.Requests) != len(after.Resources.Requests) {
			return true
		}
		for j := range before.Ports {
			if before.Ports[j].HostPort != after.Ports[j].HostPort {
				return true
			}
		}
	}
	return false
}

type answer struct {
	verdict oracle.Verdict
	failure error
}

// ask runs outboard, once for all cases that differ only in the node.
func (c *Case) ask(ctx context.Context, answers map[[32]byte]*answer, outboard, folder string) (*answer, error) {
	scene, err := c.scene()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal([]any{scene.Config, scene.Nodes, scene.Objects, scene.Running, scene.Pending})
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(data)
	if known, ok := answers[key]; ok {
		return known, nil
	}
	directory := filepath.Join(folder, "case")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	files, err := scene.Write(directory)
	if err != nil {
		return nil, err
	}
	got := &answer{}
	verdicts, failure := compare.Simulate(ctx, outboard, directory, files)
	switch {
	case failure != nil:
		got.failure = failure
	case len(verdicts) != 1:
		got.failure = fmt.Errorf("%d verdicts", len(verdicts))
	default:
		got.verdict = verdicts[0]
	}
	answers[key] = got
	return got, nil
}

// scene returns the case as manifests.
func (c *Case) scene() (*generate.Case, error) {
	scene := &generate.Case{Seed: 0}
	for i, node := range c.Nodes {
		manifest, err := manifestOf(node.Node, "v1", "Node")
		if err != nil {
			return nil, err
		}
		scene.Nodes = append(scene.Nodes, manifest)
		for j, pod := range node.Pods {
			placed := pod.DeepCopy()
			placed.Spec.NodeName = node.Node.Name
			identify(placed, fmt.Sprintf("running-%d-%d", i, j))
			if manifest, err = manifestOf(placed, "v1", "Pod"); err != nil {
				return nil, err
			}
			scene.Running = append(scene.Running, manifest)
		}
	}
	for kind, objects := range c.Objects {
		version := kind[:strings.LastIndex(kind, "/")]
		for _, object := range objects {
			manifest, err := manifestOf(object, version, kind[len(version)+1:])
			if err != nil {
				return nil, err
			}
			scene.Objects = append(scene.Objects, manifest)
		}
	}
	pending := c.Pod.DeepCopy()
	identify(pending, "pending")
	pending.Spec.SchedulerName = ""
	manifest, err := manifestOf(pending, "v1", "Pod")
	if err != nil {
		return nil, err
	}
	scene.Pending = []map[string]any{manifest}
	scene.Config = c.config()
	return scene, nil
}

// identify renames a pod. Names do not matter in these tests, and are often equal or empty; but claims that belong to
// a pod are found by its name.
func identify(pod *v1.Pod, name string) {
	ownsClaims := slices.ContainsFunc(pod.Spec.Volumes, func(volume v1.Volume) bool { return volume.Ephemeral != nil })
	if !ownsClaims || pod.Name == "" {
		pod.Name, pod.UID = name, types.UID("uid-"+name)
	} else if pod.UID == "" {
		pod.UID = types.UID("uid-" + name)
	}
	if pod.Namespace == "" {
		pod.Namespace = "default"
	}
}

func manifestOf(object any, version, kind string) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var manifest map[string]any
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, err
	}
	manifest["apiVersion"], manifest["kind"] = version, kind
	return manifest, nil
}

// config returns a profile with only the plugin and the required plugins. NodeName accepts every node for a pending
// pod.
func (c *Case) config() map[string]any {
	enabled := []any{}
	for _, name := range slices.Compact([]string{"PrioritySort", "NodeName", c.Plugin, "DefaultBinder"}) {
		enabled = append(enabled, map[string]any{"name": name})
	}
	plugins := map[string]any{"multiPoint": map[string]any{"disabled": []any{map[string]any{"name": "*"}}, "enabled": enabled}}
	if c.Point == "score" && c.Plugin != "NodeName" {
		plugins["filter"] = map[string]any{"disabled": []any{map[string]any{"name": c.Plugin}}}
		plugins["score"] = map[string]any{"enabled": []any{map[string]any{"name": c.Plugin, "weight": 1}}}
	}
	profile := map[string]any{"schedulerName": "default-scheduler", "plugins": plugins}
	if len(c.Args) > 0 {
		var args map[string]any
		// Some tests give a plugin the arguments of another one, which it ignores.
		if json.Unmarshal(c.Args, &args) == nil && args["kind"] == c.Plugin+"Args" {
			if c.Plugin == "VolumeBinding" {
				// Read only with a disabled feature gate.
				delete(args, "shape")
			}
			profile["pluginConfig"] = []any{map[string]any{"name": c.Plugin, "args": args}}
		}
	}
	return map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": []any{profile}}
}

// decidedByPreFilter: Filter would not run for any or for every node. The tests run it nonetheless.
func decidedByPreFilter(got *oracle.Verdict) bool {
	for _, rejection := range got.Filter {
		if rejection.Plugin == "" {
			return true
		}
	}
	return got.Result == oracle.Unschedulable && len(got.Filter) == 0
}

// difference compares outboard's answer with the recorded one; empty: equal.
func (c *Case) difference(got *oracle.Verdict) string {
	if got.Result == oracle.Error {
		return "outboard: error: " + got.Message
	}
	switch c.Point {
	case "prefilter":
		if want := c.Reason; !strings.Contains(got.Message, want) {
			return fmt.Sprintf("kube-scheduler: %q, outboard: %q", want, got.Message)
		}
	case "filter":
		rejection, rejected := got.Filter[c.Target]
		if c.Code == "Success" {
			if rejected {
				return fmt.Sprintf("node %s: kube-scheduler: fits, outboard: %v", c.Target, rejection)
			}
			return ""
		}
		reasons := oracle.CanonicalReasons(c.Reasons)
		if !rejected || rejection.Code != c.Code || !slices.Equal(oracle.CanonicalReasons(rejection.Reasons), reasons) {
			return fmt.Sprintf("node %s: kube-scheduler: %s %q, outboard: %v (%s)", c.Target, c.Code, reasons, rejection, got.Message)
		}
	case "score":
		for node, want := range c.Scores {
			score, scored := got.Scores[node]
			// A plugin without scores is omitted.
			if have := score.Plugins[c.Plugin]; !scored || have != want {
				return fmt.Sprintf("score of node %s: kube-scheduler: %d, outboard: %d of %v", node, want, have, got.Scores)
			}
		}
	}
	return ""
}
