package recorder

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const recorded = "../recorded/gpu_nodes.yaml"

// publishChosen publishes again until the publisher chose the wanted one of several models.
func publishChosen(t *testing.T, m machine) *node {
	t.Helper()
	for range 200 {
		node, err := m.publish(t.TempDir())
		if err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		if m.chosen == "" || node.labels["nvidia.com/gpu.product"] == m.chosen {
			return node
		}
	}
	t.Fatalf("%s: the publisher never chooses %s", m.name, m.chosen)
	return nil
}

// text is the recorded file: a Node for each machine.
func text(t *testing.T) string {
	t.Helper()
	plugin, err := version("github.com/NVIDIA/k8s-device-plugin")
	if err != nil {
		t.Fatal(err)
	}
	mocks, err := version("github.com/NVIDIA/go-nvml")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# What NVIDIA's GPU Feature Discovery publishes about nodes with GPUs; amounts follow from the device plugin's rules.
# Publisher: github.com/NVIDIA/k8s-device-plugin %s (Apache-2.0), package internal/lm.
# Machines: the mocks of github.com/NVIDIA/go-nvml %s. Names and memory of GPUs: given, see README.md.
# Command: integration/publishers/record.sh
`, plugin, mocks)
	for _, machine := range machines() {
		node := publishChosen(t, machine)
		amounts := map[string]string{"cpu": "64", "memory": "512Gi", "pods": "110"}
		for name, count := range node.resources {
			amounts[name] = fmt.Sprint(count)
		}
		manifest, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{"name": machine.name, "labels": node.labels},
			"status":   map[string]any{"capacity": amounts, "allocatable": amounts},
		})
		if err != nil {
			t.Fatal(err)
		}
		flags := "--mig-strategy=none"
		if machine.mig != "" {
			flags = "--mig-strategy=" + machine.mig
		}
		if machine.share != "" {
			flags += ", sharing: {" + machine.share + "}"
		}
		fmt.Fprintf(&out, "---\n# %d GPUs; %s; %s\n%s", len(machine.gpus), machine.what, flags, manifest)
	}
	return out.String()
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
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d: recorded %q, published %q; if the publisher changed, integration/publishers/record.sh writes the file", recorded, i+1, wantLines[i], gotLines[i])
		}
	}
	t.Fatalf("%s has %d lines, the publisher wrote %d", recorded, len(wantLines), len(gotLines))
}
