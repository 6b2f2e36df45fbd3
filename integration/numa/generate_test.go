package numa

import (
	"fmt"
	"math/rand/v2"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Case is a pod, and a node with its object and the pods that were placed there since.
type Case struct {
	Node     corev1.Node
	Topology topology.NodeResourceTopology
	Assumed  []corev1.Pod
	Pod      corev1.Pod
}

const (
	gpu       corev1.ResourceName = "nvidia.com/gpu"
	nic       corev1.ResourceName = "example.com/nic"
	fpga      corev1.ResourceName = "example.com/fpga" // of the node, but of no zone
	hugePages corev1.ResourceName = "hugepages-2Mi"
	gi        int64               = 1 << 30
)

// generator makes cases. With `plain`, only those to which no deliberate difference applies (explain_test.go).
type generator struct {
	*rand.Rand
	plain bool
}

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

func (g generator) Case(name string) Case {
	zones := pick(g, 1, 2, 2, 2, 2, 3, 4, 4, 8)
	listed := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for _, more := range []corev1.ResourceName{gpu, gpu, nic, hugePages} {
		if g.chance(60) {
			listed = append(listed, more)
		}
	}
	c := Case{Node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	c.Topology.Name = name
	g.policy(&c.Topology)
	allocatable := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("256"), corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		gpu: resource.MustParse("64"), nic: resource.MustParse("64"), fpga: resource.MustParse("8"), hugePages: resource.MustParse("64Gi")}
	if !g.plain && g.chance(5) {
		delete(allocatable, pick(g, gpu, nic, fpga, hugePages))
	}
	c.Node.Status = corev1.NodeStatus{Capacity: allocatable, Allocatable: allocatable}
	for id := range zones {
		c.Topology.Zones = append(c.Topology.Zones, g.zone(id, zones, listed))
	}
	if g.chance(5) {
		c.Topology.Zones = append(c.Topology.Zones, topology.Zone{Name: pick(g, "socket-0", "node-x", "node-70"), Type: pick(g, "Socket", "Node")})
	}
	c.Pod = g.pod("pod", listed)
	if g.chance(30) {
		for i := range 1 + g.IntN(2) {
			pod := g.pod(fmt.Sprintf("assumed-%d", i), listed)
			if g.plain { // the plugin's cache also subtracts what the kubelet does not allocate
				pod.Spec.InitContainers = nil
				pod.Spec.Containers = pod.Spec.Containers[:1]
				g.resources(&pod.Spec.Containers[0], listed, "Guaranteed")
			}
			c.Assumed = append(c.Assumed, pod)
		}
	}
	return c
}

func (g generator) policy(object *topology.NodeResourceTopology) {
	policy := pick(g, "single-numa-node", "single-numa-node", "single-numa-node", "none", "best-effort")
	if !g.plain && g.chance(30) {
		policy = "restricted"
	}
	scope := pick(g, "container", "container", "pod")
	if g.chance(10) { // the older field, which attributes override
		object.TopologyPolicies = pick(g, []string{"SingleNUMANodePodLevel"}, []string{"SingleNUMANodeContainerLevel", "BestEffortPodLevel"}, []string{"None"})
		if g.chance(50) {
			return
		}
	}
	if g.chance(97) {
		object.Attributes = append(object.Attributes, topology.AttributeInfo{Name: "topologyManagerPolicy", Value: policy})
	}
	if g.chance(90) {
		object.Attributes = append(object.Attributes, topology.AttributeInfo{Name: "topologyManagerScope", Value: pick(g, scope, scope, scope, scope, "Pod")})
	}
	if g.chance(10) {
		object.Attributes = append(object.Attributes, topology.AttributeInfo{Name: "topologyManagerMaxNUMANodes", Value: pick(g, "16", "2", "0", "many")})
	}
}

func (g generator) zone(id, zones int, listed []corev1.ResourceName) topology.Zone {
	zone := topology.Zone{Name: fmt.Sprintf("node-%d", id), Type: "Node"}
	if g.chance(90) {
		for other := range zones {
			distance := int64(10)
			if other != id {
				distance = pick[int64](g, 12, 21, 21, 32)
			}
			zone.Costs = append(zone.Costs, topology.CostInfo{Name: fmt.Sprintf("node-%d", other), Value: distance})
		}
	}
	for _, name := range listed {
		device := name == gpu || name == nic
		if (device && g.chance(10)) || (!g.plain && g.chance(4)) {
			continue
		}
		capacity := map[corev1.ResourceName]int64{corev1.ResourceCPU: 16, corev1.ResourceMemory: 64 * gi, hugePages: 4 * gi, gpu: 4, nic: 2}[name]
		reserved := int64(0)
		if !device && g.chance(50) {
			reserved = capacity / 8
		}
		unit := int64(1)
		if capacity >= gi {
			unit = gi
		}
		free := (capacity - reserved) / unit
		available := (free - g.Int64N(free+1)*pick[int64](g, 0, 1, 1)) * unit
		zone.Resources = append(zone.Resources, topology.ResourceInfo{Name: string(name), Capacity: *resource.NewQuantity(capacity, resource.DecimalSI),
			Allocatable: *resource.NewQuantity(capacity-reserved, resource.DecimalSI), Available: *resource.NewQuantity(available, resource.DecimalSI)})
	}
	return zone
}

func (g generator) pod(name string, listed []corev1.ResourceName) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	class := pick(g, "Guaranteed", "Guaranteed", "Guaranteed", "Burstable", "BestEffort")
	for i := range pick(g, 1, 1, 2, 3) {
		container := corev1.Container{Name: fmt.Sprintf("app-%d", i)}
		g.resources(&container, listed, class)
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	if g.chance(25) {
		for i := range 1 + g.IntN(2) {
			container := corev1.Container{Name: fmt.Sprintf("init-%d", i)}
			g.resources(&container, listed, class)
			if always := corev1.ContainerRestartPolicyAlways; !g.plain && g.chance(40) {
				container.RestartPolicy = &always
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		}
	}
	if !g.plain && g.chance(10) {
		pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(g, "250m", "1")), corev1.ResourceMemory: resource.MustParse("128Mi")}
	}
	return pod
}

// resources sets the container's resources, as the API server completes them: requests everywhere.
func (g generator) resources(container *corev1.Container, listed []corev1.ResourceName, class string) {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	if class != "BestEffort" {
		cpu := *resource.NewQuantity(1+g.Int64N(pick[int64](g, 4, 8, 16)), resource.DecimalSI)
		if !g.plain && g.chance(15) {
			cpu = *resource.NewMilliQuantity(500+g.Int64N(4000), resource.DecimalSI)
		}
		requests[corev1.ResourceCPU] = cpu
		requests[corev1.ResourceMemory] = *resource.NewQuantity((1+g.Int64N(pick[int64](g, 8, 32, 64)))*gi, resource.BinarySI)
	}
	if class == "Guaranteed" {
		limits = requests.DeepCopy()
	} else if class == "Burstable" && g.chance(50) {
		limits[corev1.ResourceCPU] = resource.MustParse("32")
	}
	for _, name := range listed {
		var amount *resource.Quantity
		switch {
		case name == hugePages && class != "BestEffort" && g.chance(30):
			amount = resource.NewQuantity((1+g.Int64N(4))*gi, resource.BinarySI)
		case name == gpu && g.chance(80):
			amount = resource.NewQuantity(g.Int64N(5), resource.DecimalSI) // also 0
		case name == nic && g.chance(30):
			amount = resource.NewQuantity(1+g.Int64N(2), resource.DecimalSI)
		default:
			continue
		}
		requests[name], limits[name] = *amount, *amount
	}
	if g.chance(5) {
		requests[fpga], limits[fpga] = resource.MustParse("1"), resource.MustParse("1")
	}
	if g.chance(10) {
		requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	container.Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
}
