package main

import (
	"errors"
	"fmt"
	"maps"

	pb "outboard.dev/contract/v1beta1"
)

// clusterCache is the cluster according to one Sync stream. The caller must lock.
type clusterCache struct {
	version  int64 // 0: no complete snapshot yet
	nodes    map[uint32]*pb.Node
	slots    map[string]uint32 // of nodes, by name
	order    []uint32
	pods     map[string]*pb.Pod // by uid
	assumed  map[string]uint32  // slots of pods that have a place and no node_name yet, by uid
	attempts map[uint64]*pb.Pod // the pods of attempts in progress
	snapshot int64              // version of the incomplete snapshot; 0: none
}

func newClusterCache() *clusterCache {
	return &clusterCache{nodes: map[uint32]*pb.Node{}, slots: map[string]uint32{},
		pods: map[string]*pb.Pod{}, assumed: map[string]uint32{}, attempts: map[uint64]*pb.Pod{}}
}

// place returns where a pod counts: on the node that it names, if that is known, or where the shim
// assumed it.
func (m *clusterCache) place(pod *pb.Pod) (slot uint32, placed bool) {
	if pod.GetNodeName() != "" {
		slot, placed = m.slots[pod.GetNodeName()]
	} else {
		slot, placed = m.assumed[pod.GetUid()]
	}
	return slot, placed
}

// apply applies one message; an error means that it does not match the cache. A snapshot takes
// effect with its last chunk.
func (m *clusterCache) apply(request *pb.SyncRequest) error {
	if err := m.begin(request); err != nil {
		return err
	}
	for _, change := range request.GetChanges() {
		if err := m.change(change); err != nil {
			return err
		}
	}
	if order := request.GetNodeOrder(); order != nil {
		if err := m.checkSlots(order.GetSlots()); err != nil || len(order.GetSlots()) != len(m.nodes) {
			return fmt.Errorf("an order of %d nodes for %d: %v", len(order.GetSlots()), len(m.nodes), err)
		}
		m.order = order.GetSlots()
	}
	for _, attempt := range request.GetEndedAttempts() {
		delete(m.attempts, attempt)
	}
	switch request.GetPhase() {
	case pb.SyncRequest_PHASE_DELTA, pb.SyncRequest_PHASE_SNAPSHOT_END:
		m.version, m.snapshot = request.GetVersion(), 0
	}
	return nil
}

// begin checks whether the message may follow the previous ones.
func (m *clusterCache) begin(request *pb.SyncRequest) error {
	version, fits := request.GetVersion(), false
	switch request.GetPhase() {
	case pb.SyncRequest_PHASE_SNAPSHOT_BEGIN:
		*m = *newClusterCache()
		m.snapshot, fits = version, true
	case pb.SyncRequest_PHASE_SNAPSHOT_MORE, pb.SyncRequest_PHASE_SNAPSHOT_END:
		fits = m.snapshot == version
	case pb.SyncRequest_PHASE_DELTA:
		fits = m.version != 0 && version >= m.version
	}
	if version < 1 || !fits {
		return fmt.Errorf("%v of version %d after version %d", request.GetPhase(), version, m.version)
	}
	return nil
}

// change ignores changes that this host does not use or does not know.
func (m *clusterCache) change(change *pb.Change) error {
	switch c := change.GetChange().(type) {
	case *pb.Change_NodeUpsert:
		slot, node := c.NodeUpsert.GetSlot(), c.NodeUpsert.GetNode()
		old, occupied := m.nodes[slot]
		if occupied && (old.GetUid() != node.GetUid() || old.GetName() != node.GetName()) {
			return fmt.Errorf("slot %d is occupied by %s", slot, old.GetName())
		}
		if _, elsewhere := m.slots[node.GetName()]; !occupied && (elsewhere || node.GetName() == "") {
			return fmt.Errorf("node %q has no name, or is in another slot", node.GetName())
		}
		m.nodes[slot], m.slots[node.GetName()] = node, slot
	case *pb.Change_NodeRemove:
		slot := c.NodeRemove.GetSlot()
		node, known := m.nodes[slot]
		if !known {
			return fmt.Errorf("no node in slot %d", slot)
		}
		delete(m.nodes, slot)
		delete(m.slots, node.GetName())
		maps.DeleteFunc(m.assumed, func(_ string, at uint32) bool { return at == slot })
	case *pb.Change_PodUpsert:
		pod := c.PodUpsert.GetPod()
		if pod.GetUid() == "" {
			return errors.New("a pod without a uid")
		}
		m.pods[pod.GetUid()] = pod
		if pod.GetNodeName() != "" {
			delete(m.assumed, pod.GetUid())
		}
	case *pb.Change_PodRemove:
		// An unknown pod was created and deleted between two messages.
		delete(m.pods, c.PodRemove.GetUid())
		delete(m.assumed, c.PodRemove.GetUid())
	case *pb.Change_PodPlacement:
		uid, slot, state := c.PodPlacement.GetUid(), c.PodPlacement.GetSlot(), c.PodPlacement.GetState()
		pod, node := m.pods[uid], m.nodes[slot]
		if pod == nil || node == nil && state != pb.PlacementState_PLACEMENT_STATE_UNPLACED {
			return fmt.Errorf("pod %s or the node in slot %d is unknown", uid, slot)
		}
		delete(m.assumed, uid)
		switch state {
		case pb.PlacementState_PLACEMENT_STATE_BOUND:
			pod.NodeName = node.GetName()
		case pb.PlacementState_PLACEMENT_STATE_ASSUMED, pb.PlacementState_PLACEMENT_STATE_WAITING:
			m.assumed[uid] = slot
		}
	}
	return nil
}
