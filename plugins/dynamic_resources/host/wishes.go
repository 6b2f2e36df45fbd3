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
	// A shim does not take the same wish again sooner.
	wishInterval = time.Second
	// What did not come in this time is given up: the next attempt of the pod begins with what is true then.
	wishLifetime = time.Minute
)

// wish is something that this host wants done of its own accord, and asks for until the mirror shows it.
type wish struct {
	pod   string // uid; its attempts wait while the wish is under way, if `holds`
	holds bool
	// look returns what is still to be done; nil and true: nothing now, but perhaps later.
	look func(m *mirror) (*pb.Effect, bool)

	made, sent time.Time
	sentKey    string // of the effect that was sent last: a wish may take several
	pending    bool   // sent, and the mirror does not show it yet
}

// wishFor adds a wish, or begins it anew.
func (s *session) wishFor(key string, w *wish) {
	w.made = time.Now()
	if old := s.wishes[key]; old != nil {
		w.sent, w.sentKey, w.pending = old.sent, old.sentKey, old.pending
	}
	s.wishes[key] = w
}

// pushWishes asks for what has not come. The session is locked.
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

// lookAtChangedClaims is called when a message was applied: what changed may fulfil a wish, or need it.
func (s *session) lookAtChangedClaims() {
	for _, w := range s.wishes {
		if w.pending {
			effect, _ := w.look(s.mirror)
			w.pending = effect != nil
		}
	}
}

// held says whether something is under way that the pod's next attempt must not overtake.
func (s *session) held(podUID string) bool {
	for _, w := range s.wishes {
		if w.pod == podUID && w.holds && w.pending {
			return true
		}
	}
	return false
}

// dropWishes is called where the pod has a place again.
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
		panic(err) // Maps and strings.
	}
	return &pb.PatchObject{
		Resource: claimResource, Namespace: c.Namespace, Name: c.Name, Uid: string(c.UID), Json: string(text), Status: status,
	}
}

type object = map[string]any

// unreserve wants the pod off the claim's reservedFor, unless it gets a place after all.
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

// deallocate wants the claim to give its devices back, unless somebody else uses it by then.
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

// onlyFor says whether nobody but the pod, if anybody, uses the claim.
func onlyFor(c *claim, uid types.UID) bool {
	return len(c.Status.ReservedFor) == 0 || len(c.Status.ReservedFor) == 1 && c.Status.ReservedFor[0].UID == uid
}

// removeExtended wants the claim gone that was made for the pod's extended resources, unless the pod gets a place after all. Its finalizer first: the
// API server would keep the claim otherwise.
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

// releaseAll is Unreserve: what the pod's claims hold for it is given back.
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
