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

	pb "outboard.dev/contract"
)

const (
	// The shim does not accept the same wish again earlier.
	wishInterval = time.Second
	// An unfulfilled wish is dropped after this time: the pod's next attempt starts from the then current state.
	wishLifetime = time.Minute
)

// wish is a write that this host requests outside of a call, until the mirror shows it.
type wish struct {
	pod   string // uid; with `holds`, its attempts wait for the wish
	holds bool
	// look returns the remaining write; nil and true: none now, but perhaps later.
	look func(m *mirror) (*pb.Effect, bool)

	made, sent time.Time
	sentKey    string // of the last effect sent: a wish may need several
	pending    bool   // sent, but not visible in the mirror yet
}

// wishFor adds a wish, or restarts it.
func (s *session) wishFor(key string, w *wish) {
	w.made = time.Now()
	if old := s.wishes[key]; old != nil {
		w.sent, w.sentKey, w.pending = old.sent, old.sentKey, old.pending
	}
	s.wishes[key] = w
}

// pushWishes requests the unfulfilled wishes. The session is locked.
func (s *session) pushWishes() {
	now := time.Now()
	for key, w := range s.wishes {
		effect, more := w.look(s.mirror)
		w.pending = w.pending && effect != nil
		if !more || now.Sub(w.made) > wishLifetime {
			delete(s.wishes, key)
			continue
		}
		if effect == nil || effect.GetKey() == w.sentKey && now.Sub(w.sent) < wishInterval {
			continue
		}
		w.sent, w.sentKey, w.pending = now, effect.GetKey(), true
		s.outbox.put(&pb.SyncResponse{Push: &pb.SyncResponse_Effect{Effect: effect}})
	}
}

// lookAtChangedClaims runs after each message: its changes may fulfil a wish, or require it again.
func (s *session) lookAtChangedClaims() {
	for _, w := range s.wishes {
		if w.pending {
			effect, _ := w.look(s.mirror)
			w.pending = effect != nil
		}
	}
}

// held returns whether a write is pending that the pod's next attempt must not overtake.
func (s *session) held(podUID string) bool {
	for _, w := range s.wishes {
		if w.pod == podUID && w.holds && w.pending {
			return true
		}
	}
	return false
}

// dropWishes runs when the pod has a place again.
func (s *session) dropWishes(podUID string) {
	for key, w := range s.wishes {
		if w.pod == podUID {
			delete(s.wishes, key)
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
	s.wishFor(key, &wish{pod: uid, holds: true, look: func(m *mirror) (*pb.Effect, bool) {
		at, c := m.pods[uid], m.claims.byName[name]
		if c == nil || c.UID != claimUID || at != nil && at.holdsPlace() {
			return nil, false
		}
		if c.Status.Allocation == nil || !reservedFor(c, types.UID(uid)) {
			return nil, true // The mirror may be behind.
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
	s.wishFor(key, &wish{pod: uid, holds: true, look: func(m *mirror) (*pb.Effect, bool) {
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
	s.wishFor(key, &wish{pod: uid, look: func(m *mirror) (*pb.Effect, bool) {
		at, c := m.pods[uid], m.claims.extendedFor(about)
		if at == nil || at.holdsPlace() {
			return nil, false
		}
		if c == nil {
			return nil, true // The mirror may be behind.
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
	s.mirror.claims.dropInFlight(p.proto.GetUid())
	found, _ := s.mirror.claims.named(p.get())
	for _, c := range found {
		if reservedByPod := c.Status.Allocation != nil && resourceclaim.IsReservedForPod(p.get(), c.ResourceClaim, false); reservedByPod || named {
			s.unreserve(p, c)
		}
	}
	if a != nil && a.special != nil && named || s.mirror.claims.extendedFor(p.get()) != nil {
		s.removeExtended(p)
	}
	s.pushWishes()
}
