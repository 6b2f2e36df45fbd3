package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pb "outboard.dev/contract/v1beta1"
)

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

func TestTwoPodsNeverGetOneDevice(t *testing.T) {
	first, second, third := podUsing("first", "a"), podUsing("second", "b"), podUsing("third", "c")
	a, b, c := newClaim("a", exactly1("gpu", "gpu")), newClaim("b", exactly1("gpu", "gpu")), newClaim("c", exactly1("gpu", "gpu"))
	s := newShim(t, 1, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", devices(2)...)),
		upsert(t, claimResource, a), upsert(t, claimResource, b), upsert(t, claimResource, c), upsertPod(first), upsertPod(second), upsertPod(third))

	feasible, _ := s.try(first)
	expect(t, "before any allocation", feasible, []string{"node-0"})
	effects := s.reserve(first, "node-0")
	expect(t, "the first device", devicesOf(t, effects), []string{"node-0/gpu-0"})
	// The stream has not reported yet that it is assumed.
	if feasible, _ = s.try(second); len(feasible) != 1 {
		t.Fatal("there is one more")
	}
	more := s.reserve(second, "node-0")
	expect(t, "the second device", devicesOf(t, more), []string{"node-0/gpu-1"})
	feasible, reason := s.try(third)
	expect(t, "all are in flight", fmt.Sprint(feasible, reason), "[]cannot allocate all claims")

	// Assumed, written, visible and bound: nothing changes for others.
	s.delta(placed(first, pb.PlacementState_PLACEMENT_STATE_ASSUMED, 0, effects...), placed(second, pb.PlacementState_PLACEMENT_STATE_ASSUMED, 0, more...))
	s.delta(upsert(t, claimResource, showing(t, a, effects)), placed(first, pb.PlacementState_PLACEMENT_STATE_BOUND, 0))
	feasible, reason = s.try(third)
	expect(t, "one is bound, one in flight", fmt.Sprint(feasible, reason), "[]cannot allocate all claims")
	// The second loses its place.
	s.delta(placed(second, pb.PlacementState_PLACEMENT_STATE_UNPLACED, 0))
	feasible, _ = s.try(third)
	expect(t, "one was released", feasible, []string{"node-0"})
	expect(t, "it is that one", devicesOf(t, s.reserve(third, "node-0")), []string{"node-0/gpu-1"})
	// The first ends, and its claim is released.
	s.delta(&pb.Change{Change: &pb.Change_PodRemove{PodRemove: &pb.PodRemove{Uid: first.GetUid()}}}, upsert(t, claimResource, a))
	feasible, _ = s.try(second)
	expect(t, "the first one's is free", feasible, []string{"node-0"})
	expect(t, "again the first device", devicesOf(t, s.reserve(second, "node-0")), []string{"node-0/gpu-0"})
}

func TestInFlightIsReadBackAfterAStart(t *testing.T) {
	first, second := podUsing("first", "a"), podUsing("second", "b")
	a, b := newClaim("a", exactly1("gpu", "gpu")), newClaim("b", exactly1("gpu", "gpu"))
	objects := []*pb.Change{upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", devices(1)...)),
		upsert(t, claimResource, a), upsert(t, claimResource, b), upsertPod(first), upsertPod(second)}
	before := newShim(t, 1, objects...)
	before.try(first)
	effects := before.reserve(first, "node-0")

	for _, state := range []pb.PlacementState{pb.PlacementState_PLACEMENT_STATE_ASSUMED, pb.PlacementState_PLACEMENT_STATE_WAITING} {
		// Another host, with only the shim's state.
		after := newShim(t, 1, append(slices.Clone(objects), placed(first, state, 0, effects...))...)
		feasible, reason := after.try(second)
		expect(t, "the device is in flight for the first", fmt.Sprint(feasible, reason), "[]cannot allocate all claims")
		_, reason = after.try(podAgain(after, "third", "a"))
		expect(t, "the claim, too", reason, "resource claim default/a is in the process of being allocated")
		// The claim shows it after the pod is bound: the device is never free in between.
		after.delta(placed(first, pb.PlacementState_PLACEMENT_STATE_BOUND, 0))
		_, reason = after.try(second)
		expect(t, "bound before the claim shows it", reason, "cannot allocate all claims")
		after.delta(upsert(t, claimResource, showing(t, a, effects)))
		_, reason = after.try(second)
		expect(t, "shown", reason, "cannot allocate all claims")
		after.delta(upsert(t, claimResource, a))
		feasible, _ = after.try(second)
		expect(t, "freed", feasible, []string{"node-0"})
	}
	// The same host, another stream: only the snapshot's state counts.
	before.sync(1, objects...)
	feasible, _ := before.try(second)
	expect(t, "a shim that knows of no placement", feasible, []string{"node-0"})
}

func podAgain(s *fakeShim, name string, claims ...string) *pb.Pod {
	p := podUsing(name, claims...)
	s.delta(upsertPod(p))
	return p
}

func TestClaimsFromTemplates(t *testing.T) {
	controller := true
	made := newClaim("made", exactly1("gpu", "gpu"))
	p := podUsing("p")
	p.Claims = []*pb.PodResourceClaim{{Name: "gpu", TemplateName: "template"}}
	s := newShim(t, 1, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", devices(1)...)), upsertPod(p))
	ask := func() string {
		_, reason := s.try(p)
		verdicts := call(s, pb.NewPreEnqueueServiceClient(s.connection).PreEnqueue, &pb.PreEnqueueRequest{Header: s.headerFrom(), PodUids: []string{p.GetUid()}})
		gated := strings.Join(verdicts.GetVerdicts()[0].GetReasons(), "")
		expect(t, "PreEnqueue and PreFilter agree", gated, reason)
		return reason
	}
	expect(t, "no name", ask(), `pod "default/p": ResourceClaim not created yet`)
	name := made.Name
	p.Claims[0].MadeClaimName = &name
	s.delta(upsertPod(p))
	expect(t, "no claim", ask(), `could not find ResourceClaim "default/made"`)
	s.delta(upsert(t, claimResource, made))
	expect(t, "not its own", ask(), "ResourceClaim default/made was not created for Pod default/p (Pod is not owner)")
	made.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: "uid-p", Controller: &controller}}
	s.delta(upsert(t, claimResource, made))
	feasible, _ := s.try(p)
	expect(t, "its own", feasible, []string{"node-0"})
	deleted := made.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{}
	deleted.DeletionTimestamp.Time = metav1.Now().Time
	s.delta(upsert(t, claimResource, deleted))
	expect(t, "deleted", ask(), `resourceclaim "made" is being deleted`)
	none := ""
	p.Claims[0].MadeClaimName = &none
	s.delta(upsertPod(p))
	feasible, _ = s.try(p)
	expect(t, "it needs none", feasible, []string{"node-0"})
	expect(t, "nothing to write", len(s.reserve(p, "node-0")), 0)
}

func TestSharedClaim(t *testing.T) {
	first, second := podUsing("first", "shared"), podUsing("second", "shared")
	shared := newClaim("shared", exactly1("gpu", "gpu"))
	s := newShim(t, 2, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", devices(1)...)),
		upsert(t, sliceResource, newSlice("node-1", devices(1)...)), upsert(t, claimResource, shared), upsertPod(first), upsertPod(second))
	s.try(first)
	effects := s.reserve(first, "node-1")
	expect(t, "what is written", len(effects), 2)
	_, reason := s.try(second)
	expect(t, "on the way", reason, "resource claim default/shared is in the process of being allocated")
	s.delta(placed(first, pb.PlacementState_PLACEMENT_STATE_ASSUMED, 1, effects...))
	s.delta(upsert(t, claimResource, showing(t, shared, effects)))
	feasible, _ := s.try(second)
	expect(t, "only where it is", feasible, []string{"node-1"})
	more := s.reserve(second, "node-1")
	expect(t, "only the reservation", fmt.Sprint(len(more), more[0].GetPatchObject().GetJson()),
		`1{"status":{"reservedFor":[{"resource":"pods","name":"second","uid":"uid-second"}]}}`)
}

func TestClassesAndRequests(t *testing.T) {
	// A claim from a manifest gets the API server's defaults.
	bare := newClaim("bare", resourceapi.DeviceRequest{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu"}})
	setDefaults(&bare.Spec)
	expect(t, "one device", fmt.Sprintf("%s %d", bare.Spec.Devices.Requests[0].Exactly.AllocationMode, bare.Spec.Devices.Requests[0].Exactly.Count), "ExactCount 1")
	unknown := newClaim("unknown", resourceapi.DeviceRequest{Name: "what"})
	broken := newClaim("broken", exactly1("gpu", "broken"))
	p := podUsing("p", "missing")
	s := newShim(t, 1, upsert(t, sliceResource, newSlice("node-0", devices(1)...)), upsert(t, claimResource, newClaim("missing", exactly1("gpu", "none"))),
		upsert(t, claimResource, unknown), upsert(t, claimResource, broken), upsertPod(p), upsert(t, classResource, newClass("broken", "device.nonsense")))
	_, reason := s.try(p)
	expect(t, "no class", reason, "request gpu: device class none does not exist")
	_, reason = s.try(podAgain(s, "q", "unknown"))
	expect(t, "no kind of request", reason, "resource claim default/unknown, request what: unknown request type")
	_, reason = s.try(podAgain(s, "r", "broken"))
	if !strings.HasPrefix(reason, `error: running "DynamicResources" filter plugin: class broken: selector #0: CEL compile error`) {
		t.Errorf("an expression that does not compile: %s", reason)
	}
	expect(t, "nothing is unavailable", s.postFilter(), "still not schedulable")
}

func TestDeviceTaints(t *testing.T) {
	tainted := device("gpu-0")
	tainted.Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	tolerant := newClaim("tolerant", exactly1("gpu", "gpu"))
	tolerant.Spec.Devices.Requests[0].Exactly.Tolerations = []resourceapi.DeviceToleration{{Key: "broken", Operator: resourceapi.DeviceTolerationOpExists}}
	p, q := podUsing("p", "plain"), podUsing("q", "tolerant")
	s := newShim(t, 1, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", tainted)),
		upsert(t, claimResource, newClaim("plain", exactly1("gpu", "gpu"))), upsert(t, claimResource, tolerant), upsertPod(p), upsertPod(q))
	_, reason := s.try(p)
	expect(t, "tainted", reason, "cannot allocate all claims")
	feasible, _ := s.try(q)
	expect(t, "tolerated", feasible, []string{"node-0"})
	// The taint is removed: the cached outcome of the node is dropped.
	s.delta(upsert(t, sliceResource, newSlice("node-0", device("gpu-0"))))
	feasible, _ = s.try(p)
	expect(t, "healed", feasible, []string{"node-0"})
}

// A card of two halves: the whole and a half exclude each other.
func TestPartitionableDevices(t *testing.T) {
	counters := newSlice("node-0")
	counters.Name, counters.UID = "counters", "uid-counters"
	counters.Spec.Pool.ResourceSliceCount = 2
	counters.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("80Gi")}}}}
	part := func(name, memory string) resourceapi.Device {
		d := device(name)
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{
			CounterSet: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(memory)}},
		}}
		return d
	}
	parts := newSlice("node-0", part("half-0", "40Gi"), part("half-1", "40Gi"), part("whole", "80Gi"))
	parts.Spec.Pool.ResourceSliceCount = 2
	changes := []*pb.Change{upsert(t, classResource, gpuClass()), upsert(t, classResource, newClass("whole", `device.attributes["`+driver+`"].model == "whole"`)),
		upsert(t, sliceResource, counters), upsert(t, sliceResource, parts)}
	pods := map[string]*pb.Pod{}
	for name, class := range map[string]string{"a": "gpu", "b": "gpu", "c": "gpu", "w": "whole"} {
		pods[name] = podUsing(name, name)
		changes = append(changes, upsert(t, claimResource, newClaim(name, exactly1("gpu", class))), upsertPod(pods[name]))
	}
	s := newShim(t, 2, changes...)
	feasible, _ := s.try(pods["w"])
	expect(t, "the whole", feasible, []string{"node-0"})
	s.try(pods["a"])
	expect(t, "a half", devicesOf(t, s.reserve(pods["a"], "node-0")), []string{"node-0/half-0"})
	_, reason := s.try(pods["w"])
	expect(t, "no whole any more", reason, "cannot allocate all claims")
	s.try(pods["b"])
	expect(t, "the other half", devicesOf(t, s.reserve(pods["b"], "node-0")), []string{"node-0/half-1"})
	_, reason = s.try(pods["c"])
	expect(t, "nothing left", reason, "cannot allocate all claims")
	s.unreserve(pods["b"], "node-0")
	feasible, _ = s.try(pods["c"])
	expect(t, "given back", feasible, []string{"node-0"})
}

func TestConsumableCapacity(t *testing.T) {
	shared := device("gpu-0")
	several := true
	shared.AllowMultipleAllocations = &several
	changes := []*pb.Change{upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", shared))}
	var pods []*pb.Pod
	for _, name := range []string{"a", "b", "c"} {
		c := newClaim(name, exactly1("gpu", "gpu"))
		c.Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{
			Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("30Gi")},
		}
		p := podUsing(name, name)
		pods = append(pods, p)
		changes = append(changes, upsert(t, claimResource, c), upsertPod(p))
	}
	s := newShim(t, 1, changes...)
	shares := map[string]bool{}
	for _, p := range pods[:2] {
		if feasible, reason := s.try(p); len(feasible) != 1 {
			t.Fatal(reason)
		}
		effects := s.reserve(p, "node-0")
		text := effects[len(effects)-1].GetPatchObject().GetJson()
		_, after, _ := strings.Cut(text, `"shareID":"`)
		shares[after[:36]] = true
		if !strings.Contains(text, `"consumedCapacity":{"memory":"30Gi"}`) {
			t.Error(text)
		}
	}
	expect(t, "each has a share of its own", len(shares), 2)
	_, reason := s.try(pods[2])
	expect(t, "90Gi of 80Gi", reason, "cannot allocate all claims")
	s.unreserve(pods[0], "node-0")
	feasible, _ := s.try(pods[2])
	expect(t, "60Gi of 80Gi", feasible, []string{"node-0"})
}

func TestPrioritizedListIsScored(t *testing.T) {
	request := resourceapi.DeviceRequest{Name: "gpu", FirstAvailable: []resourceapi.DeviceSubRequest{
		{Name: "big", DeviceClassName: "big", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1},
		{Name: "any", DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1},
	}}
	p := podUsing("p", "c")
	s := newShim(t, 2, upsert(t, classResource, gpuClass()), upsert(t, classResource, newClass("big", `device.attributes["`+driver+`"].model == "big"`)),
		upsert(t, sliceResource, newSlice("node-0", device("small"))), upsert(t, sliceResource, newSlice("node-1", device("big"))),
		upsert(t, claimResource, newClaim("c", request)), upsertPod(p))
	feasible, _ := s.try(p)
	expect(t, "both will do", feasible, []string{"node-0", "node-1"})
	expectFused(t, s, p, feasible, []byte{87, 100})
	feasible, _ = s.try(p)
	// 8 for the first of the list, 7 for the second.
	expect(t, "the first alternative is better", s.score(0, 1), []byte{87, 100})
	effects := s.reserve(p, "node-1")
	if text := effects[1].GetPatchObject().GetJson(); !strings.Contains(text, `"request":"gpu/big"`) {
		t.Error(text)
	}
}

// expectFused asks for the same in one message.
func expectFused(t *testing.T, s *fakeShim, p *pb.Pod, feasible []string, scores []byte) {
	t.Helper()
	stream, err := pb.NewCycleServiceClient(s.connection).Cycle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.attempt++
	if err := stream.Send(&pb.CycleRequest{
		Header: s.header(), DeadlineMicros: 5e6, PodUid: p.GetUid(), Search: &pb.NodeSearch{},
	}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || answer.GetEvaluation() == nil {
		t.Fatal(err, answer)
	}
	expect(t, "fused: nodes", int(answer.GetEvaluation().GetFilter().GetProcessed()), len(feasible))
	expect(t, "fused: scores", answer.GetEvaluation().GetScore().GetPlugins()[0].GetScores(), scores)
}
