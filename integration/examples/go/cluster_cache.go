package main

import (
	"errors"
	"fmt"
	"maps"

	pb "outboard.dev/contract/v1beta1"
)

// clusterCache is the cluster according to one session's Sync stream. The caller must lock.
type clusterCache struct {
	version int64 // 0: no complete snapshot yet
	nodes   map[uint32]*pb.Node
	slots   map[string]uint32 // of nodes, by name
	order   []uint32
	pods    map[string]*pb.Pod // by uid
	places  map[string]uint32  // slots of pods that are bound or assumed, by uid

	snapshot int64 // version of the incomplete snapshot; 0: none
}

func newClusterCache() *clusterCache {
	return &clusterCache{nodes: map[uint32]*pb.Node{}, slots: map[string]uint32{}, pods: map[string]*pb.Pod{}, places: map[string]uint32{}}
}

// apply applies one message; an error means that it does not match the cluster cache. A snapshot takes effect with its
// last chunk.
func (m *clusterCache) apply(request *pb.SyncRequest) error {
	if err := m.begin(request); err != nil {
		return err
	}
	for _, change := range request.GetChanges() {
		if err := m.change(change); err != nil {
			return err
		}
	}
	if request.NodeOrder != nil {
		if err := m.setOrder(request.GetNodeOrder().GetSlots()); err != nil {
			return err
		}
	}
	if phase := request.GetPhase(); phase == pb.SyncRequest_PHASE_DELTA || phase == pb.SyncRequest_PHASE_SNAPSHOT_END {
		m.version, m.snapshot = request.GetVersion(), 0
	}
	return nil
}

// begin checks whether the message may follow the previous ones.
func (m *clusterCache) begin(request *pb.SyncRequest) error {
	version := request.GetVersion()
	switch phase := request.GetPhase(); {
	case version < 1:
		return errors.New("version must be at least 1")
	case phase == pb.SyncRequest_PHASE_SNAPSHOT_BEGIN:
		*m = *newClusterCache()
		m.snapshot = version
	case phase == pb.SyncRequest_PHASE_SNAPSHOT_MORE || phase == pb.SyncRequest_PHASE_SNAPSHOT_END:
		if m.snapshot != version {
			return errors.New("a chunk of a snapshot without its beginning, or of another version")
		}
	case phase != pb.SyncRequest_PHASE_DELTA || m.version == 0 || version < m.version:
		return fmt.Errorf("%v with version %d, after version %d", phase, version, m.version)
	}
	return nil
}

// setOrder sets the order of nodes, a permutation of the occupied slots.
func (m *clusterCache) setOrder(order []uint32) error {
	if err := m.checkSlots(order); err != nil || len(order) != len(m.nodes) {
		return fmt.Errorf("the order of %d nodes has %d slots: %v", len(m.nodes), len(order), err)
	}
	m.order = order
	return nil
}

// change ignores fields that this host does not use or does not know.
func (m *clusterCache) change(change *pb.Change) error {
	switch c := change.GetChange().(type) {
	case *pb.Change_NodeUpsert:
		slot, node := c.NodeUpsert.GetSlot(), c.NodeUpsert.GetNode()
		old, occupied := m.nodes[slot]
		if occupied && (old.GetUid() != node.GetUid() || old.GetName() != node.GetName()) {
			return fmt.Errorf("slot %d is occupied by %s", slot, old.GetName())
		}
		if _, elsewhere := m.slots[node.GetName()]; !occupied && (elsewhere || node.GetName() == "") {
			return fmt.Errorf("node %q has no name, or is in another slot already", node.GetName())
		}
		m.nodes[slot] = node
		m.slots[node.GetName()] = slot
		if !occupied {
			// Pods that named the node before it existed here.
			for uid, pod := range m.pods {
				if _, placed := m.places[uid]; !placed && pod.GetNodeName() == node.GetName() {
					m.places[uid] = slot
				}
			}
		}
	case *pb.Change_NodeRemove:
		slot := c.NodeRemove.GetSlot()
		node, known := m.nodes[slot]
		if !known {
			return fmt.Errorf("no node in slot %d", slot)
		}
		delete(m.nodes, slot)
		delete(m.slots, node.GetName())
		maps.DeleteFunc(m.places, func(_ string, at uint32) bool { return at == slot })
	case *pb.Change_PodUpsert:
		pod := c.PodUpsert.GetPod()
		if pod.GetUid() == "" {
			return errors.New("a pod without a uid")
		}
		m.pods[pod.GetUid()] = pod
		if pod.GetNodeName() == "" {
			break // Keeps the place that the shim assumed.
		}
		delete(m.places, pod.GetUid())
		if slot, known := m.slots[pod.GetNodeName()]; known {
			m.places[pod.GetUid()] = slot
		}
	case *pb.Change_PodRemove:
		// An unknown pod was created and deleted between two messages.
		delete(m.pods, c.PodRemove.GetUid())
		delete(m.places, c.PodRemove.GetUid())
	case *pb.Change_PodPlacement:
		uid, slot, state := c.PodPlacement.GetUid(), c.PodPlacement.GetSlot(), c.PodPlacement.GetState()
		pod, node := m.pods[uid], m.nodes[slot]
		if pod == nil || node == nil && state != pb.PlacementState_PLACEMENT_STATE_UNPLACED {
			return fmt.Errorf("pod %s or the node in slot %d is unknown", uid, slot)
		}
		delete(m.places, uid)
		switch state {
		case pb.PlacementState_PLACEMENT_STATE_UNPLACED, pb.PlacementState_PLACEMENT_STATE_NOMINATED:
		case pb.PlacementState_PLACEMENT_STATE_BOUND:
			pod.NodeName = node.GetName()
			m.places[uid] = slot
		case pb.PlacementState_PLACEMENT_STATE_ASSUMED, pb.PlacementState_PLACEMENT_STATE_WAITING:
			m.places[uid] = slot
		default:
			return errors.New("unknown placement state")
		}
	}
	return nil
}
