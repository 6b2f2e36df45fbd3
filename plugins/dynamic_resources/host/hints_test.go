package main

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	pb "outboard.dev/contract/v1beta1"
)

func claimEvent(number uint64, action pb.ClusterEvent_Action, name string) *pb.QueueEvent {
	return &pb.QueueEvent{
		Number: number, Event: &pb.ClusterEvent{Resource: claimResource, Actions: []pb.ClusterEvent_Action{action}},
		About: &pb.QueueEvent_Object{Object: &pb.ObjectReference{Kind: claimResource, Namespace: "default", Name: name}},
	}
}

func waits(uid string, since uint64) *pb.UnschedulablePod {
	return &pb.UnschedulablePod{Uid: uid, RejectedBy: []string{pluginName}, Since: since}
}

func TestClaimEventsHintPods(t *testing.T) {
	allocated := newClaim("other", exactly1("gpu", "gpu"))
	allocated.Status.Allocation = &resourceapi.AllocationResult{}
	p, q := podUsing("p", "mine"), podUsing("q", "other")
	s := newShim(t, 1, upsert(t, claimResource, allocated), upsertPod(p), upsertPod(q))
	s.tell(&pb.SyncRequest{UnschedulablePods: []*pb.UnschedulablePod{waits(p.GetUid(), 1), waits(q.GetUid(), 1)}})
	// Created: for the pod that names it.
	s.tell(&pb.SyncRequest{Changes: []*pb.Change{upsert(t, claimResource, newClaim("mine"))}, Events: []*pb.QueueEvent{claimEvent(3, pb.ClusterEvent_ACTION_ADD, "mine")}})
	hint := await(t, s.hints)
	expect(t, "created", fmt.Sprint(hint.GetUid(), hint.GetNumber()), "uid-p3")
	// A finalizer does not help the pod, and neither does a reservation of another pod's claim.
	finalized := allocated.DeepCopy()
	finalized.Finalizers = []string{"x"}
	s.tell(&pb.SyncRequest{
		Changes: []*pb.Change{upsert(t, claimResource, finalized)}, UnschedulablePods: []*pb.UnschedulablePod{waits(p.GetUid(), 4)},
		Events: []*pb.QueueEvent{claimEvent(5, pb.ClusterEvent_ACTION_UPDATE_OTHER, "other")},
	})
	reserved := finalized.DeepCopy()
	reserved.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{UID: types.UID("x")}}
	s.tell(&pb.SyncRequest{Changes: []*pb.Change{upsert(t, claimResource, reserved)}, Events: []*pb.QueueEvent{claimEvent(6, pb.ClusterEvent_ACTION_UPDATE_OTHER, "other")}})
	expect(t, "its own claim's status", await(t, s.hints).GetNumber(), 6)
	// Released devices matter to every pod.
	s.tell(&pb.SyncRequest{Changes: []*pb.Change{upsert(t, claimResource, newClaim("other"))}, Events: []*pb.QueueEvent{claimEvent(7, pb.ClusterEvent_ACTION_UPDATE_OTHER, "other")}})
	hint = await(t, s.hints)
	expect(t, "deallocated", fmt.Sprint(hint.GetUid(), hint.GetNumber()), "uid-p7")
	// A pod that began to wait later, after an attempt with an older state.
	s.tell(&pb.SyncRequest{UnschedulablePods: []*pb.UnschedulablePod{waits(q.GetUid(), 7)}})
	expect(t, "during the attempt", await(t, s.hints).GetNumber(), 7)
	s.tell(&pb.SyncRequest{EventsNeededFrom: 9})
	s.tell(&pb.SyncRequest{UnschedulablePods: []*pb.UnschedulablePod{waits(q.GetUid(), 8)}})
	expect(t, "forgotten", await(t, s.hints).GetNumber(), 0)
	expect(t, "nothing else", len(s.hints), 0)
}

func TestPodEventsHintPods(t *testing.T) {
	p := podUsing("p")
	p.Claims = []*pb.PodResourceClaim{{Name: "gpu", TemplateName: "template"}}
	controlled := newClaim("made")
	controller := true
	controlled.OwnerReferences = append(controlled.OwnerReferences, specialClaim(podObject(p)).OwnerReferences...)
	controlled.OwnerReferences[0].Controller = &controller
	s := newShim(t, 1, upsertPod(p), upsert(t, claimResource, controlled))
	update := func(number uint64) *pb.QueueEvent {
		return &pb.QueueEvent{
			Number: number, Event: &pb.ClusterEvent{Resource: "UnscheduledPod", Actions: []pb.ClusterEvent_Action{pb.ClusterEvent_ACTION_UPDATE_OTHER}},
			About: &pb.QueueEvent_PodUid{PodUid: p.GetUid()},
		}
	}
	s.tell(&pb.SyncRequest{UnschedulablePods: []*pb.UnschedulablePod{waits(p.GetUid(), 1)}})
	s.tell(&pb.SyncRequest{Changes: []*pb.Change{upsertPod(p)}, Events: []*pb.QueueEvent{update(2)}})
	named := podUsing("p")
	name := "made"
	named.Claims = []*pb.PodResourceClaim{{Name: "gpu", TemplateName: "template", MadeClaimName: &name}}
	s.tell(&pb.SyncRequest{Changes: []*pb.Change{upsertPod(named)}, Events: []*pb.QueueEvent{update(3)}})
	expect(t, "the name came", await(t, s.hints).GetNumber(), 3)
	// Slices, classes and nodes matter to every pod.
	s.tell(&pb.SyncRequest{UnschedulablePods: []*pb.UnschedulablePod{waits(p.GetUid(), 4)}})
	s.tell(&pb.SyncRequest{Events: []*pb.QueueEvent{{
		Number: 5, Event: &pb.ClusterEvent{Resource: "Node", Actions: []pb.ClusterEvent_Action{pb.ClusterEvent_ACTION_ADD}}, About: &pb.QueueEvent_NodeName{NodeName: "node-0"},
	}}})
	expect(t, "a node", await(t, s.hints).GetNumber(), 5)
}
