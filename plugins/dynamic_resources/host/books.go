package main

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// loan is the state of all devices as an attempt sees it: it does not change while anybody holds it.
type loan struct {
	structured.AllocatedState
	holders int
}

// books say which devices are taken, by claims in the mirror and by allocations in flight. The session's lock guards them; what is on loan may be
// read without it.
//
// kube-scheduler copies everything for each pod. Here a change copies, and only where an attempt still looks at what it would change: an attempt
// gives its loan back before what it reserved is entered.
type books struct {
	now    *loan
	counts map[structured.DeviceID]int // how many claims have the device; more than one only if somebody made a mistake
	shares map[structured.SharedDeviceID]int
	// Told of each device whose state changes.
	touched func(driver, pool string)
}

func newBooks(touched func(driver, pool string)) *books {
	return &books{
		now: &loan{AllocatedState: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		}},
		counts: map[structured.DeviceID]int{}, shares: map[structured.SharedDeviceID]int{}, touched: touched,
	}
}

// borrow returns what is true now; the caller gives it back.
func (b *books) borrow() *loan {
	b.now.holders++
	return b.now
}

func (b *books) giveBack(l *loan) {
	if l != nil {
		l.holders--
	}
}

func (b *books) changeable() *loan {
	if b.now.holders > 0 {
		b.now = &loan{AllocatedState: structured.AllocatedState{
			AllocatedDevices:         maps.Clone(b.now.AllocatedDevices),
			AllocatedSharedDeviceIDs: maps.Clone(b.now.AllocatedSharedDeviceIDs),
			AggregatedCapacity:       b.now.AggregatedCapacity.Clone(),
		}}
	}
	return b.now
}

// change enters an allocation (by 1) or takes it out (by -1). Devices with admin access are nobody's.
func (b *books) change(allocation *resourceapi.AllocationResult, by int) {
	if allocation == nil || len(allocation.Devices.Results) == 0 {
		return
	}
	state := b.changeable()
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		if result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		b.touched(result.Driver, result.Pool)
		device := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if result.ShareID == nil {
			if b.counts[device] += by; b.counts[device] > 0 {
				state.AllocatedDevices.Insert(device)
			} else {
				delete(b.counts, device)
				state.AllocatedDevices.Delete(device)
			}
			continue
		}
		share := structured.MakeSharedDeviceID(device, result.ShareID)
		if b.shares[share] += by; b.shares[share] > 0 {
			state.AllocatedSharedDeviceIDs.Insert(share)
		} else {
			delete(b.shares, share)
			state.AllocatedSharedDeviceIDs.Delete(share)
		}
		if result.ConsumedCapacity == nil {
			continue
		}
		consumed := structured.NewDeviceConsumedCapacity(device, result.ConsumedCapacity)
		if by > 0 {
			state.AggregatedCapacity.Insert(consumed)
		} else {
			state.AggregatedCapacity.Remove(consumed)
		}
	}
}
