package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pb "outboard.dev/contract/v1beta1"
)

const extendedName = "example.com/gpu"

func standingClass() *resourceapi.DeviceClass {
	class := gpuClass()
	name := extendedName
	class.Spec.ExtendedResourceName = &name
	return class
}

func asking(name string, amounts ...int64) *pb.Pod {
	p := podUsing(name)
	p.Containers = nil
	for i, amount := range amounts {
		cpu := int64(100)
		p.Containers = append(p.Containers, &pb.Container{
			Name: fmt.Sprintf("c%d", i), Requests: &pb.ResourceList{CpuMillis: &cpu, Scalar: map[string]int64{extendedName: amount}},
		})
	}
	return p
}

// claimOf returns the claim that effects create.
func claimOf(t *testing.T, effects []*pb.Effect) *resourceapi.ResourceClaim {
	t.Helper()
	put := effects[0].GetPutObject()
	var made resourceapi.ResourceClaim
	if err := json.Unmarshal([]byte(put.GetJson()), &made); err != nil {
		t.Fatal(err)
	}
	made.Namespace, made.Name, made.UID, made.ResourceVersion = put.GetNamespace(), put.GetName(), "uid-made", "7"
	return &made
}

func TestExtendedResources(t *testing.T) {
	p, q := asking("p", 1, 1), asking("q", 1)
	withPlugin := nodeNamed(1)
	withPlugin.Allocatable.Scalar = map[string]int64{extendedName: 4}
	s := newShim(t, 2, upsert(t, classResource, standingClass()), upsert(t, sliceResource, newSlice("node-0", devices(2)...)), upsertPod(p), upsertPod(q))
	s.delta(&pb.Change{Change: &pb.Change_NodeUpsert{NodeUpsert: &pb.NodeUpsert{Slot: 1, Node: withPlugin}}})
	feasible, _ := s.try(p)
	expect(t, "devices here, a device plugin there", feasible, []string{"node-0", "node-1"})
	expect(t, "the device plugin's node needs no claim", len(s.reserve(p, "node-1")), 0)
	s.try(p)
	effects := s.reserve(p, "node-0")
	expect(t, "create, allocate, report to the pod", len(effects), 3)
	made := claimOf(t, effects)
	if !strings.HasPrefix(made.Name, "p-extended-resources-") || made.OwnerReferences[0].UID != "uid-p" || made.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" ||
		made.Finalizers[0] != resourceapi.Finalizer {
		t.Errorf("%+v", made.ObjectMeta)
	}
	// The resource is second, after cpu.
	expect(t, "requests", made.Spec.Devices.Requests[0].Name+" "+made.Spec.Devices.Requests[1].Name, "container-0-request-1 container-1-request-1")
	expect(t, "the allocation comes after", effects[1].GetPatchObject().GetAfter(), effects[0].GetKey())
	expect(t, "two devices", devicesOf(t, effects), []string{"node-0/gpu-0", "node-0/gpu-1"})
	report := effects[2].GetReportExtendedResourceClaim()
	expect(t, "the pod's status", fmt.Sprint(report.GetClaimName() == made.Name, report.GetRequestMappings()[1]),
		fmt.Sprint(true, &pb.ReportExtendedResourceClaim_RequestMapping{ContainerName: "c1", ResourceName: extendedName, RequestName: "container-1-request-1"}))

	// In flight, also once the claim exists, and for a host that starts later.
	_, reason := s.try(q)
	s.delta(placed(p, pb.PlacementState_PLACEMENT_STATE_ASSUMED, 0, effects...), upsert(t, claimResource, made))
	feasible, _ = s.try(q)
	expect(t, "only the device plugin's", fmt.Sprint(feasible, reason), "[node-1]")
	s.delta(upsert(t, claimResource, showing(t, made, effects)))
	feasible, _ = s.try(q)
	expect(t, "as the claim shows", feasible, []string{"node-1"})

	// The pod loses its place: the finalizer is removed first, then the claim.
	s.delta(placed(p, pb.PlacementState_PLACEMENT_STATE_UNPLACED, 0))
	s.unreserve(p, "node-0")
	release := await(t, s.effects)
	expect(t, "the finalizer", release.GetPatchObject().GetJson(), `{"metadata":{"$deleteFromPrimitiveList/finalizers":["resource.kubernetes.io/delete-protection"]}}`)
	shown := showing(t, made, effects)
	shown.Finalizers = nil
	s.delta(upsert(t, claimResource, shown))
	remove := await(t, s.effects)
	expect(t, "the claim", remove.GetDeleteObject().GetName(), made.Name)
	// Until it is deleted, the pod's attempts stop here.
	_, reason = s.try(p)
	expect(t, "an old claim", reason, "cannot schedule extended resource claim")
	expect(t, "is deleted", s.postFilter(), "deletion of ResourceClaim completed")
}

func TestInitContainersUseDevicesAgain(t *testing.T) {
	p := asking("p", 1, 2)
	p.InitContainers = []*pb.Container{{Name: "init", Requests: &pb.ResourceList{Scalar: map[string]int64{extendedName: 4}}}}
	p.Containers[1].Requests.Scalar["example.com/other"] = 1
	other := nodeNamed(0)
	s := newShim(t, 1, upsert(t, classResource, standingClass()), upsert(t, sliceResource, newSlice("node-0", devices(8)...)), upsertPod(p))
	_, reason := s.try(p)
	expect(t, "no node has the other resource", reason, "cannot fit resource")
	other.Allocatable.Scalar = map[string]int64{"example.com/other": 1}
	s.delta(&pb.Change{Change: &pb.Change_NodeUpsert{NodeUpsert: &pb.NodeUpsert{Slot: 0, Node: other}}})
	if feasible, reason := s.try(p); len(feasible) != 1 {
		t.Fatal(reason)
	}
	var asked []string
	for _, request := range claimOf(t, s.reserve(p, "node-0")).Spec.Devices.Requests {
		asked = append(asked, fmt.Sprint(request.Name, "=", request.Exactly.Count))
	}
	expect(t, "its own device, and the others'", asked, []string{"container-0-request-0=1", "container-1-request-1=1", "container-2-request-1=2"})
}

func TestNoClassNoClaims(t *testing.T) {
	p := asking("p", 1)
	s := newShim(t, 1, upsertPod(p))
	feasible, _ := s.try(p)
	expect(t, "outside this plugin", feasible, []string{"node-0"})
	expect(t, "no help either", s.postFilter(), "no new claims to deallocate")
}

// allocatedClaim returns a claim whose device must become ready.
func allocatedClaim(t *testing.T, now time.Time) *resourceapi.ResourceClaim {
	t.Helper()
	c := newClaim("c", exactly1("gpu", "gpu"))
	c.Status.Allocation = &resourceapi.AllocationResult{AllocationTimestamp: &metav1.Time{Time: now}}
	c.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{
		Request: "gpu", Driver: driver, Pool: "node-0", Device: "gpu-0",
		BindingConditions: []string{"attached"}, BindingFailureConditions: []string{"broken"},
	}}
	return c
}

func condemned(c *resourceapi.ResourceClaim, kind string) *resourceapi.ResourceClaim {
	c = c.DeepCopy()
	c.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: driver, Pool: "node-0", Device: "gpu-0", Conditions: []metav1.Condition{{
		Type: kind, Status: metav1.ConditionTrue, Reason: "Said", Message: "so",
	}}}}
	return c
}

func TestDevicesThatHaveToGetReady(t *testing.T) {
	p := podUsing("p", "c")
	c := allocatedClaim(t, time.Now())
	s := newShim(t, 1, upsert(t, classResource, gpuClass()), upsert(t, claimResource, c), upsertPod(p))
	if feasible, reason := s.try(p); len(feasible) != 1 {
		t.Fatal(reason)
	}
	effects := s.reserve(p, "node-0")
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: types.UID(p.GetUid())}}
	s.delta(upsert(t, claimResource, c))
	preBind := func(elapsed time.Duration) string {
		answer := call(s, pb.NewPreBindServiceClient(s.connection).PreBind, &pb.PreBindRequest{
			Header: s.headerFrom(), PodUid: p.GetUid(), NodeName: "node-0", Effects: effects, Results: []*pb.EffectResult{{Key: effects[0].GetKey()}},
			ElapsedMicros: elapsed.Microseconds(),
		})
		return fmt.Sprint(answer.GetWait(), answer.GetRejection().GetReasons())
	}
	expect(t, "no report about the device", preBind(time.Second), "true []")
	expect(t, "too long", preBind(time.Hour), `false [running PreBind plugin "DynamicResources": device binding timeout: context deadline exceeded]`)
	s.delta(upsert(t, claimResource, condemned(c, "attached")))
	expect(t, "ready", preBind(time.Second), "false []")
	s.delta(upsert(t, claimResource, condemned(c, "broken")))
	expect(t, "broken", preBind(time.Second), `false [running PreBind plugin "DynamicResources": device binding failed: claim=c, reason=Said, message="so"]`)
	// The next attempt releases the claim, and waits for that.
	_, reason := s.try(p)
	expect(t, "unusable", reason, "resourceclaim not available on the node")
	expect(t, "so it is released", s.postFilter(), "deallocation of ResourceClaim completed")
	wanted := await(t, s.effects).GetPatchObject()
	expect(t, "all of its status", wanted.GetJson(), `{"status":{"allocation":null,"devices":null,"reservedFor":null}}`)
	expect(t, "as it was", wanted.GetResourceVersion(), "1")
	_, reason = s.try(p)
	expect(t, "meanwhile", reason, "the pod's resource claims are being released")
	// Already reserved for the pod; PreBind still needs an effect, so one is written.
	s.delta(upsert(t, claimResource, newClaim("c", exactly1("gpu", "gpu"))))
	s.delta(upsert(t, claimResource, c))
	s.try(p)
	expect(t, "an effect to wait behind", len(s.reserve(p, "node-0")), 1)
}

func TestUnreserveTakesThePodOffItsClaims(t *testing.T) {
	p := podUsing("p", "c")
	c := newClaim("c", exactly1("gpu", "gpu"))
	s := newShim(t, 1, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", devices(1)...)), upsert(t, claimResource, c), upsertPod(p))
	s.try(p)
	effects := s.reserve(p, "node-0")
	s.delta(placed(p, pb.PlacementState_PLACEMENT_STATE_ASSUMED, 0, effects...))
	// Unreserved before the cluster cache shows the writes.
	s.unreserve(p, "node-0")
	s.delta(placed(p, pb.PlacementState_PLACEMENT_STATE_UNPLACED, 0))
	select {
	case early := <-s.effects:
		t.Fatal(early)
	default:
	}
	s.delta(upsert(t, claimResource, showing(t, c, effects)))
	expect(t, "off it", await(t, s.effects).GetPatchObject().GetJson(), `{"status":{"reservedFor":[{"$patch":"delete","uid":"uid-p"}]}}`)
	_, reason := s.try(p)
	expect(t, "not before that is written", reason, "the pod's resource claims are being released")
	done := showing(t, c, effects)
	done.Status.ReservedFor = nil
	s.delta(upsert(t, claimResource, done))
	feasible, _ := s.try(p)
	expect(t, "the claim keeps its device", feasible, []string{"node-0"})
	expect(t, "reserved again", len(s.reserve(p, "node-0")), 1)
}
