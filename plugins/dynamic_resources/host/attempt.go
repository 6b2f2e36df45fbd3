package main

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	pb "outboard.dev/contract/v1beta1"
)

const pluginName = "DynamicResources"

// features are kube-scheduler v1.36's defaults.
var features = structured.Features{
	AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true, DeviceBindingAndStatus: true, ConsumableCapacity: true,
}

// compiled caches CEL expressions for all sessions.
var compiled = cel.NewCache(256, cel.Features{EnableConsumableCapacity: true})

// attempt holds PreFilter's result for a pod, and what later calls add. The session's lock guards it, except for the
// fields that do not change after PreFilter: Filter reads them without the lock.
type attempt struct {
	podUID string
	pod    *v1.Pod
	args   args

	// The pod's claims, in order; `special`, the claim for extended resources, is the last. Empty: nothing to do.
	claims  []*claim
	special *claim
	fresh   bool // `special` is not in the cluster yet
	// By claim: the nodes on which an allocated one is available; nil: all nodes.
	availableOn []*nodeaffinity.NodeSelector
	// At least one claim needs an allocation.
	allocates bool
	inUse     *usageState
	classes   classes
	// The pod's extended resources, and the classes that provide them.
	amounts map[string]int64
	stands  map[string]*resourceapi.DeviceClass

	plain    wanted              // where `special` needs no variant
	variants map[string]*variant // of `special`, by the resources that it stands for on a node

	whole       structured.Allocator      // for all nodes at once; made when it is first needed, under the session's lock
	unavailable map[int]bool              // claims that some node refused, by index
	allocations map[uint32]nodeAllocation // by slot

	reservedOn string
	effects    []*pb.Effect
}

// variant is the claim for extended resources, for one kind of node.
type variant struct {
	claim    *claim
	wanted   wanted
	mappings []*pb.ReportExtendedResourceClaim_RequestMapping
}

// nodeAllocation is Filter's result for a node.
type nodeAllocation struct {
	results []resourceapi.AllocationResult // one per claim without an allocation, in order
	variant *variant                       // nil: the node needs no claim for extended resources
}

func reject(code pb.Code, format string, values ...any) *pb.PluginStatus {
	return &pb.PluginStatus{Plugin: pluginName, Code: code, Reasons: []string{cut(fmt.Sprintf(format, values...))}}
}

// failing formats a rejection as kube-scheduler's framework does: an error names the extension point.
func failing(where string, rejection *pb.PluginStatus) *pb.PluginStatus {
	if rejection.GetCode() != pb.Code_CODE_ERROR {
		return rejection
	}
	return reject(pb.Code_CODE_ERROR, "running %s: %s", where, rejection.GetReasons()[0])
}

func unresolvable(reason string) *pb.PluginStatus {
	return reject(pb.Code_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, "%s", reason)
}

// cut shortens a reason to the contract's limit.
func cut(reason string) string {
	const most = 1024
	if len(reason) <= most {
		return reason
	}
	return strings.ToValidUTF8(reason[:most-3], "") + "..."
}

// begin checks a pod's claims as kube-scheduler's PreFilter does. A rejected attempt has no claims, as there.
func begin(c *claims, podUID string, pod *v1.Pod, with args) (*attempt, *pb.PluginStatus) {
	a := &attempt{podUID: podUID, pod: pod, args: with}
	found, err := c.of(pod)
	if err != nil {
		return a, unresolvable(err.Error())
	}
	a.lookForExtended(c)
	if a.special != nil {
		found = append(found, a.special)
	}
	if len(found) == 0 {
		return a, nil
	}
	a.availableOn = make([]*nodeaffinity.NodeSelector, len(found))
	for i, one := range found {
		if rejection := a.check(c, i, one); rejection != nil {
			return a, rejection
		}
	}
	if a.allocates {
		a.inUse, a.classes = c.usage.acquire(), c.inventory.classes
		a.allocations = make(map[uint32]nodeAllocation, 128)
	}
	a.claims = found
	return a, nil
}

func (a *attempt) check(c *claims, index int, one *claim) *pb.PluginStatus {
	if allocation := one.Status.Allocation; allocation != nil {
		if !resourceclaim.CanBeReserved(one.ResourceClaim) && !resourceclaim.IsReservedForPod(a.pod, one.ResourceClaim, false) {
			return unresolvable("resourceclaim in use")
		}
		if allocation.NodeSelector != nil {
			selector, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
			if err != nil {
				return reject(pb.Code_CODE_ERROR, "%s", err.Error())
			}
			a.availableOn[index] = selector
		}
		return nil
	}
	a.allocates = true
	if one == a.special && a.fresh {
		return nil
	}
	if c.pending(one) {
		return unresolvable(fmt.Sprintf("resource claim %s/%s is in the process of being allocated", one.Namespace, one.Name))
	}
	if one == a.special {
		return nil // Filter handles it.
	}
	for _, request := range one.Spec.Devices.Requests {
		switch {
		case request.Exactly != nil:
			if rejection := checkClass(c, request.Exactly.DeviceClassName, request.Name); rejection != nil {
				return rejection
			}
		case len(request.FirstAvailable) > 0:
			for _, sub := range request.FirstAvailable {
				if rejection := checkClass(c, sub.DeviceClassName, request.Name+"/"+sub.Name); rejection != nil {
					return rejection
				}
			}
		default:
			return unresolvable(fmt.Sprintf("resource claim %s/%s, request %s: unknown request type", one.Namespace, one.Name, request.Name))
		}
	}
	return nil
}

func checkClass(c *claims, class, request string) *pb.PluginStatus {
	if class == "" {
		return reject(pb.Code_CODE_ERROR, "request %s: unsupported request type", request)
	}
	if c.inventory.classes[class] == nil {
		return unresolvable(fmt.Sprintf("request %s: device class %s does not exist", request, class))
	}
	return nil
}

// lookForExtended finds or creates the claim for extended resources, if a class provides any of the pod's resources.
func (a *attempt) lookForExtended(c *claims) {
	if len(a.pod.Spec.Containers) == 0 {
		return // The pod requests no extended resources.
	}
	amounts, stands := map[string]int64{}, map[string]*resourceapi.DeviceClass{}
	for name, quantity := range resourcehelper.PodRequests(a.pod, resourcehelper.PodResourcesOptions{}) {
		if quantity.IsZero() || !isExtendedResource(string(name)) {
			continue
		}
		amounts[string(name)] = quantity.Value()
		if class := c.inventory.extended.GetDeviceClass(name); class != nil {
			stands[string(name)] = class
		}
	}
	if len(stands) == 0 {
		return
	}
	a.amounts, a.stands, a.variants = amounts, stands, map[string]*variant{}
	if a.special = c.extendedFor(a.pod); a.special == nil {
		a.special, a.fresh = specialClaim(a.pod), true
	}
}

// close releases what the attempt holds.
func (a *attempt) close(c *claims) {
	c.usage.release(a.inUse)
	a.inUse = nil
}

// readyToBind returns whether the devices of an allocated claim are ready; an error: a device failed.
func readyToBind(c *resourceapi.ResourceClaim) (bool, error) {
	if c.Status.Allocation == nil {
		return false, nil
	}
	for i := range c.Status.Allocation.Devices.Results {
		result := &c.Status.Allocation.Devices.Results[i]
		if len(result.BindingConditions) == 0 {
			continue
		}
		device := deviceStatus(c, result)
		if device == nil {
			return false, nil
		}
		for _, kind := range result.BindingFailureConditions {
			if failed := condition(device, kind); failed != nil && failed.Status == "True" {
				return false, fmt.Errorf("device binding failed: claim=%s, reason=%s, message=%q", c.Name, failed.Reason, failed.Message)
			}
		}
		for _, kind := range result.BindingConditions {
			if met := condition(device, kind); met == nil || met.Status != "True" {
				return false, nil
			}
		}
	}
	return true, nil
}

// bindingTimedOut returns whether the time for the claim's devices to become ready is over.
func bindingTimedOut(c *resourceapi.ResourceClaim, timeout time.Duration, now time.Time) bool {
	allocation := c.Status.Allocation
	if allocation == nil || allocation.AllocationTimestamp == nil || !hasBindingConditions(allocation) {
		return false
	}
	return allocation.AllocationTimestamp.Add(timeout).Before(now)
}

func hasBindingConditions(allocation *resourceapi.AllocationResult) bool {
	for i := range allocation.Devices.Results {
		if len(allocation.Devices.Results[i].BindingConditions) > 0 {
			return true
		}
	}
	return false
}
