package topologyupdater

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// host is a node as the topology updater sees it.
type host struct {
	name      string
	what      string // For the comment above the recorded object.
	distances [][]int
	cpus      int // Of each NUMA node; the first of each is reserved for the system.
	// NUMA node of each GPU; -1: the device plugin does not say one.
	gpus          []int
	policy, scope string // Of the kubelet's topology manager.
	fingerprint   bool   // --pods-fingerprint.
	pods          []pod
}

// pod is a running pod with the devices that the kubelet gave it.
type pod struct {
	name       string
	guaranteed bool
	cpus       []int64
	gpus       []int
}

func hosts() []host {
	two := [][]int{{10, 21}, {21, 10}}
	eight := []int{0, 0, 0, 0, 1, 1, 1, 1}
	return []host{
		{name: "dgx-h100", what: "8 GPUs on two NUMA nodes, idle", distances: two, cpus: 8, gpus: eight, policy: "single-numa-node", scope: "pod"},
		{name: "dgx-h100-busy", what: "GPUs 0, 1 and 4 are a Guaranteed pod's and a Burstable pod's, and one pod has CPUs of its own",
			distances: two, cpus: 8, gpus: eight, policy: "single-numa-node", scope: "container",
			pods: []pod{
				{name: "train", guaranteed: true, cpus: []int64{1, 2}, gpus: []int{0, 1}},
				{name: "notebook", gpus: []int{4}},
				{name: "encoder", guaranteed: true, cpus: []int64{9}},
			}},
		{name: "dgx-h100-fingerprint", what: "with --pods-fingerprint", distances: two, cpus: 8, gpus: eight, policy: "restricted", scope: "container", fingerprint: true,
			pods: []pod{{name: "train", guaranteed: true, gpus: []int{0}}}},
		{name: "without-numa", what: "the device plugin names no NUMA nodes, as in most virtual machines", distances: [][]int{{10}}, cpus: 8, gpus: []int{-1, -1},
			policy: "none", scope: "container"},
		{name: "four-numa-nodes", what: "four NUMA nodes, GPUs on two", distances: [][]int{{10, 12, 32, 32}, {12, 10, 32, 32}, {32, 32, 10, 12}, {32, 32, 12, 10}},
			cpus: 4, gpus: []int{1, 1, 3, 3}, policy: "best-effort", scope: "container"},
	}
}

// write creates the host's files below the current folder, where the linked pathPrefix leads.
func (h host) write(t *testing.T) {
	t.Helper()
	file := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for node, distances := range h.distances {
		folder := fmt.Sprintf("host/sys/devices/system/node/node%d/", node)
		text := ""
		for _, distance := range distances {
			text += fmt.Sprint(distance, " ")
		}
		file(folder+"distance", text+"\n")
		meminfo := fmt.Sprintf("Node %d MemTotal: 536870912 kB\n", node)
		file(folder+"meminfo", meminfo)
		file(folder+"hugepages/hugepages-2048kB/nr_hugepages", "0\n")
		file(fmt.Sprintf("host/sys/bus/node/devices/node%d/meminfo", node), meminfo)
		file(fmt.Sprintf("host/sys/bus/node/devices/node%d/hugepages/hugepages-2048kB/nr_hugepages", node), "0\n")
		for cpu := range h.cpus {
			number := node*h.cpus + cpu
			file(fmt.Sprintf("%scpu%d/topology/core_id", folder, number), fmt.Sprintln(number))
			file(fmt.Sprintf("%scpu%d/online", folder, number), "1\n")
		}
	}
	file("kubelet.yaml", fmt.Sprintf("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ntopologyManagerPolicy: %s\ntopologyManagerScope: %s\n", h.policy, h.scope))
}

func gpuID(gpu int) string { return fmt.Sprintf("GPU-%08x-0000-4000-8000-%012x", gpu, gpu) }

// devices are the entries of GPUs in the kubelet's answers: one for each GPU.
func (h host) devices(gpus []int) []*podresources.ContainerDevices {
	var devices []*podresources.ContainerDevices
	for _, gpu := range gpus {
		one := &podresources.ContainerDevices{ResourceName: "nvidia.com/gpu", DeviceIds: []string{gpuID(gpu)}}
		if node := h.gpus[gpu]; node >= 0 {
			one.Topology = &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: int64(node)}}}
		}
		devices = append(devices, one)
	}
	return devices
}

// kubelet answers as the kubelet's PodResources server does.
type kubelet struct {
	podresources.UnsafePodResourcesListerServer
	host
}

func (k kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	answer := &podresources.ListPodResourcesResponse{}
	for _, pod := range k.pods {
		answer.PodResources = append(answer.PodResources, &podresources.PodResources{Name: pod.name, Namespace: "default",
			Containers: []*podresources.ContainerResources{{Name: "main", CpuIds: pod.cpus, Devices: k.devices(pod.gpus)}}})
	}
	return answer, nil
}

func (k kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	answer := &podresources.AllocatableResourcesResponse{}
	for cpu := range int64(k.cpus * len(k.distances)) {
		if cpu%int64(k.cpus) != 0 {
			answer.CpuIds = append(answer.CpuIds, cpu)
		}
	}
	all := make([]int, len(k.gpus))
	for gpu := range all {
		all[gpu] = gpu
	}
	answer.Devices = k.devices(all)
	return answer, nil
}

func (k kubelet) Get(context.Context, *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	return &podresources.GetPodResourcesResponse{}, nil
}

// serve starts the kubelet's server on a socket below the current folder.
func (h host) serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("unix", "kubelet.sock")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, kubelet{host: h})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	path, err := filepath.Abs("kubelet.sock")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// pod is the object of the API server, from which the updater takes the class of service.
func (p pod) object() *corev1.Pod {
	amounts := corev1.ResourceList{"cpu": quantity(len(p.cpus)), "memory": quantity(1 << 30)}
	if len(p.cpus) == 0 {
		amounts["cpu"] = quantity(1)
	}
	resources := corev1.ResourceRequirements{Requests: amounts}
	if p.guaranteed {
		resources.Limits = amounts
	}
	object := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: resources}}}}
	object.APIVersion, object.Kind, object.Name, object.Namespace = "v1", "Pod", p.name, "default"
	return object
}
