package main

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	pb "outboard.dev/contract/v1beta1"
)

// podObject returns the fields of the pod that Kubernetes' packages read here.
func podObject(p *pb.Pod) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.GetNamespace(), Name: p.GetName(), UID: types.UID(p.GetUid())}}
	for _, claim := range p.GetClaims() {
		entry := v1.PodResourceClaim{Name: claim.GetName()}
		if name := claim.GetClaimName(); name != "" {
			entry.ResourceClaimName = &name
		} else if template := claim.GetTemplateName(); template != "" {
			entry.ResourceClaimTemplateName = &template
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, entry)
		if claim.MadeClaimName != nil {
			status := v1.PodResourceClaimStatus{Name: claim.GetName()}
			if made := claim.GetMadeClaimName(); made != "" {
				status.ResourceClaimName = &made
			}
			pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, status)
		}
	}
	if !namesExtendedResources(p) {
		return pod // Its containers do not matter.
	}
	pod.Spec.Containers = containerObjects(p.GetContainers())
	pod.Spec.InitContainers = containerObjects(p.GetInitContainers())
	pod.Spec.Overhead = resourceList(p.GetOverhead())
	if p.GetPodRequests() != nil {
		pod.Spec.Resources = &v1.ResourceRequirements{Requests: resourceList(p.GetPodRequests())}
	}
	return pod
}

func containerObjects(from []*pb.Container) []v1.Container {
	containers := make([]v1.Container, len(from))
	for i, c := range from {
		containers[i] = v1.Container{Name: c.GetName(), Resources: v1.ResourceRequirements{Requests: resourceList(c.GetRequests())}}
		if c.GetRestartPolicyAlways() {
			always := v1.ContainerRestartPolicyAlways
			containers[i].RestartPolicy = &always
		}
	}
	return containers
}

func resourceList(from *pb.ResourceList) v1.ResourceList {
	if from == nil {
		return nil
	}
	list := v1.ResourceList{}
	if from.CpuMillis != nil {
		list[v1.ResourceCPU] = *resource.NewMilliQuantity(from.GetCpuMillis(), resource.DecimalSI)
	}
	if from.MemoryBytes != nil {
		list[v1.ResourceMemory] = *resource.NewQuantity(from.GetMemoryBytes(), resource.BinarySI)
	}
	if from.EphemeralStorageBytes != nil {
		list[v1.ResourceEphemeralStorage] = *resource.NewQuantity(from.GetEphemeralStorageBytes(), resource.BinarySI)
	}
	for name, amount := range from.GetScalar() {
		list[v1.ResourceName(name)] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	return list
}

// namesExtendedResources returns whether a device class may provide one of the pod's resources.
func namesExtendedResources(p *pb.Pod) bool {
	for _, containers := range [][]*pb.Container{p.GetContainers(), p.GetInitContainers()} {
		for _, c := range containers {
			if slices.ContainsFunc(slices.Collect(maps.Keys(c.GetRequests().GetScalar())), isExtendedResource) {
				return true
			}
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(p.GetOverhead().GetScalar())), isExtendedResource)
}

// isExtendedResource is kube-scheduler's rule for names that a class may provide: outside Kubernetes' domains, or the
// class' own name.
func isExtendedResource(name string) bool {
	if strings.HasPrefix(name, resourceapi.ResourceDeviceClassPrefix) {
		return true
	}
	if !strings.Contains(name, "/") || strings.Contains(name, v1.ResourceDefaultNamespacePrefix) || strings.HasPrefix(name, v1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+name)) == 0
}

// nodeObject returns the fields of the node that node selectors read.
func nodeObject(n *pb.Node) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.GetName(), UID: types.UID(n.GetUid()), Labels: n.GetLabels()}}
}
