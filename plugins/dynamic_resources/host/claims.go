package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	pb "outboard.dev/contract/v1beta1"
)

// flight is an allocation of a Reserve that its claim does not show yet.
type flight struct {
	claim      string    // namespace/name
	uid        types.UID // empty: the claim is created before the bind
	pod        string    // uid
	allocation *resourceapi.AllocationResult
	text       string // the patch that writes it
}

// claims are the cluster cache's ResourceClaims and the allocations in flight. The session's lock guards them.
//
// A device is in use from its Reserve on. The host knows this from the Reserve itself; a host or a shim that started
// later knows it from the effects in the pod's placement. It ends when the claim shows the allocation, when the pod
// loses its place, or when the pod is deleted.
type claims struct {
	inventory *inventory
	usage     *deviceUsage
	byName    map[string]*claim               // by namespace/name
	extended  map[types.UID]map[string]*claim // for extended resources, by the owning pod and by namespace/name
	inFlight  map[string]*flight              // by namespace/name of the claim
	flightsOf map[string][]*flight            // by the pod's uid
}

func newClaims(inventory *inventory) *claims {
	return &claims{
		inventory: inventory, usage: newDeviceUsage(inventory.touched), byName: map[string]*claim{}, extended: map[types.UID]map[string]*claim{},
		inFlight: map[string]*flight{}, flightsOf: map[string][]*flight{},
	}
}

// set adds or replaces a claim, or removes it if nil.
func (c *claims) set(name string, to *claim) {
	old := c.byName[name]
	if old != nil {
		delete(c.byName, name)
		if owner, made := extendedOwner(old); made {
			if delete(c.extended[owner], name); len(c.extended[owner]) == 0 {
				delete(c.extended, owner)
			}
		}
	}
	var before, after *resourceapi.AllocationResult
	if old != nil {
		before = old.Status.Allocation
	}
	if to != nil {
		after = to.Status.Allocation
		c.byName[name] = to
		if owner, made := extendedOwner(to); made {
			if c.extended[owner] == nil {
				c.extended[owner] = map[string]*claim{}
			}
			c.extended[owner][name] = to
		}
	}
	if f := c.inFlight[name]; f != nil && after != nil && (f.uid == "" || f.uid == to.UID) {
		c.drop(f)
	}
	// Most changes do not affect devices. (One change may both release an allocation and make it again.)
	if before == nil && after == nil || before != nil && after != nil && apiequality.Semantic.DeepEqual(before.Devices.Results, after.Devices.Results) {
		return
	}
	c.usage.change(before, -1)
	c.usage.change(after, 1)
}

// extendedOwner returns the pod whose extended resources the claim is for.
func extendedOwner(c *claim) (types.UID, bool) {
	if c.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" {
		return "", false
	}
	for _, owner := range c.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner.UID, true
		}
	}
	return "", false
}

// setInFlight replaces the pod's allocations in flight.
func (c *claims) setInFlight(podUID string, flights []*flight) {
	if slices.Equal(c.flightsOf[podUID], flights) {
		return
	}
	c.dropInFlight(podUID)
	for _, f := range flights {
		if other := c.inFlight[f.claim]; other != nil {
			c.drop(other) // The later one counts.
		}
		if shown := c.byName[f.claim]; shown != nil && shown.Status.Allocation != nil && (f.uid == "" || f.uid == shown.UID) {
			continue
		}
		c.inFlight[f.claim] = f
		c.flightsOf[podUID] = append(c.flightsOf[podUID], f)
		c.usage.change(f.allocation, 1)
	}
}

func (c *claims) dropInFlight(podUID string) {
	for _, f := range c.flightsOf[podUID] {
		delete(c.inFlight, f.claim)
		c.usage.change(f.allocation, -1)
	}
	delete(c.flightsOf, podUID)
}

func (c *claims) drop(f *flight) {
	delete(c.inFlight, f.claim)
	c.usage.change(f.allocation, -1)
	left := c.flightsOf[f.pod][:0:0]
	for _, other := range c.flightsOf[f.pod] {
		if other != f {
			left = append(left, other)
		}
	}
	if len(left) == 0 {
		delete(c.flightsOf, f.pod)
	} else {
		c.flightsOf[f.pod] = left
	}
}

// pending returns whether the claim is being allocated.
func (c *claims) pending(of *claim) bool {
	f := c.inFlight[of.Namespace+"/"+of.Name]
	return f != nil && (f.uid == "" || f.uid == of.UID)
}

// of returns the pod's claims; an error explains, in kube-scheduler's words, why the pod has to wait for one.
func (c *claims) of(pod *v1.Pod) ([]*claim, error) {
	var found []*claim
	for i := range pod.Spec.ResourceClaims {
		name, mustOwn, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, err
		}
		if name == nil {
			continue // The pod needs none.
		}
		one := c.byName[pod.Namespace+"/"+*name]
		if one == nil {
			return nil, fmt.Errorf("could not find ResourceClaim %q", pod.Namespace+"/"+*name)
		}
		if one.DeletionTimestamp != nil {
			return nil, fmt.Errorf("resourceclaim %q is being deleted", one.Name)
		}
		if mustOwn {
			if err := resourceclaim.IsForPod(pod, one.ResourceClaim, false); err != nil {
				return nil, err
			}
		}
		found = append(found, one)
	}
	return found, nil
}

// named returns the pod's claims in any state; an error names a missing one.
func (c *claims) named(pod *v1.Pod) (found []*claim, missing error) {
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue // The pod has none.
		}
		if one := c.byName[pod.Namespace+"/"+*name]; one != nil {
			found = append(found, one)
		} else {
			missing = fmt.Errorf("could not find ResourceClaim %q", pod.Namespace+"/"+*name)
		}
	}
	return found, missing
}

// extendedFor returns the existing claim for the pod's extended resources; of several, the first by name.
func (c *claims) extendedFor(pod *v1.Pod) *claim {
	var found *claim
	for one := range maps.Values(c.extended[pod.UID]) {
		if one.Namespace == pod.Namespace && (found == nil || one.Name < found.Name) {
			found = one
		}
	}
	return found
}

// claimPatch is the patch that this host writes to claims and reads back from effects.
type claimPatch struct {
	Metadata struct {
		Finalizers []string `json:"finalizers,omitempty"`
	} `json:"metadata,omitzero"`
	Status struct {
		Allocation  *resourceapi.AllocationResult                `json:"allocation,omitempty"`
		ReservedFor []resourceapi.ResourceClaimConsumerReference `json:"reservedFor,omitempty"`
	} `json:"status,omitzero"`
}

// flightsFrom reads the allocations in flight from a pod's effects.
func (c *claims) flightsFrom(pod *v1.Pod, effects []*pb.Effect) ([]*flight, error) {
	var flights []*flight
	for _, effect := range effects {
		patch := effect.GetPatchObject()
		if effect.GetPlugin() != pluginName || patch.GetResource() != claimResource || !patch.GetStatus() {
			continue
		}
		if own := c.inFlight[patch.GetNamespace()+"/"+patch.GetName()]; own != nil && own.pod == string(pod.UID) && own.text == patch.GetJson() {
			flights = append(flights, own) // From this host's own Reserve.
			continue
		}
		var wanted claimPatch
		if err := json.Unmarshal([]byte(patch.GetJson()), &wanted); err != nil {
			return flights, fmt.Errorf("effect %s: %w", effect.GetKey(), err)
		}
		if wanted.Status.Allocation == nil {
			continue // It only reserves an allocated claim.
		}
		flights = append(flights, &flight{
			claim: patch.GetNamespace() + "/" + patch.GetName(), uid: types.UID(patch.GetUid()), pod: string(pod.UID), allocation: wanted.Status.Allocation,
			text: patch.GetJson(),
		})
	}
	return flights, nil
}
