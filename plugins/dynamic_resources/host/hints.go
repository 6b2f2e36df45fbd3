package main

import (
	"slices"
	"sort"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pb "outboard.dev/contract/v1beta1"
)

const (
	// How many events are kept for running attempts; older ones lead to a retry.
	maxEvents = 4096
	// The maximum number of hints in a push.
	maxHints = 4096
)

// recordedEvent is an event, with its object before and after.
type recordedEvent struct {
	*pb.QueueEvent
	before, after *claim
	named         bool // the pod's claim names changed
}

// hints decide which events help which waiting pods. The session's lock guards them.
type hints struct {
	waiting map[string]*pb.UnschedulablePod
	byClaim map[string]map[string]bool // uids of waiting pods, by namespace/name of their claims
	names   map[string][]string        // the inverse
	log     []recordedEvent            // by number, increasing
	// Events before this number are forgotten.
	from uint64
}

func newHints() *hints {
	return &hints{waiting: map[string]*pb.UnschedulablePod{}, byClaim: map[string]map[string]bool{}, names: map[string][]string{}}
}

// take handles a message's waiting pods and events after the cluster cache has applied it. It returns the pushes to
// send.
func (h *hints) take(m *clusterCache, request *pb.SyncRequest) []*pb.SyncResponse {
	if request.GetPhase() != pb.SyncRequest_PHASE_DELTA {
		*h = *newHints() // A snapshot ends all waits.
		return nil
	}
	var found []*pb.QueueHint
	for uid := range m.renamed {
		if h.waiting[uid] != nil {
			h.index(uid, m.pods[uid])
		}
	}
	for _, uid := range request.GetRemovedUnschedulablePodUids() {
		h.forget(uid)
	}
	for _, pod := range request.GetUnschedulablePods() {
		h.forget(pod.GetUid())
		if !slices.Contains(pod.GetRejectedBy(), pluginName) && !slices.Contains(pod.GetPendingBy(), pluginName) || m.pods[pod.GetUid()] == nil {
			continue
		}
		h.waiting[pod.GetUid()] = pod
		h.index(pod.GetUid(), m.pods[pod.GetUid()])
		found = h.catchUp(m, pod, found)
	}
	for _, sent := range request.GetEvents() {
		event := recordedEvent{QueueEvent: sent, named: m.renamed[sent.GetPodUid()]}
		if object := sent.GetObject(); object.GetKind() == claimResource {
			name := object.GetNamespace() + "/" + object.GetName()
			event.after = m.claims.byName[name]
			if before, changed := m.before[name]; changed {
				event.before = before
			} else {
				event.before = event.after
			}
		}
		found = h.evaluate(m, event, found)
		h.log = append(h.log, event)
	}
	h.trim(request.GetEventsNeededFrom())
	var pushes []*pb.SyncResponse
	for some := range slices.Chunk(found, maxHints) {
		pushes = append(pushes, &pb.SyncResponse{Push: &pb.SyncResponse_QueueHints{QueueHints: &pb.QueueHints{Hints: some}}})
	}
	return pushes
}

func (h *hints) trim(neededFrom uint64) {
	if over := len(h.log) - maxEvents; over > 0 {
		neededFrom = max(neededFrom, h.log[over].GetNumber())
	}
	if neededFrom <= h.from {
		return
	}
	h.from = neededFrom
	first := sort.Search(len(h.log), func(i int) bool { return h.log[i].GetNumber() >= neededFrom })
	h.log = slices.Clone(h.log[first:])
}

func (h *hints) index(uid string, p *pod) {
	h.unindex(uid)
	if p == nil {
		return
	}
	for _, named := range p.proto.GetClaims() {
		name := named.GetClaimName()
		if name == "" {
			name = named.GetMadeClaimName()
		}
		if name == "" {
			continue
		}
		name = p.proto.GetNamespace() + "/" + name
		if h.byClaim[name] == nil {
			h.byClaim[name] = map[string]bool{}
		}
		h.byClaim[name][uid] = true
		h.names[uid] = append(h.names[uid], name)
	}
}

func (h *hints) unindex(uid string) {
	for _, name := range h.names[uid] {
		if delete(h.byClaim[name], uid); len(h.byClaim[name]) == 0 {
			delete(h.byClaim, name)
		}
	}
	delete(h.names, uid)
}

func (h *hints) forget(uid string) {
	delete(h.waiting, uid)
	h.unindex(uid)
}

// catchUp checks the events during the last attempt of a pod that now waits.
func (h *hints) catchUp(m *clusterCache, pod *pb.UnschedulablePod, found []*pb.QueueHint) []*pb.QueueHint {
	if pod.GetSince() < h.from {
		h.forget(pod.GetUid())
		return append(found, &pb.QueueHint{Uid: pod.GetUid(), Plugin: pluginName})
	}
	first := sort.Search(len(h.log), func(i int) bool { return h.log[i].GetNumber() >= pod.GetSince() })
	for _, event := range h.log[first:] {
		if h.helps(m, pod.GetUid(), event) {
			return h.hint(pod.GetUid(), event, found)
		}
	}
	return found
}

// evaluate finds the waiting pods that an event helps.
func (h *hints) evaluate(m *clusterCache, event recordedEvent, found []*pb.QueueHint) []*pb.QueueHint {
	candidates := func(yield func(string) bool) {
		for uid := range h.waiting {
			if !yield(uid) {
				return
			}
		}
	}
	if event.after != nil && !event.deallocates() {
		// Matters only to pods that name the claim.
		candidates = func(yield func(string) bool) {
			for uid := range h.byClaim[event.after.Namespace+"/"+event.after.Name] {
				if !yield(uid) {
					return
				}
			}
		}
	} else if uid := event.GetPodUid(); uid != "" {
		candidates = func(yield func(string) bool) { yield(uid) }
	}
	var helped []string
	for uid := range candidates {
		if pod := h.waiting[uid]; pod != nil && pod.GetSince() <= event.GetNumber() && h.helps(m, uid, event) {
			helped = append(helped, uid)
		}
	}
	slices.Sort(helped)
	for _, uid := range helped {
		found = h.hint(uid, event, found)
	}
	return found
}

func (h *hints) hint(uid string, event recordedEvent, found []*pb.QueueHint) []*pb.QueueHint {
	h.forget(uid)
	return append(found, &pb.QueueHint{Uid: uid, Plugin: pluginName, Event: event.GetEvent(), Number: event.GetNumber()})
}

// deallocates returns whether the claim released devices.
func (e recordedEvent) deallocates() bool {
	return e.before != nil && e.before.UID == e.after.UID && e.before.Status.Allocation != nil && e.after.Status.Allocation == nil
}

// helps applies kube-scheduler's queueing hints.
func (h *hints) helps(m *clusterCache, uid string, event recordedEvent) bool {
	p := m.pods[uid]
	if p == nil {
		return false
	}
	switch resource := event.GetEvent().GetResource(); {
	case event.GetPodUid() != "":
		if event.GetPodUid() != uid || !event.named {
			return false
		}
		_, err := m.claims.of(p.get())
		return err == nil
	case resource == claimResource:
		if event.after == nil {
			// kube-scheduler removes the claim during the attempt; here a retry may come before the removal.
			return event.before != nil && metav1.IsControlledBy(event.before.ResourceClaim, p.get())
		}
		return h.claimHelps(m, p, event)
	default: // A node, a slice or a class.
		return true
	}
}

func (h *hints) claimHelps(m *clusterCache, p *pod, event recordedEvent) bool {
	found, err := m.claims.of(p.get())
	if err != nil {
		return false // It waits for another claim as well.
	}
	if event.deallocates() {
		return true
	}
	if !slices.ContainsFunc(found, func(c *claim) bool { return c.UID == event.after.UID }) {
		return false
	}
	// Without a change of the status (for example only of the driver's finalizer), nothing changes for the pod.
	return event.before == nil || event.before.UID != event.after.UID || !sameStatus(&event.before.Status, &event.after.Status)
}

func sameStatus(x, y *resourceapi.ResourceClaimStatus) bool {
	return apiequality.Semantic.DeepEqual(x, y)
}
