package main

import (
	"fmt"

	pb "outboard.dev/contract"
)

// place is where a pod is, or is to be.
type place struct {
	slot      uint32
	nominated bool
}

// mirror is the cluster as one session's Sync stream tells it. The caller locks.
type mirror struct {
	version int64 // 0: no complete snapshot yet
	nodes   map[uint32]*pb.Node
	slots   map[string]uint32 // of nodes, by name
	order   []uint32
	pods    map[string]*pb.Pod // by uid
	places  map[string]place   // by uid
}

func newMirror() *mirror {
	return &mirror{nodes: map[uint32]*pb.Node{}, slots: map[string]uint32{}, pods: map[string]*pb.Pod{}, places: map[string]place{}}
}

// apply takes in one message; an error means that it does not fit what the mirror has. Chunks of a snapshot count with the last of them.
func (m *mirror) apply(request *pb.SyncRequest) error {
	if request.GetPhase() == pb.SyncRequest_SNAPSHOT_BEGIN {
		*m = *newMirror()
	}
	for _, change := range request.GetChanges() {
		if err := m.change(change); err != nil {
			return err
		}
	}
	if request.NodeOrder != nil {
		m.order = request.GetNodeOrder().GetSlots()
	}
	if phase := request.GetPhase(); phase == pb.SyncRequest_DELTA || phase == pb.SyncRequest_SNAPSHOT_END {
		m.version = request.GetVersion()
	}
	return nil
}

// change ignores what this host does not need, and what it does not know.
func (m *mirror) change(change *pb.Change) error {
	switch c := change.GetChange().(type) {
	case *pb.Change_NodeUpsert:
		slot, node := c.NodeUpsert.GetSlot(), c.NodeUpsert.GetNode()
		old, occupied := m.nodes[slot]
		if occupied && old.GetUid() != node.GetUid() {
			return fmt.Errorf("slot %d is occupied by %s", slot, old.GetName())
		}
		m.nodes[slot] = node
		m.slots[node.GetName()] = slot
		if !occupied {
			// Pods that named the node before it was known.
			for uid, pod := range m.pods {
				if _, placed := m.places[uid]; !placed && pod.GetNodeName() == node.GetName() {
					m.places[uid] = place{slot: slot}
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
		for uid, place := range m.places {
			if place.slot == slot {
				delete(m.places, uid)
			}
		}
	case *pb.Change_PodUpsert:
		pod := c.PodUpsert.GetPod()
		m.pods[pod.GetUid()] = pod
		if pod.GetNodeName() == "" {
			break // A place that the shim assumed is kept.
		}
		delete(m.places, pod.GetUid())
		if slot, known := m.slots[pod.GetNodeName()]; known {
			m.places[pod.GetUid()] = place{slot: slot}
		}
	case *pb.Change_PodRemove:
		if _, known := m.pods[c.PodRemove.GetUid()]; !known {
			return fmt.Errorf("no pod %s", c.PodRemove.GetUid())
		}
		delete(m.pods, c.PodRemove.GetUid())
		delete(m.places, c.PodRemove.GetUid())
	case *pb.Change_PodPlacement:
		placement := c.PodPlacement
		if _, known := m.pods[placement.GetUid()]; !known {
			return fmt.Errorf("no pod %s", placement.GetUid())
		}
		delete(m.places, placement.GetUid())
		if placement.GetState() == pb.PlacementState_UNPLACED {
			break
		}
		if _, known := m.nodes[placement.GetSlot()]; !known {
			return fmt.Errorf("no node in slot %d", placement.GetSlot())
		}
		m.places[placement.GetUid()] = place{slot: placement.GetSlot(), nominated: placement.GetState() == pb.PlacementState_NOMINATED}
	}
	return nil
}
