package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	pb "outboard.dev/contract/v1beta1"
)

// Reserve takes the devices that Filter found, and returns the writes that must precede the bind.
func (h *host) Reserve(ctx context.Context, request *pb.ReserveRequest) (*pb.ReserveResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), atLeast)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer h.metrics.at(pb.ExtensionPoint_EXTENSION_POINT_RESERVE)()
	a, err := s.attempt(request.GetHeader())
	if err != nil {
		return nil, err
	}
	p, err := s.pod(request.GetPodUid())
	if err != nil {
		return nil, err
	}
	slot, known := s.cache.slots[request.GetNodeName()]
	if !known {
		return nil, fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no node "+request.GetNodeName())
	}
	if a.podUID != request.GetPodUid() {
		return nil, fail(pb.CallError_REASON_INVALID, "the attempt is that of pod "+a.podUID)
	}
	if len(a.claims) == 0 {
		return &pb.ReserveResponse{}, nil
	}
	if a.reservedOn == request.GetNodeName() {
		return &pb.ReserveResponse{Effects: a.effects}, nil
	}
	effects, flights, rejection := a.reserve(slot, s.now())
	if rejection != nil {
		return &pb.ReserveResponse{Rejection: failing(`Reserve plugin "`+pluginName+`"`, rejection)}, nil
	}
	a.close(s.cache.claims)
	s.dropWrites(p.proto.GetUid())
	s.cache.claims.setInFlight(p.proto.GetUid(), flights)
	a.reservedOn, a.effects = request.GetNodeName(), effects
	return &pb.ReserveResponse{Effects: effects}, nil
}

// Unreserve releases what the pod's claims hold for it.
func (h *host) Unreserve(ctx context.Context, request *pb.UnreserveRequest) (*pb.UnreserveResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), atLeast)
	if err != nil {
		return nil, err
	}
	defer leave()
	a := s.attempts[request.GetHeader().GetAttemptId()]
	if p := s.cache.pods[request.GetPodUid()]; p != nil {
		if p.state == pb.PlacementState_PLACEMENT_STATE_ASSUMED || p.state == pb.PlacementState_PLACEMENT_STATE_WAITING {
			p.state = pb.PlacementState_PLACEMENT_STATE_UNPLACED // The cluster cache will report the same.
		}
		s.releaseAll(p, a)
	}
	if a != nil {
		a.reservedOn, a.effects = "", nil
	}
	return &pb.UnreserveResponse{}, nil
}

// reserve returns the writes for the pod on the node, and the allocations that are in flight until then.
func (a *attempt) reserve(slot uint32, now time.Time) (effects []*pb.Effect, flights []*flight, rejection *pb.PluginStatus) {
	allocation := a.allocations[slot]
	if a.allocates && len(allocation.results) == 0 {
		onlySpecial := !slices.ContainsFunc(a.claims, func(c *claim) bool { return c != a.special && c.Status.Allocation == nil })
		if !onlySpecial {
			return nil, nil, reject(pb.Code_CODE_ERROR, "claim allocation not found for node")
		}
		// Device plugins provide what the claim would be for.
	}
	next := 0
	for i, c := range a.claims {
		if c.Status.Allocation != nil {
			if !resourceclaim.IsReservedForPod(a.pod, c.ResourceClaim, false) {
				effects = append(effects, a.statusPatch(fmt.Sprintf("claim-%d-status", i), c, "", nil))
			}
			continue
		}
		if len(allocation.results) == 0 {
			continue
		}
		result := allocated(&allocation.results[next], now)
		next++
		if c == a.special {
			more, f := a.extendedEffects(i, allocation.variant, result)
			effects, flights = append(effects, more...), append(flights, f...)
			continue
		}
		if !slices.Contains(c.Finalizers, resourceapi.Finalizer) {
			patch := patchOf(c, false, object{"metadata": object{"finalizers": []string{resourceapi.Finalizer}}})
			effects = append(effects, effect(fmt.Sprintf("claim-%d-finalizer", i), &pb.Effect_PatchObject{PatchObject: patch}))
		}
		effects = append(effects, a.statusPatch(fmt.Sprintf("claim-%d-status", i), c, "", result))
		flights = append(flights, &flight{
			claim: c.Namespace + "/" + c.Name, uid: c.UID, pod: a.podUID, allocation: result, text: effects[len(effects)-1].GetPatchObject().GetJson(),
		})
	}
	if len(effects) == 0 {
		effects = a.effectToWaitBehind()
	}
	return effects, flights, nil
}

// effectToWaitBehind repeats a claim's current state: PreBind is called only after effects, and the devices may not be
// ready.
func (a *attempt) effectToWaitBehind() []*pb.Effect {
	for i, c := range a.claims {
		if c.Status.Allocation != nil && hasBindingConditions(c.Status.Allocation) {
			return []*pb.Effect{a.statusPatch(fmt.Sprintf("claim-%d-status", i), c, "", nil)}
		}
	}
	return nil
}

// allocated copies Filter's result for writing: with the current time, and shares of its own, since other pods may get
// the same result.
func allocated(found *resourceapi.AllocationResult, now time.Time) *resourceapi.AllocationResult {
	result := found.DeepCopy()
	result.AllocationTimestamp = &metav1.Time{Time: now}
	for i := range result.Devices.Results {
		if result.Devices.Results[i].ShareID != nil {
			share := types.UID(uuid.NewUUID())
			result.Devices.Results[i].ShareID = &share
		}
	}
	return result
}

func effect(key string, action any) *pb.Effect {
	made := &pb.Effect{Key: key, Plugin: pluginName}
	switch action := action.(type) {
	case *pb.Effect_PatchObject:
		made.Action = action
	case *pb.Effect_PutObject:
		made.Action = action
	case *pb.Effect_ReportExtendedResourceClaim:
		made.Action = action
	}
	return made
}

// statusPatch reserves a claim for the pod, and allocates it if an allocation is given. It needs no precondition
// against a concurrent allocation: the API server rejects changes of an allocation.
func (a *attempt) statusPatch(key string, c *claim, after string, allocation *resourceapi.AllocationResult) *pb.Effect {
	var wanted claimPatch
	wanted.Status.Allocation = allocation
	wanted.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: a.pod.Name, UID: a.pod.UID}}
	patch := patchOf(c, true, wanted)
	if after != "" {
		patch.Uid, patch.After = "", after
	}
	return effect(key, &pb.Effect_PatchObject{PatchObject: patch})
}

// extendedEffects creates the claim for extended resources, allocates it, and reports it in the pod's status.
func (a *attempt) extendedEffects(index int, v *variant, result *resourceapi.AllocationResult) ([]*pb.Effect, []*flight) {
	if v == nil || len(v.mappings) == 0 {
		return nil, nil // Device plugins provide what the claim would be for.
	}
	made := &claim{ResourceClaim: v.claim.DeepCopy()}
	made.Name = claimName(a.pod)
	text, err := json.Marshal(object{
		"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
		"metadata": object{
			"generateName": a.pod.Name + "-extended-resources-", "annotations": made.Annotations, "ownerReferences": made.OwnerReferences,
			"finalizers": []string{resourceapi.Finalizer},
		},
		"spec": made.Spec,
	})
	if err != nil {
		panic(err) // Marshals only own values.
	}
	create := fmt.Sprintf("claim-%d-create", index)
	status := a.statusPatch(fmt.Sprintf("claim-%d-status", index), made, create, result)
	return []*pb.Effect{
		effect(create, &pb.Effect_PutObject{PutObject: &pb.PutObject{
			Resource: claimResource, Namespace: made.Namespace, Name: made.Name, Json: string(text),
		}}),
		status,
		effect("report-extended", &pb.Effect_ReportExtendedResourceClaim{ReportExtendedResourceClaim: &pb.ReportExtendedResourceClaim{
			ClaimName: made.Name, RequestMappings: v.mappings,
		}}),
	}, []*flight{{claim: made.Namespace + "/" + made.Name, pod: a.podUID, allocation: result, text: status.GetPatchObject().GetJson()}}
}

// PreBind waits until the pod's devices are ready.
func (h *host) PreBind(ctx context.Context, request *pb.PreBindRequest) (*pb.PreBindResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), atLeast)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer h.metrics.at(pb.ExtensionPoint_EXTENSION_POINT_PRE_BIND)()
	p, err := s.pod(request.GetPodUid())
	if err != nil {
		return nil, err
	}
	if len(request.GetEffects()) != len(request.GetResults()) {
		return nil, fail(pb.CallError_REASON_INVALID, "as many results as effects are required")
	}
	with, configured := s.profiles[request.GetHeader().GetProfile()]
	if !configured {
		with = defaultArgs
	}
	ready, err := s.readyForBinding(p, request.GetEffects(), with, time.Duration(request.GetElapsedMicros())*time.Microsecond)
	if err != nil {
		return &pb.PreBindResponse{Rejection: reject(pb.Code_CODE_ERROR, "running PreBind plugin %q: %s", pluginName, err.Error())}, nil
	}
	return &pb.PreBindResponse{Wait: !ready}, nil
}

// readyForBinding checks the pod's claims in the current cluster cache.
func (s *session) readyForBinding(p *pod, effects []*pb.Effect, with args, elapsed time.Duration) (bool, error) {
	found, missing := s.cache.claims.named(p.get())
	behind := false // A write is not visible yet.
	waits := slices.ContainsFunc(found, func(c *claim) bool { return c.Status.Allocation != nil && hasBindingConditions(c.Status.Allocation) })
	for _, one := range effects {
		patch := one.GetPatchObject()
		waits = waits || strings.Contains(patch.GetJson(), `"bindingConditions"`)
		if patch.GetAfter() == "" {
			continue
		}
		if made := s.cache.claims.byName[patch.GetNamespace()+"/"+patch.GetName()]; made != nil {
			found = append(found, made)
		} else {
			behind = true
		}
	}
	if !waits {
		return true, nil
	}
	if missing != nil {
		return false, missing
	}
	for _, c := range found {
		ready, err := readyToBind(c.ResourceClaim)
		if err != nil {
			return false, err
		}
		if !ready && bindingTimedOut(c.ResourceClaim, with.bindingTimeout, s.now()) {
			return false, fmt.Errorf("device binding timeout: claim=%s", c.Name)
		}
		behind = behind || !ready
	}
	if behind && elapsed > with.bindingTimeout {
		return false, fmt.Errorf("device binding timeout: %w", context.DeadlineExceeded)
	}
	return !behind, nil
}
