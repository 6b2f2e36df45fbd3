package main

import (
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
)

// classes are DeviceClasses by name. Immutable, so that the allocator may read them without a lock.
type classes map[string]*resourceapi.DeviceClass

// Get implements structured.DeviceClassLister.
func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}

// List implements structured.DeviceClassLister.
func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return slices.Collect(maps.Values(c)), nil
}

type poolID struct{ driver, name string }

// pool combines the slices of a pool.
type pool struct {
	slices map[string]*resourceapi.ResourceSlice
	// The allocator reads a slice of it for every node: the slice is not for a single node, or has counters.
	shared bool
	// The only node that can have its devices; empty: several, or none.
	node string
}

func (p *pool) look() {
	p.shared, p.node = false, ""
	several := false
	for _, slice := range p.slices {
		node := nodeOf(slice)
		if node == "" || len(slice.Spec.SharedCounters) > 0 {
			p.shared = true
		}
		if len(slice.Spec.SharedCounters) > 0 && len(slice.Spec.Devices) == 0 {
			continue // Matters only to pods with devices of the pool.
		}
		several = several || node == "" || p.node != "" && p.node != node
		p.node = node
	}
	if several {
		p.node = ""
	}
}

func nodeOf(slice *resourceapi.ResourceSlice) string {
	if slice.Spec.NodeName == nil {
		return ""
	}
	return *slice.Spec.NodeName
}

// inventory holds the devices: ResourceSlices and DeviceClasses. The session's lock guards it.
//
// It counts changes, so that outcomes of allocations can be cached: `everywhere` counts changes that may matter on any
// node, a node's own counter those that matter only there.
type inventory struct {
	slices   map[string]*resourceapi.ResourceSlice
	pools    map[poolID]*pool
	shared   map[poolID]*pool            // pools that every node reads
	local    map[string]map[poolID]*pool // other pools, by the nodes of their slices
	classes  classes
	extended *extendedresourcecache.ExtendedResourceCache

	everywhere uint64
	counters   map[string]*uint64
	cached     map[string][]*resourceapi.ResourceSlice // by node; dropped with each change of slices
}

func newInventory() *inventory {
	return &inventory{
		slices: map[string]*resourceapi.ResourceSlice{}, pools: map[poolID]*pool{}, shared: map[poolID]*pool{},
		local: map[string]map[poolID]*pool{}, classes: classes{}, extended: extendedresourcecache.NewExtendedResourceCache(klog.Background()),
		everywhere: 1, counters: map[string]*uint64{}, cached: map[string][]*resourceapi.ResourceSlice{},
	}
}

// counter returns the counter of changes that matter only on this node.
func (v *inventory) counter(node string) *uint64 {
	c := v.counters[node]
	if c == nil {
		c = new(uint64)
		v.counters[node] = c
	}
	return c
}

// touched counts that a device of the pool was taken or released.
func (v *inventory) touched(driver, name string) {
	if p := v.pools[poolID{driver, name}]; p != nil && p.node != "" {
		*v.counter(p.node)++
	} else {
		v.everywhere++
	}
}

func poolOf(slice *resourceapi.ResourceSlice) poolID {
	return poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// setSlice adds or replaces a slice, or removes it if nil.
func (v *inventory) setSlice(name string, slice *resourceapi.ResourceSlice) {
	old := v.slices[name]
	if old != nil {
		v.changePool(poolOf(old), func(p *pool) { delete(p.slices, name) })
		delete(v.slices, name)
	}
	if slice != nil {
		v.changePool(poolOf(slice), func(p *pool) { p.slices[name] = slice })
		v.slices[name] = slice
	}
}

func (v *inventory) changePool(id poolID, change func(*pool)) {
	p := v.pools[id]
	if p == nil {
		p = &pool{slices: map[string]*resourceapi.ResourceSlice{}}
		v.pools[id] = p
	}
	wasShared, was := p.shared, p.node
	isNew := len(p.slices) == 0
	v.forgetPlaces(id, p)
	change(p)
	p.look()
	if len(p.slices) == 0 {
		delete(v.pools, id)
	}
	v.notePlaces(id, p)
	// If the pool was and is only one node's, other nodes are not affected.
	switch {
	case wasShared || p.shared || !isNew && was == "" || len(p.slices) > 0 && p.node == "" || !isNew && len(p.slices) > 0 && was != p.node:
		v.everywhere++
		clear(v.cached)
	case p.node != "":
		*v.counter(p.node)++
		delete(v.cached, p.node)
	default:
		*v.counter(was)++
		delete(v.cached, was)
	}
}

func (v *inventory) forgetPlaces(id poolID, p *pool) {
	delete(v.shared, id)
	for _, slice := range p.slices {
		node := nodeOf(slice)
		if delete(v.local[node], id); len(v.local[node]) == 0 {
			delete(v.local, node)
		}
	}
}

func (v *inventory) notePlaces(id poolID, p *pool) {
	if p.shared {
		v.shared[id] = p
		return
	}
	for _, slice := range p.slices {
		node := nodeOf(slice)
		if v.local[node] == nil {
			v.local[node] = map[poolID]*pool{}
		}
		v.local[node][id] = p
	}
}

// slicesFor returns the slices for an allocation on the node: whole pools, since the allocator checks their
// completeness.
func (v *inventory) slicesFor(node string) []*resourceapi.ResourceSlice {
	if found, known := v.cached[node]; known {
		return found
	}
	var found []*resourceapi.ResourceSlice
	for _, pools := range []map[poolID]*pool{v.local[node], v.shared} {
		for _, p := range pools {
			found = slices.AppendSeq(found, maps.Values(p.slices))
		}
	}
	v.cached[node] = found
	return found
}

// setClass adds or replaces a class, or removes it if nil.
func (v *inventory) setClass(name string, class *resourceapi.DeviceClass) {
	old := v.classes[name]
	if old == nil && class == nil {
		return
	}
	changed := maps.Clone(v.classes)
	switch {
	case class == nil:
		delete(changed, name)
		v.extended.OnDelete(old)
	case old == nil:
		changed[name] = class
		v.extended.OnAdd(class, false)
	default:
		changed[name] = class
		v.extended.OnUpdate(old, class)
	}
	v.classes = changed
	v.everywhere++
}
