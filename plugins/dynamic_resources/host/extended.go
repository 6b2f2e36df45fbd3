package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	pb "outboard.dev/contract/v1beta1"
)

// specialClaim is the claim for a pod's extended resources before its content is known: on each node, the resources
// that no device plugin provides.
func specialClaim(pod *v1.Pod) *claim {
	controller := true
	return &claim{ResourceClaim: &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace:       pod.Namespace,
		Name:            "<extended-resources>", // Not a valid name of a claim.
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &controller}},
		Annotations:     map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"},
	}}, spec: specKey(&resourceapi.ResourceClaimSpec{})}
}

// claimName generates a name as the API server does for `generateName`.
func claimName(pod *v1.Pod) string {
	const most, random = 63, 5
	base := pod.Name + "-extended-resources-"
	if len(base) > most-random {
		base = base[:most-random]
	}
	return base + rand.String(random)
}

// extendedOn finds the variant of the claim for extended resources for the node.
func (a *attempt) extendedOn(q *question) *pb.PluginStatus {
	if a.special == nil {
		return nil
	}
	if a.special.Spec.Devices.Requests != nil {
		// From an earlier attempt: PostFilter deletes it.
		return unresolvable("cannot schedule extended resource claim")
	}
	var needed []string
	for name := range a.amounts {
		allocatable, known := q.node.allocatable[name]
		if a.stands[name] != nil && allocatable == 0 {
			needed = append(needed, name)
		} else if !known {
			return unresolvable("cannot fit resource")
		}
	}
	if len(a.claims) == 1 && len(needed) == 0 || a.special.Status.Allocation != nil {
		return nil
	}
	slices.Sort(needed)
	q.variant = a.variant(needed)
	return nil
}

func (a *attempt) variant(needed []string) *variant {
	key := strings.Join(needed, "\n")
	if v := a.variants[key]; v != nil {
		return v
	}
	made := &claim{ResourceClaim: a.special.DeepCopy()}
	v := &variant{claim: made}
	made.Spec.Devices.Requests, v.mappings = a.requests(needed)
	made.spec = specKey(&made.Spec)
	a.variants[key] = v
	return v
}

// share is what one container needs of one resource.
type share struct {
	request  *resourceapi.DeviceRequest // nil: it only reuses devices of others
	mappings []*pb.ReportExtendedResourceClaim_RequestMapping
}

// requests returns a claim's requests for the containers' resources. Init containers that end before the others start
// share the others' devices; of what they need beyond that, the largest amount covers all of them.
func (a *attempt) requests(needed []string) ([]resourceapi.DeviceRequest, []*pb.ReportExtendedResourceClaim_RequestMapping) {
	initial := a.pod.Spec.InitContainers
	containers := slices.Concat(initial, a.pod.Spec.Containers)
	passing := func(i int) bool {
		policy := containers[i].RestartPolicy
		return i < len(initial) && (policy == nil || *policy != v1.ContainerRestartPolicyAlways)
	}
	var requests []resourceapi.DeviceRequest
	var mappings []*pb.ReportExtendedResourceClaim_RequestMapping
	for _, name := range needed {
		class := a.stands[name].Name
		lasting := make([]*resourceapi.DeviceRequest, len(containers))
		for i := range containers {
			if passing(i) {
				continue
			}
			got := shareOf(i, &containers[i], name, class, nil)
			lasting[i] = got.request
			mappings = append(mappings, got.mappings...)
		}
		var most *resourceapi.DeviceRequest
		own := map[string]bool{}
		var passed []*pb.ReportExtendedResourceClaim_RequestMapping
		for i := range containers {
			if !passing(i) {
				continue
			}
			got := shareOf(i, &containers[i], name, class, lasting[i:])
			if got.request != nil {
				own[got.request.Name] = true
				if most == nil || most.Exactly.Count < got.request.Exactly.Count {
					most = got.request
				}
			}
			passed = append(passed, got.mappings...)
		}
		if most != nil {
			requests = append(requests, *most)
			for _, mapping := range passed {
				if own[mapping.RequestName] {
					mapping.RequestName = most.Name
				}
			}
		}
		mappings = append(mappings, passed...)
		for _, request := range lasting {
			if request != nil {
				requests = append(requests, *request)
			}
		}
	}
	slices.SortFunc(requests, func(x, y resourceapi.DeviceRequest) int { return strings.Compare(x.Name, y.Name) })
	return requests, mappings
}

// shareOf names requests by the container's index and by the resource's index in the container.
func shareOf(index int, container *v1.Container, resource, class string, reusable []*resourceapi.DeviceRequest) share {
	quantity, named := container.Resources.Requests[v1.ResourceName(resource)]
	amount, exact := quantity.AsInt64()
	if !named || !exact || amount == 0 {
		return share{}
	}
	var got share
	use := func(request string) {
		got.mappings = append(got.mappings, &pb.ReportExtendedResourceClaim_RequestMapping{
			ContainerName: container.Name, ResourceName: resource, RequestName: request,
		})
	}
	available := int64(0)
	for _, other := range reusable {
		if other == nil {
			continue
		}
		available += other.Exactly.Count
		use(other.Name)
		if available >= amount {
			return got
		}
	}
	names := slices.Sorted(maps.Keys(container.Resources.Requests))
	got.request = &resourceapi.DeviceRequest{
		Name: fmt.Sprintf("container-%d-request-%d", index, slices.Index(names, v1.ResourceName(resource))),
		Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: amount - available,
		},
	}
	use(got.request.Name)
	return got
}
