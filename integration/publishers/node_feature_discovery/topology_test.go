package recorder

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
)

const (
	recorded = "../recorded/node_topologies.json"
	module   = "sigs.k8s.io/node-feature-discovery"
	program  = module + "/cmd/nfd-topology-updater"
)

// build builds the updater. As in its own image, the linker sets the folder that it reads instead of /sys.
func build(t *testing.T, folder, version string) string {
	t.Helper()
	updater := filepath.Join(folder, "nfd-topology-updater")
	flags := "-X " + module + "/pkg/utils/hostpath.pathPrefix=" + folder + "/host- -X " + module + "/pkg/version.version=" + version
	if out, err := exec.Command("go", "build", "-o", updater, "-ldflags", flags, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return updater
}

func moduleVersion(t *testing.T, path string) string {
	t.Helper()
	text, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// publish runs the updater once, and returns the object that it creates.
func publish(t *testing.T, updater, folder string, m machine) v1alpha2.NodeResourceTopology {
	t.Helper()
	sys := filepath.Join(folder, "host-sys")
	if err := os.RemoveAll(sys); err != nil {
		t.Fatal(err)
	}
	m.writeSys(t, sys)
	state := t.TempDir() // Short, because a socket's path has at most 107 bytes.
	socket := filepath.Join(state, "kubelet.sock")
	m.serveKubelet(t, socket)
	api := &apiServer{machine: m}
	files := map[string]string{"kubeconfig": api.serve(t), "kubelet.yaml": m.kubeletConfiguration()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(state, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(state, "device-plugins"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, updater, "-oneshot", "-port=0", "-sleep-interval=10ms", "-config=", "-kubelet-state-dir="+state,
		"-kubeconfig="+filepath.Join(state, "kubeconfig"), "-kubelet-config-uri=file://"+filepath.Join(state, "kubelet.yaml"), "-podresources-socket="+socket)
	command.Env = append(os.Environ(), "NODE_NAME="+m.name)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", m.name, err, out)
	}
	api.mutex.Lock()
	defer api.mutex.Unlock()
	if len(api.created) != 1 {
		t.Fatalf("%s: %d objects\n%s", m.name, len(api.created), out)
	}
	return api.created[0]
}

// sorted: the updater writes zones and resources in any order, which differs from run to run.
func sorted(object v1alpha2.NodeResourceTopology) v1alpha2.NodeResourceTopology {
	slices.SortFunc(object.Zones, func(a, b v1alpha2.Zone) int { return strings.Compare(a.Name, b.Name) })
	for _, zone := range object.Zones {
		slices.SortFunc(zone.Resources, func(a, b v1alpha2.ResourceInfo) int { return strings.Compare(a.Name, b.Name) })
	}
	object.Kind, object.APIVersion = "NodeResourceTopology", "topology.node.k8s.io/v1alpha2"
	return object
}

// text is the recorded file: a List with an object for each machine.
func text(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	updater := build(t, folder, moduleVersion(t, module))
	var items []v1alpha2.NodeResourceTopology
	for _, m := range machines() {
		items = append(items, sorted(publish(t, updater, folder, m)))
	}
	list, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(list) + "\n"
}

// TestRecorded: the recorded file is what this version of the publisher writes. UPDATE_GOLDEN=1 writes it.
func TestRecorded(t *testing.T) {
	got := text(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(recorded, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d: recorded %q, published %q; if the publisher changed, integration/publishers/record.sh writes the file", recorded, i+1, wantLines[i], gotLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%s has %d lines, the publisher wrote %d", recorded, len(wantLines), len(gotLines))
	}
}
