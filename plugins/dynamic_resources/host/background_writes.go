package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	pb "outboard.dev/contract/v1beta1"
)

const (
	// The shim does not accept the same write again earlier.
	writeInterval = time.Second
	// An unfinished write is dropped after this time. The pod's next attempt starts from the current state.
	writeLifetime = time.Minute
	// How many pushes may wait for a PushResult. Further ones ask for none, in case that the shim sends none.
	maxPushed = 4096
)

// backgroundWrite is a write that this host requests outside of a call, until the cluster cache shows it.
type backgroundWrite struct {
	pod    string // uid; with `blocks`, its attempts wait for the write
	blocks bool
	// next returns the remaining write; nil and true: none now, but perhaps later.
	next func(m *clusterCache) (*pb.Effect, bool)

	made, sent time.Time
	sentKey    string // of the last effect sent: a write may need several
	pending    bool   // sent, but not visible in the cluster cache yet
}

// requestWrite adds a write, or restarts it.
func (s *session) requestWrite(key string, w *backgroundWrite) {
	w.made = time.Now()
	if old := s.writes[key]; old != nil {
		w.sent, w.sentKey, w.pending = old.sent, old.sentKey, old.pending
	}
	s.writes[key] = w
}

// pushWrites requests the unfinished writes. The session is locked.
func (s *session) pushWrites() {
	now := time.Now()
	for key, w := range s.writes {
		effect, more := w.next(s.cache)
		w.pending = w.pending && effect != nil
		if !more || now.Sub(w.made) > writeLifetime {
			delete(s.writes, key)
			continue
		}
		if effect == nil || effect.GetKey() == w.sentKey && now.Sub(w.sent) < writeInterval {
			continue
		}
		w.sent, w.sentKey, w.pending = now, effect.GetKey(), true
		push := &pb.SyncResponse{Push: &pb.SyncResponse_Effect{Effect: effect}}
		if len(s.pushed) < maxPushed {
			s.lastPush++
			push.PushId = s.lastPush
			s.pushed[push.PushId] = effect
		}
		s.outbox.put(push)
	}
}

// takePushResults counts what became of writes, and logs those that the shim did not carry out. SUPERSEDED is normal: a
// write that takes longer than writeInterval is requested again.
func (s *session) takePushResults(results []*pb.PushResult, warn *warnings) {
	for _, result := range results {
		effect := s.pushed[result.GetPushId()]
		delete(s.pushed, result.GetPushId())
		if effect == nil {
			continue
		}
		s.metrics.wrote(result)
		if outcome := result.GetOutcome(); outcome != pb.PushResult_OUTCOME_APPLIED && outcome != pb.PushResult_OUTCOME_SUPERSEDED {
			warn.aboutWrite(effect, result)
		}
	}
}

// checkPendingWrites runs after each message: its changes may show a write, or require it again.
func (s *session) checkPendingWrites() {
	for _, w := range s.writes {
		if w.pending {
			effect, _ := w.next(s.cache)
			w.pending = effect != nil
		}
	}
}

// hasPendingWrite returns whether a write is pending that the pod's next attempt must not overtake.
func (s *session) hasPendingWrite(podUID string) bool {
	for _, w := range s.writes {
		if w.pod == podUID && w.blocks && w.pending {
			return true
		}
	}
	return false
}

// dropWrites runs when the pod has a place again.
func (s *session) dropWrites(podUID string) {
	for key, w := range s.writes {
		if w.pod == podUID {
			delete(s.writes, key)
		}
	}
}

func keyOf(what string, parts ...string) string {
	sum := fnv.New64a()
	for _, part := range parts {
		sum.Write([]byte(part + "\n"))
	}
	return fmt.Sprintf("%s-%016x", what, sum.Sum64())
}

func patchOf(c *claim, status bool, patch any) *pb.PatchObject {
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // Marshals only maps and strings.
	}
	return &pb.PatchObject{
		Resource: claimResource, Namespace: c.Namespace, Name: c.Name, Uid: string(c.UID), Json: string(text), Status: status,
	}
}

type object = map[string]any

// unreserve removes the pod from the claim's reservedFor, unless it gets a place first.
func (s *session) unreserve(p *pod, named *claim) {
	uid, name, claimUID := p.proto.GetUid(), named.Namespace+"/"+named.Name, named.UID
	key := keyOf("unreserve", uid, string(claimUID))
	s.requestWrite(key, &backgroundWrite{pod: uid, blocks: true, next: func(m *clusterCache) (*pb.Effect, bool) {
		at, c := m.pods[uid], m.claims.byName[name]
		if c == nil || c.UID != claimUID || at != nil && at.holdsPlace() {
			return nil, false
		}
		if c.Status.Allocation == nil || !reservedFor(c, types.UID(uid)) {
			return nil, true // The cluster cache may be behind.
		}
		patch := patchOf(c, true, object{"status": object{"reservedFor": []any{object{"$patch": "delete", "uid": uid}}}})
		return &pb.Effect{Key: key, Plugin: pluginName, Action: &pb.Effect_PatchObject{PatchObject: patch}}, true
	}})
}

func reservedFor(c *claim, uid types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(consumer resourceapi.ResourceClaimConsumerReference) bool { return consumer.UID == uid })
}

// deallocate releases the claim's devices, unless another pod uses it by then.
func (s *session) deallocate(p *pod, named *claim) {
	uid, name, claimUID := p.proto.GetUid(), named.Namespace+"/"+named.Name, named.UID
	key := keyOf("deallocate", string(claimUID))
	s.requestWrite(key, &backgroundWrite{pod: uid, blocks: true, next: func(m *clusterCache) (*pb.Effect, bool) {
		c := m.claims.byName[name]
		if c == nil || c.UID != claimUID || c.Status.Allocation == nil || !onlyFor(c, types.UID(uid)) {
			return nil, false
		}
		patch := patchOf(c, true, object{"status": object{"allocation": nil, "reservedFor": nil, "devices": nil}})
		patch.ResourceVersion = c.ResourceVersion
		return &pb.Effect{Key: key, Plugin: pluginName, Action: &pb.Effect_PatchObject{PatchObject: patch}}, true
	}})
}

// onlyFor returns whether the claim is used by no pod other than this one.
func onlyFor(c *claim, uid types.UID) bool {
	return len(c.Status.ReservedFor) == 0 || len(c.Status.ReservedFor) == 1 && c.Status.ReservedFor[0].UID == uid
}

// removeExtended deletes the claim for the pod's extended resources, unless the pod gets a place first. It removes the
// finalizer first: otherwise the API server would keep the claim.
func (s *session) removeExtended(p *pod) {
	uid, about := p.proto.GetUid(), p.get()
	key := keyOf("remove", uid)
	s.requestWrite(key, &backgroundWrite{pod: uid, next: func(m *clusterCache) (*pb.Effect, bool) {
		at, c := m.pods[uid], m.claims.extendedFor(about)
		if at == nil || at.holdsPlace() {
			return nil, false
		}
		if c == nil {
			return nil, true // The cluster cache may be behind.
		}
		if slices.Contains(c.Finalizers, resourceapi.Finalizer) {
			patch := patchOf(c, false, object{"metadata": object{"$deleteFromPrimitiveList/finalizers": []string{resourceapi.Finalizer}}})
			return &pb.Effect{Key: keyOf("release", uid), Plugin: pluginName, Action: &pb.Effect_PatchObject{PatchObject: patch}}, true
		}
		if c.DeletionTimestamp != nil {
			return nil, true
		}
		return &pb.Effect{Key: key, Plugin: pluginName, Action: &pb.Effect_DeleteObject{DeleteObject: &pb.DeleteObject{
			Resource: claimResource, Namespace: c.Namespace, Name: c.Name, Uid: string(c.UID), ResourceVersion: c.ResourceVersion,
		}}}, true
	}})
}

// releaseAll is Unreserve: it releases what the pod's claims hold for it.
func (s *session) releaseAll(p *pod, a *attempt) {
	named := a != nil && len(a.effects) > 0
	s.cache.claims.dropInFlight(p.proto.GetUid())
	found, _ := s.cache.claims.named(p.get())
	for _, c := range found {
		if reservedByPod := c.Status.Allocation != nil && resourceclaim.IsReservedForPod(p.get(), c.ResourceClaim, false); reservedByPod || named {
			s.unreserve(p, c)
		}
	}
	if a != nil && a.special != nil && named || s.cache.claims.extendedFor(p.get()) != nil {
		s.removeExtended(p)
	}
	s.pushWrites()
}
