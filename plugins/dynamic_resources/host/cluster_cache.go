package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	pb "outboard.dev/contract/v1beta1"
)

// node of the cluster cache. Immutable, except for its counter.
type node struct {
	slot        uint32
	uid         string
	object      *v1.Node
	allocatable map[string]int64 // extended resources
	counter     *uint64          // the inventory's, for changes that matter only on this node
}

// pod of the cluster cache.
type pod struct {
	proto  *pb.Pod
	object *v1.Pod // the fields that matter here; created on first use
	state  pb.PlacementState
	slot   uint32
}

func (p *pod) get() *v1.Pod {
	if p.object == nil {
		p.object = podObject(p.proto)
	}
	return p.object
}

// holdsPlace returns whether the pod counts as being on a node.
func (p *pod) holdsPlace() bool {
	switch p.state {
	case pb.PlacementState_PLACEMENT_STATE_ASSUMED, pb.PlacementState_PLACEMENT_STATE_WAITING, pb.PlacementState_PLACEMENT_STATE_BOUND:
		return true
	}
	return p.proto.GetNodeName() != ""
}

// clusterCache is the cluster as reported by one session's Sync stream. The session's lock guards it.
type clusterCache struct {
	version int64 // 0: no complete snapshot yet
	nodes   map[uint32]*node
	slots   map[string]uint32 // of nodes, by name
	order   []uint32
	pods    map[string]*pod // by uid
	claims  *claims
	memo    *memo
	warn    *warnings

	snapshot int64 // version of the snapshot in progress; 0: none
	time     int64 // the stream's time, in nanoseconds since 1970; 0: the machine's clock
	// Claims before the message that is being applied, by namespace and name; nil: new. For code that reads the
	// changes.
	before map[string]*claim
	// Also only during a message: uids of pods whose claim names changed.
	renamed map[string]bool
}

func newClusterCache(warn *warnings) *clusterCache {
	return &clusterCache{
		nodes: map[uint32]*node{}, slots: map[string]uint32{}, pods: map[string]*pod{}, claims: newClaims(newInventory()), memo: newMemo(), warn: warn,
		before: map[string]*claim{}, renamed: map[string]bool{},
	}
}

// apply applies one message; an error: it does not fit the cluster cache. A snapshot's chunks count with the last one.
func (m *clusterCache) apply(request *pb.SyncRequest, decoded []any) error {
	if err := m.begin(request); err != nil {
		return err
	}
	clear(m.before)
	clear(m.renamed)
	for i, change := range request.GetChanges() {
		if err := m.change(change, decoded[i]); err != nil {
			return err
		}
	}
	if request.NodeOrder != nil {
		if err := m.setOrder(request.GetNodeOrder().GetSlots()); err != nil {
			return err
		}
	}
	if micros := request.GetTimeUnixMicros(); micros > m.time {
		m.time = micros
	}
	if phase := request.GetPhase(); phase == pb.SyncRequest_PHASE_DELTA || phase == pb.SyncRequest_PHASE_SNAPSHOT_END {
		m.version, m.snapshot = request.GetVersion(), 0
	}
	return nil
}

// begin checks that the message may follow the earlier ones.
func (m *clusterCache) begin(request *pb.SyncRequest) error {
	version := request.GetVersion()
	switch phase := request.GetPhase(); {
	case version < 1:
		return errors.New("version must be at least 1")
	case phase == pb.SyncRequest_PHASE_SNAPSHOT_BEGIN:
		time := m.time
		*m = *newClusterCache(m.warn)
		m.snapshot, m.time = version, time
	case phase == pb.SyncRequest_PHASE_SNAPSHOT_MORE || phase == pb.SyncRequest_PHASE_SNAPSHOT_END:
		if m.snapshot != version {
			return errors.New("a chunk of a snapshot without its beginning, or of another version")
		}
	case phase != pb.SyncRequest_PHASE_DELTA:
		return errors.New("unknown phase")
	case m.snapshot != 0:
		return errors.New("a change between the chunks of a snapshot")
	case m.version == 0:
		return errors.New("a change before a complete snapshot")
	case version < m.version:
		return fmt.Errorf("version falls from %d to %d", m.version, version)
	}
	return nil
}

// setOrder sets a permutation of the occupied slots.
func (m *clusterCache) setOrder(order []uint32) error {
	seen := make(map[uint32]bool, len(order))
	for _, slot := range order {
		if m.nodes[slot] == nil || seen[slot] {
			return fmt.Errorf("the order names slot %d, which is free or named before", slot)
		}
		seen[slot] = true
	}
	if len(order) != len(m.nodes) {
		return errors.New("the order of nodes leaves some out")
	}
	m.order = order
	return nil
}

// change ignores kinds that this host does not need or know. `object` is the change's custom object, decoded.
func (m *clusterCache) change(change *pb.Change, object any) error {
	switch c := change.GetChange().(type) {
	case *pb.Change_NodeUpsert:
		return m.setNode(c.NodeUpsert.GetSlot(), c.NodeUpsert.GetNode())
	case *pb.Change_NodeRemove:
		return m.removeNode(c.NodeRemove.GetSlot())
	case *pb.Change_PodUpsert:
		return m.setPod(c.PodUpsert.GetPod())
	case *pb.Change_PodRemove:
		// An unknown pod was added and removed between two messages.
		delete(m.pods, c.PodRemove.GetUid())
		m.claims.dropInFlight(c.PodRemove.GetUid())
	case *pb.Change_PodPlacement:
		return m.place(c.PodPlacement)
	case *pb.Change_ObjectUpsert:
		set := c.ObjectUpsert.GetGenericObject()
		m.setObject(set.GetResource(), set.GetNamespace(), set.GetName(), object)
	case *pb.Change_ObjectRemove:
		m.setObject(c.ObjectRemove.GetKind(), c.ObjectRemove.GetNamespace(), c.ObjectRemove.GetName(), nil)
	}
	return nil
}

func (m *clusterCache) setNode(slot uint32, from *pb.Node) error {
	old := m.nodes[slot]
	if old != nil && (old.uid != from.GetUid() || old.object.Name != from.GetName()) {
		return fmt.Errorf("slot %d is occupied by %s", slot, old.object.Name)
	}
	if _, elsewhere := m.slots[from.GetName()]; old == nil && (elsewhere || from.GetName() == "") {
		return fmt.Errorf("node %q has no name, or is in another slot already", from.GetName())
	}
	if old != nil && maps.Equal(old.object.Labels, from.GetLabels()) && maps.Equal(old.allocatable, from.GetAllocatable().GetScalar()) {
		return nil
	}
	m.nodes[slot] = &node{
		slot: slot, uid: from.GetUid(), object: nodeObject(from), allocatable: from.GetAllocatable().GetScalar(),
		counter: m.claims.inventory.counter(from.GetName()),
	}
	m.slots[from.GetName()] = slot
	return nil
}

func (m *clusterCache) removeNode(slot uint32) error {
	old := m.nodes[slot]
	if old == nil {
		return fmt.Errorf("no node in slot %d", slot)
	}
	delete(m.nodes, slot)
	delete(m.slots, old.object.Name)
	return nil
}

func (m *clusterCache) setPod(from *pb.Pod) error {
	if from.GetUid() == "" {
		return errors.New("a pod without a uid")
	}
	p := m.pods[from.GetUid()]
	if p == nil {
		p = &pod{}
		m.pods[from.GetUid()] = p
	} else if !sameClaims(p.proto.GetClaims(), from.GetClaims()) {
		m.renamed[from.GetUid()] = true
	}
	p.proto, p.object = from, nil // Keeps a place that the shim assumed.
	return nil
}

func sameClaims(x, y []*pb.PodResourceClaim) bool {
	return slices.EqualFunc(x, y, func(x, y *pb.PodResourceClaim) bool { return proto.Equal(x, y) })
}

// place records where a pod is. Its Reserve's allocations are in flight until the claim shows them or the pod loses its
// place; also after the bind, since claims and pods arrive independently.
func (m *clusterCache) place(placement *pb.PodPlacement) error {
	p := m.pods[placement.GetUid()]
	if p == nil {
		return fmt.Errorf("no pod %s", placement.GetUid())
	}
	state := placement.GetState()
	if state != pb.PlacementState_PLACEMENT_STATE_UNPLACED && m.nodes[placement.GetSlot()] == nil {
		return fmt.Errorf("no node in slot %d", placement.GetSlot())
	}
	switch state {
	case pb.PlacementState_PLACEMENT_STATE_ASSUMED, pb.PlacementState_PLACEMENT_STATE_WAITING:
		if len(placement.GetEffects()) > 0 {
			flights, err := m.claims.flightsFrom(p.get(), placement.GetEffects())
			if err != nil {
				m.warn.about("pod", p.proto.GetNamespace(), p.proto.GetName(), p.proto.GetUid(), fmt.Errorf("the effects of its placement: %w", err))
			}
			m.claims.setInFlight(p.proto.GetUid(), flights)
		}
	case pb.PlacementState_PLACEMENT_STATE_BOUND:
		p.proto.NodeName = m.nodes[placement.GetSlot()].object.Name
	case pb.PlacementState_PLACEMENT_STATE_UNPLACED, pb.PlacementState_PLACEMENT_STATE_NOMINATED:
		if p.proto.GetNodeName() == "" {
			m.claims.dropInFlight(p.proto.GetUid())
		}
	default:
		return errors.New("unknown placement state")
	}
	p.state, p.slot = state, placement.GetSlot()
	return nil
}
