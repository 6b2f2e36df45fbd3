package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	pb "outboard.dev/contract/v1beta1"
)

// story is a randomly changing cluster. One host follows it step by step; another session gets the result as a whole.
type story struct {
	t       *testing.T
	dice    *rand.Rand
	shim    *fakeShim
	nodes   int
	objects map[string]*pb.Change // by their subject
	places  map[string]*pb.Change
	claims  map[string]*resourceapi.ResourceClaim
	effects map[string][]*pb.Effect
	pods    []*pb.Pod
	fresh   int
	wide    bool // also changes that matter on all nodes
}

func (s *story) tell(key string, change *pb.Change) {
	s.objects[key] = change
	s.shim.delta(change)
}

// slice of a node, of all nodes, or with counters; of random devices.
func (s *story) slice(n int) {
	node := fmt.Sprintf("node-%d", n)
	if s.objects["slice "+node] != nil && s.dice.IntN(3) == 0 {
		delete(s.objects, "slice "+node)
		s.shim.delta(&pb.Change{Change: &pb.Change_ObjectRemove{ObjectRemove: &pb.ObjectReference{Kind: sliceResource, Name: "slice-" + node}}})
		return
	}
	var all []resourceapi.Device
	several := true
	for i := range 1 + s.dice.IntN(3) {
		d := device(fmt.Sprintf("gpu-%d", i))
		switch s.dice.IntN(4) {
		case 0:
			d.AllowMultipleAllocations = &several
		case 1:
			d.Taints = []resourceapi.DeviceTaint{{Key: "x", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
		all = append(all, d)
	}
	made := newSlice(node, all...)
	made.Spec.Pool.ResourceSliceCount = int64(1 + s.dice.IntN(8)/7) // Sometimes one is missing.
	s.tell("slice "+node, upsert(s.t, sliceResource, made))
}

func (s *story) networkSlice() {
	everywhere := true
	made := newSlice("net", device("net-0"), device("net-1"))
	made.Spec.NodeName, made.Spec.AllNodes = nil, &everywhere
	if s.dice.IntN(2) == 0 {
		made.Spec.Devices = nil
	}
	s.tell("slice net", upsert(s.t, sliceResource, made))
}

func (s *story) partitions(n int) {
	node := fmt.Sprintf("node-%d", n)
	pool := "parts-" + node
	counters, parts := newSlice(node), newSlice(node)
	for i, slice := range []*resourceapi.ResourceSlice{counters, parts} {
		slice.Name = fmt.Sprintf("%s-%d", pool, i)
		slice.Spec.Pool.Name, slice.Spec.Pool.ResourceSliceCount = pool, 2
	}
	counters.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("80Gi")}}}}
	for _, memory := range []string{"40Gi", "40Gi", "80Gi"} {
		d := device(fmt.Sprintf("part-%d", len(parts.Spec.Devices)))
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{
			CounterSet: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(memory)}},
		}}
		parts.Spec.Devices = append(parts.Spec.Devices, d)
	}
	s.tell("counters "+node, upsert(s.t, sliceResource, counters))
	s.tell("parts "+node, upsert(s.t, sliceResource, parts))
}

// compare compares the answers of the session that followed all steps with those of a new one.
func (s *story) compare(step int, p *pb.Pod) []string {
	remembered, why := s.shim.try(p)
	s.fresh++
	// On the same host, which limits sessions: the oldest is removed.
	changes := slices.Collect(maps.Values(s.objects))
	other := joinShim(s.t, s.shim.connection, fmt.Sprintf("fresh-%d", s.fresh%4), "", s.nodes, append(changes, slices.Collect(maps.Values(s.places))...)...)
	fresh, reason := other.try(p)
	if fmt.Sprint(remembered, why) != fmt.Sprint(fresh, reason) {
		s.t.Fatalf("step %d, pod %s: %v %s, but from scratch %v %s", step, p.GetName(), remembered, why, fresh, reason)
	}
	if s.effects[p.GetUid()] == nil {
		for _, node := range remembered {
			expect(s.t, fmt.Sprint("step ", step, ": devices on ", node), devicesOf(s.t, s.shim.reserve(p, node)), devicesOf(s.t, other.reserve(p, node)))
			s.shim.unreserve(p, node)
			other.unreserve(p, node)
		}
	}
	return remembered
}

func (s *story) step(step int) {
	p := s.pods[s.dice.IntN(len(s.pods))]
	what := s.dice.IntN(20)
	if what < 3 && !s.wide {
		what += 3 // Changes that matter everywhere would hide those that matter on one node.
	}
	switch what {
	case 0:
		s.networkSlice()
	case 1:
		s.partitions(s.dice.IntN(s.nodes))
	case 3, 4, 5, 6:
		s.slice(s.dice.IntN(s.nodes))
	case 7, 8, 9: // The pod ends, and its claim is released.
		c := s.claims[p.GetUid()]
		s.places["place "+p.GetUid()] = placed(p, pb.PlacementState_PLACEMENT_STATE_UNPLACED, 0)
		delete(s.effects, p.GetUid())
		s.shim.delta(s.places["place "+p.GetUid()])
		s.tell("claim "+p.GetUid(), upsert(s.t, claimResource, c))
	case 10: // A pending write becomes visible.
		if s.effects[p.GetUid()] != nil {
			s.tell("claim "+p.GetUid(), upsert(s.t, claimResource, showing(s.t, s.claims[p.GetUid()], s.effects[p.GetUid()])))
		}
	case 2:
		class := gpuClass()
		if s.dice.IntN(2) == 0 {
			class = newClass("gpu", `device.attributes["`+driver+`"].model != "gpu-0"`)
		}
		s.tell("class", upsert(s.t, classResource, class))
	default:
		feasible := s.compare(step, p)
		if len(feasible) == 0 || s.effects[p.GetUid()] != nil {
			return
		}
		node := feasible[s.dice.IntN(len(feasible))]
		s.shim.try(p)
		effects := s.shim.reserve(p, node)
		var slot uint32
		if _, err := fmt.Sscanf(node, "node-%d", &slot); err != nil {
			s.t.Fatal(err)
		}
		s.effects[p.GetUid()] = effects
		s.places["place "+p.GetUid()] = placed(p, pb.PlacementState_PLACEMENT_STATE_ASSUMED, slot, effects...)
		s.shim.delta(s.places["place "+p.GetUid()])
	}
}

// Cached outcomes equal new ones after any changes.
func TestRememberedEqualsComputedAgain(t *testing.T) {
	const nodes, steps = 4, 300
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := &story{
				t: t, wide: seed%2 == 1, dice: rand.New(rand.NewPCG(seed, 1)), nodes: nodes, objects: map[string]*pb.Change{}, places: map[string]*pb.Change{},
				claims: map[string]*resourceapi.ResourceClaim{}, effects: map[string][]*pb.Effect{}, shim: newShim(t, nodes),
			}
			s.tell("class", upsert(t, classResource, gpuClass()))
			for i := range 12 {
				p := podUsing(fmt.Sprint("p", i), fmt.Sprint("c", i))
				c := newClaim(fmt.Sprint("c", i), exactly1("gpu", "gpu"))
				switch i % 3 {
				case 1:
					c.Spec.Devices.Requests[0].Exactly.Count = 2
				case 2:
					c.Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{
						Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("30Gi")},
					}
				}
				s.pods, s.claims[p.GetUid()] = append(s.pods, p), c
				s.tell("pod "+p.GetUid(), upsertPod(p))
				s.tell("claim "+p.GetUid(), upsert(t, claimResource, c))
			}
			for n := range nodes / 2 {
				s.slice(n)
			}
			for step := range steps {
				s.step(step)
			}
		})
	}
}
