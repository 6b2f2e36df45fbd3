package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// platformNode is a node of the day: what GPU Feature Discovery recorded of a machine (publishers/recorded), and what
// clouds, Karpenter, topograph and Node Feature Discovery write. None has a label of Outboard's own.
type platformNode struct {
	machine string // of gpu_nodes.yaml; empty: no GPUs
	nvlink  bool   // a fact about the machine that no label says; for the test's own judgement only
	labels  map[string]string
}

// cloud returns the labels of an instance on AWS, as the cloud controller manager and Karpenter write them.
func cloud(instance, capacity, zone string) map[string]string {
	return map[string]string{
		corev1.LabelInstanceTypeStable:  instance,
		corev1.LabelTopologyZone:        zone,
		corev1.LabelTopologyRegion:      "us-east-1",
		corev1.LabelOSStable:            "linux",
		corev1.LabelArchStable:          "amd64",
		"karpenter.sh/capacity-type":    capacity,
		"karpenter.sh/nodepool":         "default",
		"topology.k8s.aws/zone-id":      "use1-az1",
		"node.kubernetes.io/lifecycle":  capacity,
		"karpenter.k8s.aws/instance-os": "linux",
	}
}

// gpuCloud adds Node Feature Discovery's labels of a machine with an NVIDIA card, the operator's, and topograph's (of
// releases since 1.0) for its leaf switch.
func gpuCloud(instance, leaf string) map[string]string {
	labels := cloud(instance, "on-demand", "us-east-1a")
	maps.Copy(labels, map[string]string{
		"feature.node.kubernetes.io/pci-10de.present":            "true",
		"feature.node.kubernetes.io/cpu-cpuid.AVX512F":           "true",
		"feature.node.kubernetes.io/kernel-version.major":        "6",
		"feature.node.kubernetes.io/memory-numa":                 "true",
		"nvidia.com/gpu.present":                                 "true",
		"nvidia.com/gpu.deploy.device-plugin":                    "true",
		"fabric.topograph.run/tier-0":                            leaf,
		"fabric.topograph.run/tier-1":                            "spine-1",
		"topology.k8s.aws/network-node-layer-3":                  "nn-" + leaf,
		"feature.node.kubernetes.io/system-os_release.ID":        "ubuntu",
		"feature.node.kubernetes.io/network-sriov.capable":       "true",
		"feature.node.kubernetes.io/cpu-hardware_multithreading": "true",
	})
	return labels
}

var platformNodes = map[string]platformNode{
	"h100-1":     {"dgx-h100", true, gpuCloud("p5.48xlarge", "leaf-1")},
	"h100-2":     {"dgx-h100", true, gpuCloud("p5.48xlarge", "leaf-1")},
	"a100-1":     {"dgx-a100-80gb", true, gpuCloud("p4de.24xlarge", "leaf-2")},
	"a100-2":     {"dgx-a100-80gb", true, gpuCloud("p4de.24xlarge", "leaf-2")},
	"pcie-1":     {"a100-pcie", false, gpuCloud("bare-metal", "leaf-3")},
	"pcie-2":     {"a100-pcie", false, gpuCloud("bare-metal", "leaf-3")},
	"l40s-1":     {"l40s", false, gpuCloud("g6e.24xlarge", "leaf-3")},
	"cpu-1":      {"", false, cloud("m7i.8xlarge", "on-demand", "us-east-1a")},
	"cpu-spot-1": {"", false, cloud("m7i.8xlarge", "spot", "us-east-1b")},
}

// laterNodes arrive in the evening.
var laterNodes = map[string]platformNode{
	"b200-1": {"dgx-b200", true, gpuCloud("p6-b200.48xlarge", "leaf-4")},
	"b200-2": {"dgx-b200", true, gpuCloud("p6-b200.48xlarge", "leaf-4")},
	"b200-3": {"dgx-b200", true, gpuCloud("p6-b200.48xlarge", "leaf-4")},
}

// join creates nodes.
func (c *cluster) join(nodes map[string]platformNode) {
	c.Helper()
	recorded := map[string]*unstructured.Unstructured{}
	for _, node := range objects(c, read(c, "integration/publishers/recorded/gpu_nodes.yaml")) {
		recorded[node.GetName()] = node
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		of := nodes[name]
		node := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node",
			"status": map[string]any{"allocatable": map[string]any{"cpu": "32", "memory": "128Gi", "pods": "110"},
				"capacity": map[string]any{"cpu": "32", "memory": "128Gi", "pods": "110"}}}}
		if of.machine != "" {
			if recorded[of.machine] == nil {
				c.Fatalf("no recorded machine %s", of.machine)
			}
			node = recorded[of.machine].DeepCopy()
		}
		labels := node.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, of.labels)
		labels[corev1.LabelHostname] = name
		node.SetName(name)
		node.SetLabels(labels)
		text, err := yaml.Marshal(node.Object)
		if err != nil {
			c.Fatal(err)
		}
		c.applyAll(string(text))
		for key := range labels {
			for _, ours := range []string{"outboard", "accelerator.sched.io", "nvidia.com/gpu-", "gpu-", "node-cost", "nvlink-fabric"} {
				if strings.HasPrefix(key, ours) {
					c.Errorf("node %s has label %s of Outboard's own", name, key)
				}
			}
		}
	}
}

// facts lists the labels of these nodes by the part before the slash, for the test's log.
func facts(nodes map[string]platformNode) string {
	count := map[string]map[string]bool{}
	for _, node := range nodes {
		for key := range node.labels {
			prefix, name, _ := strings.Cut(key, "/")
			if count[prefix] == nil {
				count[prefix] = map[string]bool{}
			}
			count[prefix][name] = true
		}
	}
	text := "facts of the nodes, besides GPU Feature Discovery's as recorded:"
	for _, prefix := range slices.Sorted(maps.Keys(count)) {
		text += fmt.Sprintf("\n  %s/ %s", prefix, strings.Join(slices.Sorted(maps.Keys(count[prefix])), ", "))
	}
	return text
}
