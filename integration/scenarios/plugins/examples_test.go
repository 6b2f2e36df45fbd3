package plugins_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	examples = "../../../deploy/examples"
	// Annotation of the examples' pods, like `goes to` in a README's table.
	goesTo = "example/goes-to"
)

// documents returns the YAML documents of a file, without documents that are only comments.
func documents(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(object) > 0 {
			all = append(all, string(document))
		}
	}
}

// configuration returns kube-scheduler's document of a file, and the shim's.
func configuration(t *testing.T, path string) (scheduler, shim string) {
	t.Helper()
	for _, document := range documents(t, path) {
		if strings.Contains(document, "kind: ShimConfiguration") {
			shim = document
		} else {
			scheduler = document
		}
	}
	return scheduler, shim
}

// componentAccess returns the ClusterRole of a component, bound to Outboard's user here. The API server does not serve
// all of its resources, but without the right it would answer 403 instead of 404.
func componentAccess(t *testing.T, component string) string {
	t.Helper()
	role := documents(t, "../../../deploy/kustomize/components/"+component+"/role.yaml")[0]
	return role + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + component + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: outboard-shim-` + component + `.outboard-system}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + controlplane.OutboardUser + `}]
`
}

// TestExamplesGoWhereTheySay applies deploy/examples: the shim and the host load the configurations, the nodes are
// created, and the pods of each workload are created one after the other on the empty cluster. Each has a host of its own:
// GPUPacking learns from the pods that it saw, and forgets removed ones some time later.
func TestExamplesGoWhereTheySay(t *testing.T) {
	t.Parallel()
	workloads, err := filepath.Glob(examples + "/workloads/*.yaml")
	if err != nil || len(workloads) == 0 {
		t.Fatalf("no workloads (%v)", err)
	}
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ApplyCustomResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, node := range documents(t, examples+"/nodes.yaml") {
		if err := c.Apply(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	for _, component := range []string{"pod-groups", "run-owners", "node-topologies"} {
		if err := c.Apply(t.Context(), componentAccess(t, component)); err != nil {
			t.Fatal(err)
		}
	}
	tried := map[string]bool{}
	for _, name := range []string{"two-profiles", "ai-scheduler"} {
		config, shim := configuration(t, filepath.Join(examples, name+".yaml"))
		t.Run(name, func(t *testing.T) {
			for _, path := range workloads {
				pods := documents(t, path)
				var first corev1.Pod
				if err := yaml.Unmarshal([]byte(pods[0]), &first); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				if !strings.Contains(config, "- schedulerName: "+first.Spec.SchedulerName+"\n") {
					continue
				}
				tried[path] = true
				t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
					outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
						Config: controlplane.SchedulerConfig{Text: config}, Shim: shim,
					})
					if err != nil {
						t.Fatal(err)
					}
					defer outboard.Stop()
					defer func() {
						if err := removePods(context.WithoutCancel(t.Context()), client); err != nil {
							t.Error(err)
						}
					}()
					placeInTurns(t, c, client, pods)
					if t.Failed() {
						t.Log(outboard.Shim.LogTail())
					}
				})
			}
		})
	}
	for _, path := range workloads {
		if !tried[path] {
			t.Errorf("%s: its scheduler is in no configuration", path)
		}
	}
}

// placeInTurns creates one pod after the other, each when the previous one has its expected result; the pods of a
// job, which wait for each other, at once.
func placeInTurns(t *testing.T, c *controlplane.ControlPlane, client kubernetes.Interface, manifests []string) {
	t.Helper()
	var created []corev1.Pod
	settle := func() {
		for _, pod := range created {
			promised := pod.Annotations[goesTo]
			got, err := await(t.Context(), client, pod.Name, promised)
			if err != nil {
				t.Fatal(err)
			}
			if promised == "" || !keeps(got, promised) {
				t.Errorf("pod %s: %q, not %q", pod.Name, got, promised)
			} else {
				t.Logf("pod %s: %s", pod.Name, got)
			}
		}
		created = nil
	}
	for _, manifest := range manifests {
		var pod corev1.Pod
		if err := yaml.Unmarshal([]byte(manifest), &pod); err != nil {
			t.Fatal(err)
		}
		if len(created) > 0 && (pod.Labels["job-name"] == "" || pod.Labels["job-name"] != created[0].Labels["job-name"]) {
			settle()
		}
		if err := c.Apply(t.Context(), manifest); err != nil {
			t.Fatal(err)
		}
		created = append(created, pod)
	}
	settle()
}
