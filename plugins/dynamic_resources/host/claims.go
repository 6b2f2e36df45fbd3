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

	pb "outboard.dev/contract"
)

// flight is an allocation that a Reserve named and that its claim does not show yet.
type flight struct {
	claim      string    // namespace/name
	uid        types.UID // empty: the claim is made before the bind
	pod        string    // uid
	allocation *resourceapi.AllocationResult
	text       string // the patch that writes it
}

// claims are the ResourceClaims of the mirror, and what is in flight. The session's lock guards them.
//
// A device is taken from its Reserve on. That is known from the Reserve itself and, in a host or with a shim that came later, from the effects that
// stand in the pod's placement; it ends when the claim shows the allocation, when the pod gives its place back, or when it goes.
type claims struct {
	inventory *inventory
	books     *books
	byName    map[string]*claim               // by namespace/name
	extended  map[types.UID]map[string]*claim // made for extended resources, by the pod that owns them and by namespace/name
	inFlight  map[string]*flight              // by namespace/name of the claim
	flightsOf map[string][]*flight            // by the pod's uid
}

func newClaims(inventory *inventory) *claims {
	return &claims{
		inventory: inventory, books: newBooks(inventory.touched), byName: map[string]*claim{}, extended: map[types.UID]map[string]*claim{},
		inFlight: map[string]*flight{}, flightsOf: map[string][]*flight{},
	}
}

// set takes in a claim, or takes one out where it is nil.
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
	// Most changes leave the devices as they are. (That an allocation is taken back and made anew may come as one change.)
	if before == nil && after == nil || before != nil && after != nil && apiequality.Semantic.DeepEqual(before.Devices.Results, after.Devices.Results) {
		return
	}
	c.books.change(before, -1)
	c.books.change(after, 1)
}

// extendedOwner is the pod for whose extended resources a claim was made.
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

// setInFlight replaces what is in flight for a pod.
func (c *claims) setInFlight(podUID string, flights []*flight) {
	if slices.Equal(c.flightsOf[podUID], flights) {
		return
	}
	c.dropInFlight(podUID)
	for _, f := range flights {
		if other := c.inFlight[f.claim]; other != nil {
			c.drop(other) // The later word counts.
		}
		if shown := c.byName[f.claim]; shown != nil && shown.Status.Allocation != nil && (f.uid == "" || f.uid == shown.UID) {
			continue
		}
		c.inFlight[f.claim] = f
		c.flightsOf[podUID] = append(c.flightsOf[podUID], f)
		c.books.change(f.allocation, 1)
	}
}

func (c *claims) dropInFlight(podUID string) {
	for _, f := range c.flightsOf[podUID] {
		delete(c.inFlight, f.claim)
		c.books.change(f.allocation, -1)
	}
	delete(c.flightsOf, podUID)
}

func (c *claims) drop(f *flight) {
	delete(c.inFlight, f.claim)
	c.books.change(f.allocation, -1)
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

// pending says whether the claim is being allocated.
func (c *claims) pending(of *claim) bool {
	f := c.inFlight[of.Namespace+"/"+of.Name]
	return f != nil && (f.uid == "" || f.uid == of.UID)
}

// of finds the claims that a pod names; an error says, in kube-scheduler's words, why the pod has to wait for one.
func (c *claims) of(pod *v1.Pod) ([]*claim, error) {
	var found []*claim
	for i := range pod.Spec.ResourceClaims {
		name, mustOwn, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, err
		}
		if name == nil {
			continue // It needs none.
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

// named finds the claims that a pod names, whatever state they are in; an error tells of one that is not there.
func (c *claims) named(pod *v1.Pod) (found []*claim, missing error) {
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue // It has none.
		}
		if one := c.byName[pod.Namespace+"/"+*name]; one != nil {
			found = append(found, one)
		} else {
			missing = fmt.Errorf("could not find ResourceClaim %q", pod.Namespace+"/"+*name)
		}
	}
	return found, missing
}

// extendedFor finds the claim that was made before for the pod's extended resources; of several the first by name.
func (c *claims) extendedFor(pod *v1.Pod) *claim {
	var found *claim
	for one := range maps.Values(c.extended[pod.UID]) {
		if one.Namespace == pod.Namespace && (found == nil || one.Name < found.Name) {
			found = one
		}
	}
	return found
}

// claimPatch is what this host writes into claims, and reads back from effects.
type claimPatch struct {
	Metadata struct {
		Finalizers []string `json:"finalizers,omitempty"`
	} `json:"metadata,omitzero"`
	Status struct {
		Allocation  *resourceapi.AllocationResult                `json:"allocation,omitempty"`
		ReservedFor []resourceapi.ResourceClaimConsumerReference `json:"reservedFor,omitempty"`
	} `json:"status,omitzero"`
}

// flightsFrom reads from a pod's effects which allocations are on the way.
func (c *claims) flightsFrom(pod *v1.Pod, effects []*pb.Effect) ([]*flight, error) {
	var flights []*flight
	for _, effect := range effects {
		patch := effect.GetPatchObject()
		if effect.GetPlugin() != pluginName || patch.GetResource() != claimResource || !patch.GetStatus() {
			continue
		}
		if own := c.inFlight[patch.GetNamespace()+"/"+patch.GetName()]; own != nil && own.pod == string(pod.UID) && own.text == patch.GetJson() {
			flights = append(flights, own) // Of this host's own Reserve.
			continue
		}
		var wanted claimPatch
		if err := json.Unmarshal([]byte(patch.GetJson()), &wanted); err != nil {
			return flights, fmt.Errorf("effect %s: %w", effect.GetKey(), err)
		}
		if wanted.Status.Allocation == nil {
			continue // Only a reservation of a claim that is allocated.
		}
		flights = append(flights, &flight{
			claim: patch.GetNamespace() + "/" + patch.GetName(), uid: types.UID(patch.GetUid()), pod: string(pod.UID), allocation: wanted.Status.Allocation,
			text: patch.GetJson(),
		})
	}
	return flights, nil
}
