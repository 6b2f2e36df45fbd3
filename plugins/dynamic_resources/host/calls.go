package main

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	pb "outboard.dev/contract"
)

// How many pods a call may name.
const maxPods = 4096

// PreEnqueue keeps pods out of the queue whose claims cannot be used.
func (h *host) PreEnqueue(ctx context.Context, request *pb.PreEnqueueRequest) (*pb.PreEnqueueResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), atLeast)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.mayAskAbout(h, request.GetHeader(), request.GetPodUids()); err != nil {
		return nil, err
	}
	response := &pb.PreEnqueueResponse{}
	for _, uid := range request.GetPodUids() {
		verdict := &pb.PluginStatus{}
		if _, err := s.mirror.claims.of(s.mirror.pods[uid].get()); err != nil {
			verdict = unresolvable(err.Error())
		}
		response.Verdicts = append(response.Verdicts, verdict)
	}
	return response, nil
}

func (s *session) mayAskAbout(h *host, header *pb.CallHeader, uids []string) error {
	if _, err := s.args(header); err != nil {
		return err
	}
	if h.draining.Load() {
		return fail(pb.CallError_DRAINING, "the host is about to exit")
	}
	if len(uids) > maxPods {
		return fail(pb.CallError_INVALID, fmt.Sprintf("%d pods", len(uids)))
	}
	for _, uid := range uids {
		if _, err := s.pod(uid); err != nil {
			return err
		}
	}
	return nil
}

// Sign says that pods with claims are like no other, as in kube-scheduler, and those whose resources a DeviceClass may stand for, now or later. To all
// others this plugin has nothing to say, so they are alike.
func (h *host) Sign(ctx context.Context, request *pb.SignRequest) (*pb.SignResponse, error) {
	header := request.GetHeader()
	s, leave, err := h.enter(ctx, &pb.CallHeader{SessionId: header.GetSessionId(), HostInstance: header.GetHostInstance()}, atLeast)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.mayAskAbout(h, header, request.GetPodUids()); err != nil {
		return nil, err
	}
	response := &pb.SignResponse{}
	for _, uid := range request.GetPodUids() {
		signature := []byte("no claims")
		if p := s.mirror.pods[uid].proto; len(p.GetClaims()) > 0 || namesExtendedResources(p) {
			signature = nil
		}
		response.Signatures = append(response.Signatures, signature)
	}
	return response, nil
}

// PreFilter begins an attempt.
func (h *host) PreFilter(ctx context.Context, request *pb.PreFilterRequest) (*pb.PreFilterResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	with, err := s.args(request.GetHeader())
	if err != nil {
		return nil, err
	}
	if err := h.takesAttempts(s); err != nil {
		return nil, err
	}
	id := request.GetHeader().GetAttemptId()
	if id == 0 {
		return nil, fail(pb.CallError_INVALID, "attempt_id is required")
	}
	p, err := s.pod(request.GetPodUid())
	if err != nil {
		return nil, err
	}
	s.end(id)
	if !p.holdsPlace() {
		// Of a Reserve of which nobody heard that it was given back.
		s.mirror.claims.dropInFlight(request.GetPodUid())
	}
	a, rejection := begin(s.mirror.claims, request.GetPodUid(), p.get(), with)
	if rejection == nil && len(a.claims) > 0 && s.held(request.GetPodUid()) {
		// What the API server is about to be told must not come after what this attempt would tell it. The claim's change wakes the pod.
		a.close(s.mirror.claims)
		a.claims, a.allocates, rejection = nil, false, unresolvable("the pod's resource claims are being released")
	}
	s.attempts[id] = a
	if rejection != nil {
		a.close(s.mirror.claims)
		return &pb.PreFilterResponse{Rejection: failing(`PreFilter plugin "`+pluginName+`"`, rejection), RejectedBy: []string{pluginName}}, nil
	}
	return &pb.PreFilterResponse{}, nil
}

// PostFilter looks for a claim of the pod that could be allocated anew.
func (h *host) PostFilter(ctx context.Context, request *pb.PostFilterRequest) (*pb.PostFilterResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	a, err := s.attempt(request.GetHeader())
	if err != nil {
		return nil, err
	}
	p, err := s.pod(a.podUID)
	if err != nil {
		return nil, err
	}
	return &pb.PostFilterResponse{Rejection: reject(pb.Code_UNSCHEDULABLE, "%s", s.makeRoomFor(p, a))}, nil
}

// nothingToDeallocate is said of pods without claims, of most of which the host never hears.
const nothingToDeallocate = "no new claims to deallocate"

// makeRoomFor has a claim of the pod deallocated that nodes could not use; it says what was done, in kube-scheduler's words. That one picks among several
// at random, this takes the first.
func (s *session) makeRoomFor(p *pod, a *attempt) string {
	if len(a.claims) == 0 {
		return nothingToDeallocate
	}
	for i, c := range a.claims {
		if !a.unavailable[i] || c == a.special || !onlyFor(c, a.pod.UID) {
			continue
		}
		s.deallocate(p, c)
		s.pushWishes()
		return "deallocation of ResourceClaim completed"
	}
	if a.special != nil && !a.fresh {
		s.removeExtended(p)
		s.pushWishes()
		return "deletion of ResourceClaim completed"
	}
	return "still not schedulable"
}

// PreScore has nothing to prepare.
func (h *host) PreScore(ctx context.Context, request *pb.PreScoreRequest) (*pb.PreScoreResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, err := s.attempt(request.GetHeader()); err != nil {
		return nil, err
	}
	if _, err := s.nodes(request.GetNodes()); err != nil {
		return nil, err
	}
	return &pb.PreScoreResponse{}, nil
}

// Score prefers nodes that have what a request with alternatives names first.
func (h *host) Score(ctx context.Context, request *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	a, err := s.attempt(request.GetHeader())
	if err != nil {
		return nil, err
	}
	nodes, err := s.nodes(request.GetNodes())
	if err != nil {
		return nil, err
	}
	raw := make([]int64, len(nodes))
	most := int64(0)
	if alternatives(a.claims) {
		for i, n := range nodes {
			raw[i] = a.score(n)
			most = max(most, raw[i])
		}
	}
	plugin := &pb.PluginScores{Plugin: pluginName, Scores: make([]byte, len(nodes))}
	for i, score := range raw {
		if most > 0 {
			plugin.Scores[i] = byte(100 * score / most)
		}
		if request.GetExplain() {
			plugin.Terms = append(plugin.Terms, &pb.ScoreTerms{Terms: []*pb.ScoreTerm{{Name: "alternatives", Value: float64(score)}}})
		}
	}
	return &pb.ScoreResponse{Plugins: []*pb.PluginScores{plugin}}, nil
}

// alternatives says whether any claim has a request with alternatives: nothing else has a score.
func alternatives(claims []*claim) bool {
	return slices.ContainsFunc(claims, func(c *claim) bool {
		return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return len(r.FirstAvailable) > 0 })
	})
}

// score adds up, over requests with alternatives, how early the one stands that was chosen.
func (a *attempt) score(n *node) int64 {
	found, known := a.allocations[n.slot]
	if !known {
		return 0
	}
	score, next := int64(0), 0
	for _, c := range a.claims {
		allocation := c.Status.Allocation
		if allocation == nil {
			if next >= len(found.results) {
				return score
			}
			allocation = &found.results[next]
			next++
		}
		chosen := map[string]bool{}
		for i := range allocation.Devices.Results {
			chosen[allocation.Devices.Results[i].Request] = true
		}
		for _, request := range c.Spec.Devices.Requests {
			if request.Exactly != nil {
				continue
			}
			for place, sub := range request.FirstAvailable {
				if chosen[resourceclaim.CreateSubRequestRef(request.Name, sub.Name)] {
					score += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - place)
				}
			}
		}
	}
	return score
}

// nodes of a set, each once.
func (s *session) nodes(set *pb.NodeSet) ([]*node, error) {
	found := make([]*node, 0, len(set.GetSlots()))
	seen := make(map[uint32]bool, len(set.GetSlots()))
	for _, slot := range set.GetSlots() {
		n := s.mirror.nodes[slot]
		if n == nil {
			return nil, fail(pb.CallError_OBJECT_UNKNOWN, fmt.Sprintf("no node in slot %d", slot))
		}
		if seen[slot] {
			return nil, fail(pb.CallError_INVALID, fmt.Sprintf("slot %d is named twice", slot))
		}
		seen[slot] = true
		found = append(found, n)
	}
	return found, nil
}
