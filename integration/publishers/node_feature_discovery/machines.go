// Package recorder records the NodeResourceTopology objects that Node Feature Discovery's topology updater writes. The
// updater is its own program; the machine's /sys, the kubelet and the API server are this package's.
package recorder

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	gib      = int64(1) << 30
	gpu      = "nvidia.com/gpu"
	hugePage = "hugepages-1Gi"
)

// machine is a node, and what its kubelet manages.
type machine struct {
	name      string
	policy    string // topologyManagerPolicy of the kubelet's configuration
	scope     string // topologyManagerScope
	zones     []zone
	distances [][]int
	pods      []pod
	// With the policy Static of the memory manager the kubelet reports memory, and with static of the CPU manager CPUs.
	managesCPUs, managesMemory bool
	reserved                   map[int]bool // CPUs of the system
}

// zone is a NUMA node of a machine. CPUs are numbered as Linux does: the cores of all zones, then their second threads.
type zone struct {
	cores     int // with two threads each
	memory    int64
	hugePages int64 // of 1 GiB
	gpus      []string
}

// pod is a pod that runs on the machine, with what the kubelet gave it.
type pod struct {
	name                 string
	requestCPU, limitCPU string
	cpus                 []int64
	gpus                 []string
	zone                 int64
	memory               int64
}

func gpus(from, to int) []string {
	var ids []string
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprintf("GPU-%08x-0000-4000-8000-%012x", i, i))
	}
	return ids
}

func machines() []machine {
	sockets := [][]int{{10, 21}, {21, 10}}
	return []machine{
		// Two sockets of 32 cores, four GPUs each; a Guaranteed, a Burstable and a BestEffort pod run.
		{name: "two-sockets", policy: "single-numa-node", scope: "pod", managesCPUs: true, managesMemory: true, distances: sockets,
			zones: []zone{{32, 512 * gib, 16, gpus(0, 4)}, {32, 512 * gib, 0, gpus(4, 8)}}, reserved: map[int]bool{0: true, 64: true},
			pods: []pod{
				{name: "train-0", requestCPU: "4", limitCPU: "4", cpus: []int64{2, 3, 66, 67}, gpus: gpus(0, 2), zone: 0, memory: 64 * gib},
				{name: "notebook", requestCPU: "1", limitCPU: "8", gpus: gpus(4, 5), zone: 1},
				{name: "web"},
			}},
		// A socket in four zones (NPS4), two of which have GPUs.
		{name: "four-zones", policy: "restricted", scope: "container",
			managesCPUs: true, managesMemory: true, distances: [][]int{{10, 12, 12, 12}, {12, 10, 12, 12}, {12, 12, 10, 12}, {12, 12, 12, 10}},
			zones:    []zone{{16, 128 * gib, 0, nil}, {16, 128 * gib, 0, gpus(0, 2)}, {16, 128 * gib, 0, nil}, {16, 128 * gib, 0, gpus(2, 4)}},
			reserved: map[int]bool{0: true, 1: true, 2: true, 3: true}},
		// The kubelet aligns devices only; the second socket has none.
		{name: "no-cpu-manager", policy: "single-numa-node", scope: "container",
			distances: sockets, zones: []zone{{32, 512 * gib, 0, gpus(0, 4)}, {32, 512 * gib, 0, nil}}},
		// One socket, and a kubelet with its defaults.
		{name: "one-zone", distances: [][]int{{10}}, zones: []zone{{8, 64 * gib, 0, gpus(0, 1)}}},
	}
}

// cpus returns the logical CPUs of a zone.
func (m machine) cpus(of int) []int {
	cores, first := 0, 0
	for i, zone := range m.zones {
		if i < of {
			first += zone.cores
		}
		cores += zone.cores
	}
	var all []int
	for _, thread := range []int{0, cores} {
		for i := range m.zones[of].cores {
			all = append(all, thread+first+i)
		}
	}
	return all
}

func in(zone int64) *podresourcesv1.TopologyInfo {
	return &podresourcesv1.TopologyInfo{Nodes: []*podresourcesv1.NUMANode{{ID: zone}}}
}

func devices(ids []string, zone int64) []*podresourcesv1.ContainerDevices {
	var all []*podresourcesv1.ContainerDevices
	for _, id := range ids {
		all = append(all, &podresourcesv1.ContainerDevices{ResourceName: gpu, DeviceIds: []string{id}, Topology: in(zone)})
	}
	return all
}

// allocatable is what the kubelet answers to GetAllocatableResources.
func (m machine) allocatable() *podresourcesv1.AllocatableResourcesResponse {
	answer := &podresourcesv1.AllocatableResourcesResponse{}
	for i, zone := range m.zones {
		id := int64(i)
		answer.Devices = append(answer.Devices, devices(zone.gpus, id)...)
		if m.managesCPUs {
			for _, cpu := range m.cpus(i) {
				if !m.reserved[cpu] {
					answer.CpuIds = append(answer.CpuIds, int64(cpu))
				}
			}
		}
		if m.managesMemory {
			pages := zone.hugePages * gib
			// A gibibyte of the first zone is the system's.
			memory := zone.memory - pages
			if i == 0 {
				memory -= gib
			}
			answer.Memory = append(answer.Memory, &podresourcesv1.ContainerMemory{MemoryType: "memory", Size: uint64(memory), Topology: in(id)})
			if pages > 0 {
				answer.Memory = append(answer.Memory, &podresourcesv1.ContainerMemory{MemoryType: hugePage, Size: uint64(pages), Topology: in(id)})
			}
		}
	}
	return answer
}

// given is what the kubelet answers to List.
func (m machine) given() *podresourcesv1.ListPodResourcesResponse {
	answer := &podresourcesv1.ListPodResourcesResponse{}
	for _, pod := range m.pods {
		container := &podresourcesv1.ContainerResources{Name: "main", CpuIds: pod.cpus, Devices: devices(pod.gpus, pod.zone)}
		if pod.memory > 0 {
			container.Memory = []*podresourcesv1.ContainerMemory{{MemoryType: "memory", Size: uint64(pod.memory), Topology: in(pod.zone)}}
		}
		answer.PodResources = append(answer.PodResources, &podresourcesv1.PodResources{Name: pod.name, Namespace: "default",
			Containers: []*podresourcesv1.ContainerResources{container}})
	}
	return answer
}

// object is the pod as the API server has it: the updater asks for its quality of service.
func (p pod) object() *corev1.Pod {
	container := corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}}
	set := func(name corev1.ResourceName, request, limit string) {
		if request != "" {
			container.Resources.Requests[name] = resource.MustParse(request)
			container.Resources.Limits[name] = resource.MustParse(limit)
		}
	}
	set(corev1.ResourceCPU, p.requestCPU, p.limitCPU)
	if p.memory > 0 {
		set(corev1.ResourceMemory, strconv.FormatInt(p.memory, 10), strconv.FormatInt(p.memory, 10))
	}
	if len(p.gpus) > 0 {
		set(gpu, strconv.Itoa(len(p.gpus)), strconv.Itoa(len(p.gpus)))
	}
	made := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	made.Kind, made.APIVersion, made.Name, made.Namespace = "Pod", "v1", p.name, "default"
	return made
}
