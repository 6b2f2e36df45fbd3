package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	kjson "sigs.k8s.io/json"

	pb "outboard.dev/contract/v1beta1"
)

// Resources of Kubernetes' own that the shim forwards unchanged.
const (
	claimResource = "resourceclaims.v1.resource.k8s.io"
	sliceResource = "resourceslices.v1.resource.k8s.io"
	classResource = "deviceclasses.v1.resource.k8s.io"
)

// claim of the cluster cache. Immutable.
type claim struct {
	*resourceapi.ResourceClaim
	spec string // identifies its spec
}

// decode parses an object as Kubernetes parses JSON; nil for kinds unknown to this host. Needs no lock.
func decode(from *pb.GenericObject) (any, error) {
	switch from.GetResource() {
	case claimResource:
		c := &claim{ResourceClaim: &resourceapi.ResourceClaim{}}
		if err := read(from, c.ResourceClaim); err != nil {
			return nil, err
		}
		// The shim's names are authoritative.
		c.Namespace, c.Name = from.GetNamespace(), from.GetName()
		if c.UID == "" {
			return nil, errors.New("metadata.uid is missing")
		}
		setDefaults(&c.Spec)
		c.spec = specKey(&c.Spec)
		return c, nil
	case sliceResource:
		slice := &resourceapi.ResourceSlice{}
		if err := read(from, slice); err != nil {
			return nil, err
		}
		slice.Name = from.GetName()
		return slice, nil
	case classResource:
		class := &resourceapi.DeviceClass{}
		if err := read(from, class); err != nil {
			return nil, err
		}
		class.Name = from.GetName()
		return class, nil
	}
	return nil, nil
}

// setDefaults sets the API server's defaults: objects from manifests lack them.
func setDefaults(spec *resourceapi.ResourceClaimSpec) {
	one := func(mode *resourceapi.DeviceAllocationMode, count *int64, tolerations []resourceapi.DeviceToleration) {
		for i := range tolerations {
			if tolerations[i].Operator == "" {
				tolerations[i].Operator = resourceapi.DeviceTolerationOpEqual
			}
		}
		if *mode == "" {
			*mode = resourceapi.DeviceAllocationModeExactCount
		}
		if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
			*count = 1
		}
	}
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			one(&request.Exactly.AllocationMode, &request.Exactly.Count, request.Exactly.Tolerations)
		}
		for j := range request.FirstAvailable {
			one(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count, request.FirstAvailable[j].Tolerations)
		}
	}
}

func read(from *pb.GenericObject, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts([]byte(from.GetJson()), into)
}

// decodeAll decodes the objects of a message: entry i belongs to change i; nil: no object. It runs before the session
// is locked, since it takes long.
func decodeAll(request *pb.SyncRequest, warn *warnings) []any {
	decoded := make([]any, len(request.GetChanges()))
	for i, change := range request.GetChanges() {
		from := change.GetObjectUpsert().GetGenericObject()
		if from == nil {
			continue
		}
		object, err := decode(from)
		if err != nil {
			// Counts as absent: kube-scheduler's client would not accept it either.
			warn.about(from.GetResource(), from.GetNamespace(), from.GetName(), from.GetUid(), err)
			continue
		}
		decoded[i] = object
	}
	return decoded
}

// setObject adds or replaces an object, or removes it if nil.
func (m *clusterCache) setObject(resource, namespace, name string, object any) {
	switch resource {
	case claimResource:
		made, _ := object.(*claim)
		name := namespace + "/" + name
		if _, seen := m.before[name]; !seen {
			m.before[name] = m.claims.byName[name]
		}
		m.claims.set(name, made)
	case sliceResource:
		slice, _ := object.(*resourceapi.ResourceSlice)
		m.claims.inventory.setSlice(name, slice)
	case classResource:
		class, _ := object.(*resourceapi.DeviceClass)
		m.claims.inventory.setClass(name, class)
	}
}

// warnings logs each kind of warning once, so that repetitions do not fill the log. Thread-safe.
type warnings struct {
	mu    sync.Mutex
	given map[string]bool
}

// How many warnings are remembered; then it starts over.
const maxWarnings = 4096

func newWarnings() *warnings { return &warnings{given: map[string]bool{}} }

// isNew returns whether the key's warning was not given yet.
func (w *warnings) isNew(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.given[key] {
		return false
	}
	if len(w.given) >= maxWarnings {
		clear(w.given)
	}
	w.given[key] = true
	return true
}

// about logs an object that cannot be read, once per object.
func (w *warnings) about(kind, namespace, name, uid string, err error) {
	if w.isNew(kind + "/" + uid) {
		slog.Warn("object ignored: malformed", "kind", kind, "object", fmt.Sprintf("%s/%s", namespace, name), "uid", uid, "error", err)
	}
}

// aboutWrite logs a background write that was not carried out, once per purpose of the write and outcome.
func (w *warnings) aboutWrite(effect *pb.Effect, result *pb.PushResult) {
	var object interface {
		GetResource() string
		GetNamespace() string
		GetName() string
	} = effect.GetPatchObject()
	if effect.GetDeleteObject() != nil {
		object = effect.GetDeleteObject()
	}
	purpose, _, _ := strings.Cut(effect.GetKey(), "-")
	if w.isNew("write/" + purpose + "/" + result.GetOutcome().String()) {
		slog.Warn("background write not carried out; it is requested again for up to a minute while it is needed",
			"purpose", purpose, "kind", object.GetResource(), "object", object.GetNamespace()+"/"+object.GetName(),
			"outcome", strings.TrimPrefix(result.GetOutcome().String(), "OUTCOME_"), "error", result.GetMessage())
	}
}
