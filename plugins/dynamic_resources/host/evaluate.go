package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	pb "outboard.dev/contract/v1beta1"
)

// verdict is Filter's result for a node.
type verdict struct {
	rejection   *pb.PluginStatus // nil: feasible; Code_ERROR: the plugin failed
	unavailable []int            // allocated claims that are not available there
	allocation  nodeAllocation   // for Reserve, on a feasible node; no results: nothing to allocate
}

// question is a node to evaluate; prepared under the session's lock, and answered without it.
type question struct {
	node    *node
	variant *variant
	verdict verdict
	open    *search // nil: the verdict is known
}

// search is a call of the allocator, and its result.
type search struct {
	wanted
	own, everywhere uint64 // the inventory's counters
	allocator       structured.Allocator
	outcome         outcome
	failure         error
}

func known(q question, rejection *pb.PluginStatus) question {
	q.verdict.rejection = rejection
	return q
}

// ask evaluates what is possible at once, and looks for a known outcome. The session is locked.
func (a *attempt) ask(m *clusterCache, n *node, now time.Time) question {
	q := question{node: n}
	if rejection := a.extendedOn(&q); rejection != nil {
		return known(q, rejection)
	}
	if q.variant == nil && a.special != nil && len(a.claims) == 1 {
		return known(q, nil) // Device plugins provide everything.
	}
	for i, one := range a.claims {
		if selector := a.availableOn[i]; selector != nil && !selector.Match(n.object) {
			q.verdict.unavailable = append(q.verdict.unavailable, i)
			continue
		}
		if one.Status.Allocation == nil {
			continue
		}
		if ready, err := readyToBind(one.ResourceClaim); err != nil || !ready && bindingTimedOut(one.ResourceClaim, a.args.bindingTimeout, now) {
			q.verdict.unavailable = append(q.verdict.unavailable, i)
		}
	}
	if !a.allocates {
		return known(q, a.conclude(&q, outcome{}))
	}
	all := a.wants(q.variant)
	everywhere := m.claims.inventory.everywhere
	if all.key != "" {
		if found, ok := m.memo.table(all.key).find(n, everywhere); ok {
			return known(q, a.conclude(&q, found))
		}
	}
	q.open = &search{wanted: all, own: *n.counter, everywhere: everywhere}
	return q
}

// wanted is the input of the allocator.
type wanted struct {
	claims []*resourceapi.ResourceClaim
	key    string // of the memo; empty: not stored
}

// wants is the same on all nodes with the same variant.
func (a *attempt) wants(v *variant) wanted {
	into := &a.plain
	if v != nil {
		into = &v.wanted
	}
	if into.claims == nil {
		*into = a.want(v)
	}
	return *into
}

func (a *attempt) want(v *variant) wanted {
	var all wanted
	var key strings.Builder
	kept := true
	for _, one := range a.claims {
		if one.Status.Allocation != nil {
			continue
		}
		if one == a.special && v != nil {
			one = v.claim
		}
		all.claims = append(all.claims, one.ResourceClaim)
		kept = kept && one.spec != ""
		key.WriteString(one.spec)
	}
	if kept {
		all.key = key.String()
	}
	return all
}

// arm gives the search an allocator. The session is locked.
func (a *attempt) arm(ctx context.Context, m *clusterCache, q *question) {
	inventory := m.claims.inventory
	if len(inventory.shared) == 0 {
		q.open.allocator, q.open.failure = structured.NewAllocator(ctx, features, a.inUse.AllocatedState, a.classes,
			inventory.slicesFor(q.node.object.Name), compiled)
		return
	}
	// Every node reads many slices of other nodes: sort them once.
	if a.whole == nil {
		a.whole, q.open.failure = structured.NewAllocator(ctx, features, a.inUse.AllocatedState, a.classes,
			slices.Collect(maps.Values(inventory.slices)), compiled)
	}
	q.open.allocator = a.whole
}

// answer runs the allocator, without a lock.
func (a *attempt) answer(ctx context.Context, q *question) {
	s := q.open
	fault := func(format string, values ...any) {
		s.key, q.verdict.rejection = "", reject(pb.Code_CODE_ERROR, format, values...)
	}
	if s.failure != nil {
		fault("%s", s.failure.Error())
		return
	}
	limited := ctx
	if a.args.filterTimeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, a.args.filterTimeout)
		defer cancel()
	}
	results, err := s.allocator.Allocate(limited, q.node.object, s.claims)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		fault("node %s: timed out trying to allocate devices", q.node.object.Name)
		return
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		s.outcome.reason = err.Error()
	case ctx.Err() != nil:
		s.key = ""
		s.outcome.reason = fmt.Sprintf("asked by caller to stop allocating devices: %v", context.Cause(ctx))
	case err != nil:
		fault("%s", err.Error())
		return
	case len(results) != len(s.claims):
		s.outcome.reason = "cannot allocate all claims"
	default:
		s.outcome.results = results
	}
	q.verdict.rejection = a.conclude(q, s.outcome)
}

var (
	unavailableThere = unresolvable("resourceclaim not available on the node")
	noDevicesThere   = unresolvable("cannot allocate all claims")
)

// conclude derives the result, in kube-scheduler's order: the allocator's failure before unavailable claims.
func (a *attempt) conclude(q *question, found outcome) *pb.PluginStatus {
	switch {
	case found.reason != "":
		q.verdict.unavailable = nil
		if found.reason == noDevicesThere.Reasons[0] {
			return noDevicesThere
		}
		return unresolvable(found.reason)
	case len(q.verdict.unavailable) > 0:
		return unavailableThere
	}
	q.verdict.allocation = nodeAllocation{results: found.results, variant: q.variant}
	return nil
}

// remember stores in the attempt what later calls need of a node's verdict. The session is locked.
func (a *attempt) remember(q *question) {
	for _, index := range q.verdict.unavailable {
		if a.unavailable == nil {
			a.unavailable = map[int]bool{}
		}
		a.unavailable[index] = true
	}
	if q.verdict.rejection == nil && q.verdict.allocation.results != nil {
		a.allocations[q.node.slot] = q.verdict.allocation
	}
}

func deviceStatus(c *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *resourceapi.AllocatedDeviceStatus {
	for i := range c.Status.Devices {
		if device := &c.Status.Devices[i]; device.Device == result.Device && device.Driver == result.Driver && device.Pool == result.Pool {
			return device
		}
	}
	return nil
}

func condition(device *resourceapi.AllocatedDeviceStatus, kind string) *metav1.Condition {
	for i := range device.Conditions {
		if device.Conditions[i].Type == kind {
			return &device.Conditions[i]
		}
	}
	return nil
}
