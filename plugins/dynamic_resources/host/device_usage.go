package main

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// usageState is a state of all devices. It does not change while an attempt holds it.
type usageState struct {
	structured.AllocatedState
	holders int
}

// deviceUsage records which devices are in use: by claims of the cluster cache, and by allocations in flight. The
// session's lock guards it; a state that an attempt holds may be read without the lock.
//
// kube-scheduler copies everything for each pod. Here only a change copies, and only if an attempt still holds the
// state to change: an attempt releases its state before its reservation is recorded.
type deviceUsage struct {
	now    *usageState
	counts map[structured.DeviceID]int // claims per device; more than one only after an error elsewhere
	shares map[structured.SharedDeviceID]int
	// Called for each device whose state changes.
	touched func(driver, pool string)
}

func newDeviceUsage(touched func(driver, pool string)) *deviceUsage {
	return &deviceUsage{
		now: &usageState{AllocatedState: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		}},
		counts: map[structured.DeviceID]int{}, shares: map[structured.SharedDeviceID]int{}, touched: touched,
	}
}

// acquire returns the current state; the caller must release it.
func (b *deviceUsage) acquire() *usageState {
	b.now.holders++
	return b.now
}

func (b *deviceUsage) release(l *usageState) {
	if l != nil {
		l.holders--
	}
}

func (b *deviceUsage) writable() *usageState {
	if b.now.holders > 0 {
		b.now = &usageState{AllocatedState: structured.AllocatedState{
			AllocatedDevices:         maps.Clone(b.now.AllocatedDevices),
			AllocatedSharedDeviceIDs: maps.Clone(b.now.AllocatedSharedDeviceIDs),
			AggregatedCapacity:       b.now.AggregatedCapacity.Clone(),
		}}
	}
	return b.now
}

// change adds an allocation (1) or removes it (-1). Devices with admin access are not counted.
func (b *deviceUsage) change(allocation *resourceapi.AllocationResult, by int) {
	if allocation == nil || len(allocation.Devices.Results) == 0 {
		return
	}
	state := b.writable()
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
