package numa

import (
	"fmt"
	"math/rand/v2"
	"testing"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
)

// The kubelet's own policies merge hints, and admit or reject. The hints are those of its managers (generateCPUTopologyHints,
// generateDeviceTopologyHints, calculateHints), written a second time. Init containers are left out: what the kubelet does with resources
// that they give back, no object tells.
func TestThePoliciesOfTheKubeletDecideTheSame(t *testing.T) {
	var cases []Case
	for i := range *number {
		g := generator{rand.New(rand.NewPCG(*seed+1<<32, uint64(i))), true}
		c := g.Case(fmt.Sprintf("node-%d", i))
		// The number of permutations of hints grows with 2^(zones*resources).
		if zones := g.IntN(3) + 1; len(c.Topology.Zones) > zones {
			c.Topology.Zones = c.Topology.Zones[:zones]
		}
		c.Assumed, c.Pod.Spec.InitContainers, c.Topology.TopologyPolicies = nil, nil, nil
		c.Topology.Attributes = []topology.AttributeInfo{
			{Name: "topologyManagerPolicy", Value: pick(g, "restricted", "restricted", "single-numa-node", "best-effort")},
			{Name: "topologyManagerScope", Value: pick(g, "container", "pod")}}
		cases = append(cases, c)
	}
	admitted, rejected := 0, 0
	for i, answer := range ask(t, cases) {
		admits := newMachine(t, cases[i]).admits(cases[i].Pod)
		if admits {
			admitted++
		} else {
			rejected++
		}
		if admits != (answer.reason == "ok") {
			t.Errorf("case %d: %q, the kubelet admits: %v:\n%s", i, answer.reason, admits, line(t, cases[i]))
		}
	}
	t.Logf("%d admitted, %d rejected", admitted, rejected)
	if admitted < len(cases)/10 || rejected < len(cases)/10 {
		t.Errorf("only %d admitted, %d rejected", admitted, rejected)
	}
}

type hints = []topologymanager.TopologyHint

type amount struct{ capacity, allocatable, free int64 }

// machine is a node as the managers of its kubelet know it; CPUs in cores.
type machine struct {
	policy topologymanager.Policy
	scope  string
	zones  []map[corev1.ResourceName]amount
}

func newMachine(t *testing.T, c Case) *machine {
	t.Helper()
	m := &machine{scope: c.Topology.Attributes[1].Value}
	info := &topologymanager.NUMAInfo{NUMADistances: topologymanager.NUMADistances{}}
	for _, zone := range c.Topology.Zones {
		if zone.Type != "Node" || len(zone.Resources) == 0 {
			continue
		}
		amounts := map[corev1.ResourceName]amount{}
		for _, of := range zone.Resources {
			amounts[corev1.ResourceName(of.Name)] = amount{of.Capacity.Value(), of.Allocatable.Value(), of.Available.Value()}
		}
		info.Nodes = append(info.Nodes, len(m.zones))
		m.zones = append(m.zones, amounts)
	}
	switch c.Topology.Attributes[0].Value {
	case "restricted":
		m.policy = topologymanager.NewRestrictedPolicy(info, topologymanager.PolicyOptions{})
	case "single-numa-node":
		m.policy = topologymanager.NewSingleNumaNodePolicy(info, topologymanager.PolicyOptions{})
	default:
		m.policy = topologymanager.NewBestEffortPolicy(info, topologymanager.PolicyOptions{})
	}
	return m
}

func (m *machine) admits(pod corev1.Pod) bool {
	guaranteed := v1qos.GetPodQOS(&pod) == corev1.PodQOSGuaranteed
	var parts []map[corev1.ResourceName]int64
	for _, container := range pod.Spec.Containers {
		parts = append(parts, m.exclusive(container, guaranteed))
	}
	if m.scope == "pod" {
		sum := map[corev1.ResourceName]int64{}
		for _, part := range parts {
			for name, amount := range part {
				sum[name] += amount
			}
		}
		parts = []map[corev1.ResourceName]int64{sum}
	}
	for _, part := range parts {
		best, admit := m.policy.Merge(m.hints(part))
		if !admit {
			return false
		}
		m.take(part, best.NUMANodeAffinity)
	}
	return true
}

// exclusive returns what managers give hints for: devices with zones, and CPUs and memory if the node reports them.
func (m *machine) exclusive(container corev1.Container, guaranteed bool) map[corev1.ResourceName]int64 {
	all := map[corev1.ResourceName]int64{}
	for name, quantity := range container.Resources.Requests {
		if quantity.IsZero() || !m.lists(name) || (v1helper.IsNativeResource(name) && !guaranteed) {
			continue
		}
		all[name] = quantity.Value()
	}
	return all
}

func (m *machine) lists(name corev1.ResourceName) bool {
	for _, zone := range m.zones {
		if _, has := zone[name]; has {
			return true
		}
	}
	return false
}

func (m *machine) sum(mask bitmask.BitMask, name corev1.ResourceName, of func(amount) int64) int64 {
	total := int64(0)
	for _, zone := range mask.GetBits() {
		total += of(m.zones[zone][name])
	}
	return total
}

func capacity(a amount) int64    { return a.capacity }
func allocatable(a amount) int64 { return a.allocatable }
func free(a amount) int64        { return a.free }

// hints of a CPU manager, a memory manager and a device manager.
func (m *machine) hints(part map[corev1.ResourceName]int64) []map[string]hints {
	var zones []int
	for zone := range m.zones {
		zones = append(zones, zone)
	}
	memory := map[corev1.ResourceName]int64{}
	var providers []map[string]hints
	for name, wanted := range part {
		if name == corev1.ResourceMemory || v1helper.IsHugePageResourceName(name) {
			memory[name] = wanted
			continue
		}
		own := m.hintsFor(zones, map[corev1.ResourceName]int64{name: wanted}, capacity)
		providers = append(providers, map[string]hints{string(name): own})
	}
	if len(memory) > 0 {
		together := map[string]hints{}
		for name := range memory {
			together[string(name)] = m.hintsFor(zones, memory, allocatable)
		}
		providers = append(providers, together)
	}
	return providers
}

func (m *machine) hintsFor(zones []int, wanted map[corev1.ResourceName]int64, idle func(amount) int64) hints {
	fewest := len(zones)
	found := hints{}
	bitmask.IterateBitMasks(zones, func(mask bitmask.BitMask) {
		suits := true
		for name, amount := range wanted {
			if m.sum(mask, name, idle) < amount {
				return
			}
			suits = suits && m.sum(mask, name, free) >= amount
		}
		fewest = min(fewest, mask.Count())
		if suits {
			found = append(found, topologymanager.TopologyHint{NUMANodeAffinity: mask})
		}
	})
	for i := range found {
		found[i].Preferred = found[i].NUMANodeAffinity.Count() == fewest
	}
	return found
}

func (m *machine) take(part map[corev1.ResourceName]int64, from bitmask.BitMask) {
	// The policy single-numa-node says so of a machine's only zone; the managers then take from all zones.
	var zones []int
	if from != nil {
		zones = from.GetBits()
	} else {
		for zone := range m.zones {
			zones = append(zones, zone)
		}
	}
	for name, left := range part {
		for _, zone := range zones {
			has, listed := m.zones[zone][name]
			if !listed {
				continue
			}
			taken := min(left, has.free)
			has.free -= taken
			left -= taken
			m.zones[zone][name] = has
		}
	}
}
