package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

var claimResource = resourcev1.Resource("resourceclaims")

// claimServer is the part of an API server that the plugin for claims writes to. The informer gets stored objects at
// once.
//
// Threading: the plugin writes from the goroutine that runs it.
type claimServer struct {
	claims  *still
	version int64
	// written are the claims stored since the last call of takeWritten, by name, with their newest version; nil if
	// deleted.
	written map[string]*resourcev1.ResourceClaim
	// allocated are the previous allocations of these claims.
	allocated map[string]*resourcev1.AllocationResult
}

func (r *run) serveClaims() error {
	informer := r.informers.Resource().V1().ResourceClaims().Informer()
	claims, ok := informer.(*still)
	if !ok {
		return fmt.Errorf("the informer for claims is a %T", informer)
	}
	r.claims = &claimServer{claims: claims, version: 1_000_000}
	r.claims.takeWritten()
	r.client.AddReactor("*", claimResource.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, err := r.claims.serve(action)
		return true, object, err
	})
	return nil
}

func (s *claimServer) serve(action clienttesting.Action) (runtime.Object, error) {
	switch action := action.(type) {
	case clienttesting.CreateAction:
		// In Go an update is also one of these.
		claim, ok := action.GetObject().(*resourcev1.ResourceClaim)
		if !ok {
			return nil, fmt.Errorf("unexpected type of a claim: %T", action.GetObject())
		}
		if action.GetVerb() == "create" {
			return s.create(claim.DeepCopy())
		}
		return s.update(claim.DeepCopy(), action.GetSubresource() == "status")
	case clienttesting.PatchAction:
		return s.patch(action)
	case clienttesting.DeleteAction:
		before, err := s.get(action.GetNamespace(), action.GetName())
		if err != nil {
			return nil, err
		}
		s.written[key(before)] = nil
		return before, s.claims.remove(before)
	case clienttesting.GetAction:
		return s.get(action.GetNamespace(), action.GetName())
	}
	return nil, fmt.Errorf("claims are not served for %T", action)
}

func key(object Object) string { return object.GetNamespace() + "/" + object.GetName() }

func (s *claimServer) get(namespace, name string) (*resourcev1.ResourceClaim, error) {
	found, ok, err := s.claims.GetIndexer().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil, apierrors.NewNotFound(claimResource, name)
	}
	return found.(*resourcev1.ResourceClaim).DeepCopy(), nil
}

func (s *claimServer) create(claim *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	if claim.Name == "" {
		claim.Name = claim.GenerateName + strconv.FormatInt(s.version, 10)
	}
	claim.UID = types.UID("uid-" + key(claim))
	return s.keep(claim)
}

func (s *claimServer) update(claim *resourcev1.ResourceClaim, status bool) (*resourcev1.ResourceClaim, error) {
	before, err := s.get(claim.Namespace, claim.Name)
	if err != nil {
		return nil, err
	}
	if claim.ResourceVersion != before.ResourceVersion || claim.UID != before.UID {
		return nil, apierrors.NewConflict(claimResource, claim.Name, fmt.Errorf("version %s is stored, not %s", before.ResourceVersion, claim.ResourceVersion))
	}
	if status {
		before.Status = claim.Status
		return s.keep(before)
	}
	claim.Status = before.Status
	return s.keep(claim)
}

func (s *claimServer) patch(action clienttesting.PatchAction) (*resourcev1.ResourceClaim, error) {
	before, err := s.get(action.GetNamespace(), action.GetName())
	if err != nil {
		return nil, err
	}
	if action.GetPatchType() != types.StrategicMergePatchType || action.GetSubresource() != "status" {
		return nil, fmt.Errorf("claims are not served for a %s of %q", action.GetPatchType(), action.GetSubresource())
	}
	data, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	if data, err = strategicpatch.StrategicMergePatch(data, action.GetPatch(), before); err != nil {
		return nil, err
	}
	after := &resourcev1.ResourceClaim{}
	if err := json.Unmarshal(data, after); err != nil {
		return nil, err
	}
	before.Status = after.Status
	return s.keep(before)
}

func (s *claimServer) keep(claim *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	s.version++
	claim.ResourceVersion = strconv.FormatInt(s.version, 10)
	if _, seen := s.written[key(claim)]; !seen {
		if before, err := s.get(claim.Namespace, claim.Name); err == nil {
			s.allocated[key(claim)] = before.Status.Allocation
		}
	}
	s.written[key(claim)] = claim
	return claim.DeepCopy(), s.claims.put(claim)
}

// takeWritten returns the claims written since the last call, and their previous allocations.
func (s *claimServer) takeWritten() (written map[string]*resourcev1.ResourceClaim, allocated map[string]*resourcev1.AllocationResult) {
	written, allocated = s.written, s.allocated
	s.written, s.allocated = map[string]*resourcev1.ResourceClaim{}, map[string]*resourcev1.AllocationResult{}
	return written, allocated
}

// bindClaims does the binding cycle's work for claims before the next pod's attempt, and records the outcome in the
// verdict. kube-scheduler does it concurrently with the next cycles; a pod that shares a claim then gets the message
// that it "is in the process of being allocated".
func (r *run) bindClaims(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod, verdict *Verdict) *fwk.Status {
	for _, plugin := range profile.PreEnqueuePlugins() {
		binder, ok := plugin.(fwk.PreBindPlugin)
		if !ok || plugin.Name() != names.DynamicResources {
			continue
		}
		_, status := binder.PreBindPreFlight(ctx, state, pod, verdict.Node)
		if status.IsSkip() {
			return nil
		}
		if status.IsSuccess() {
			status = binder.PreBind(ctx, state, pod, verdict.Node)
		}
		if !status.IsSuccess() {
			return status
		}
	}
	return nil
}

// recordClaims records the claims that changed for this pod in the verdict.
func (r *run) recordClaims(pod *v1.Pod, verdict *Verdict) error {
	written, allocated := r.claims.takeWritten()
	for name, claim := range written {
		outcome := ClaimOutcome{Name: name}
		if claim != nil {
			if claim.GenerateName != "" && claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
				outcome.Name = ExtendedResourceClaim
			}
			for _, consumer := range claim.Status.ReservedFor {
				outcome.Reserved = outcome.Reserved || consumer.UID == pod.UID
			}
			var err error
			if outcome.Allocation, err = CanonicalAllocation(claim.Status.Allocation); err != nil {
				return err
			}
			before, err := CanonicalAllocation(allocated[name])
			if err != nil {
				return err
			}
			if before == outcome.Allocation {
				outcome.Allocation = "" // It was only reserved.
			}
		}
		verdict.Claims = append(verdict.Claims, outcome)
	}
	sortClaims(verdict.Claims)
	return nil
}

// hasVolumeClaims: the pod names a volume claim.
func hasVolumeClaims(pod *v1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil || volume.Ephemeral != nil {
			return true
		}
	}
	return false
}

// nextVersion numbers objects of manifests without a version, as an API server would, because the cache for claims
// compares versions.
func nextVersion(object Object, count int) error {
	accessor, err := meta.Accessor(object)
	if err == nil && accessor.GetResourceVersion() == "" {
		accessor.SetResourceVersion(strconv.Itoa(count + 1))
	}
	return err
}
