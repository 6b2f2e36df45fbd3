package numa

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology/nodeconfig"

	"github.com/go-logr/logr"
)

// explanations names the deliberate differences (README.md) that may change the verdict on the case. Empty: both must agree.
func explanations(c Case) []string {
	var all []string
	add := func(applies bool, name string) {
		if applies {
			all = append(all, name)
		}
	}
	conf := nodeconfig.TopologyManagerFromNodeResourceTopology(logr.Discard(), &c.Topology)
	add(conf.Policy == "restricted", "restricted")
	add(sharesCPUs(c.Pod), "parts of CPUs")
	add(hasSidecar(c.Pod), "sidecars")
	add(conf.Scope == "pod" && len(c.Pod.Spec.Overhead) > 0, "overhead")
	add(requestsUnlisted(c, c.Pod), "not in all zones")
	add(nodeLacks(c), "node without the resource")
	for _, pod := range c.Assumed {
		add(v1qos.GetPodQOS(&pod) != corev1.PodQOSGuaranteed || sharesCPUs(pod) || hasSidecar(pod) || len(pod.Spec.Overhead) > 0, "assumed pods")
	}
	return all
}

// scoreComparable tells whether the score must be equal: every rule of both sides means the same for the pod.
func scoreComparable(c Case) bool {
	conf := nodeconfig.TopologyManagerFromNodeResourceTopology(logr.Discard(), &c.Topology)
	if v1qos.GetPodQOS(&c.Pod) != corev1.PodQOSGuaranteed || conf.Policy == "none" || len(explanations(c)) > 0 || len(c.Pod.Spec.InitContainers) > 0 {
		return false
	}
	gpus := int64(0)
	for _, container := range c.Pod.Spec.Containers {
		gpus += container.Resources.Requests.Name(gpu, resource.DecimalSI).Value()
		for name := range container.Resources.Requests {
			for _, zone := range numaZones(c) {
				if !zone[name] {
					return false
				}
			}
		}
	}
	return gpus > 0 // GPUModelMatch scores no others
}

func containersOf(pod corev1.Pod) []corev1.Container {
	return append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...)
}

func sharesCPUs(pod corev1.Pod) bool {
	for _, container := range containersOf(pod) {
		if container.Resources.Requests.Cpu().MilliValue()%1000 != 0 {
			return v1qos.GetPodQOS(&pod) == corev1.PodQOSGuaranteed
		}
	}
	return false
}

func hasSidecar(pod corev1.Pod) bool {
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy != nil {
			return true
		}
	}
	return false
}

// numaZones returns the resources that each zone lists.
func numaZones(c Case) []map[corev1.ResourceName]bool {
	var zones []map[corev1.ResourceName]bool
	for _, zone := range c.Topology.Zones {
		if zone.Type != "Node" || len(zone.Resources) == 0 || !strings.HasPrefix(zone.Name, "node-") {
			continue
		}
		listed := map[corev1.ResourceName]bool{}
		for _, of := range zone.Resources {
			listed[corev1.ResourceName(of.Name)] = true
		}
		zones = append(zones, listed)
	}
	return zones
}

// requestsUnlisted: a native resource that some zone does not list, or none.
func requestsUnlisted(c Case, pod corev1.Pod) bool {
	guaranteed := v1qos.GetPodQOS(&pod) == corev1.PodQOSGuaranteed
	for _, container := range containersOf(pod) {
		for name := range container.Resources.Requests {
			if !v1helper.IsNativeResource(name) || name == corev1.ResourceEphemeralStorage {
				continue
			}
			listing := 0
			zones := numaZones(c)
			for _, zone := range zones {
				if zone[name] {
					listing++
				}
			}
			if listing == 0 || (!guaranteed && listing < len(zones)) {
				return true
			}
		}
	}
	return false
}

func nodeLacks(c Case) bool {
	for _, container := range containersOf(c.Pod) {
		for name := range container.Resources.Requests {
			if _, has := c.Node.Status.Allocatable[name]; !has {
				return true
			}
		}
	}
	return false
}
