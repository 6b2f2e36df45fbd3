package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	pb "outboard.dev/contract/v1beta1"
)

const (
	// The contract's limit for a call.
	maxHypotheses = 65536
	// How many nodes per worker go to the allocator at once, at first and at most. More nodes than needed may be
	// evaluated; that is not wasted while their outcomes stay cached.
	firstBatch, largestBatch = 2, 32
)

// enoughNodes returns how many feasible nodes end the search; see FilterRequest.percentage_of_nodes_to_score.
func enoughNodes(count, percentage int, firstOnly bool) int {
	switch {
	case firstOnly:
		return 1
	case count < 100:
		return count
	case percentage == 0:
		percentage = max(5, 50-count/125)
	}
	if percentage >= 100 {
		return count
	}
	return max(100, count*percentage/100)
}

// packer builds a FilterResponse.
type packer struct {
	answer   pb.FilterResponse
	feasible int
	reasons  map[string]uint32
}

func (p *packer) add(rejection *pb.PluginStatus) {
	i := p.answer.Processed
	p.answer.Processed++
	if i%8 == 0 {
		p.answer.Feasible = append(p.answer.Feasible, 0)
	}
	if rejection == nil {
		p.answer.Feasible[i/8] |= 1 << (i % 8)
		p.feasible++
		return
	}
	reason := rejection.GetReasons()[0]
	index, known := p.reasons[reason]
	if !known {
		index = uint32(len(p.answer.Reasons))
		p.reasons[reason] = index
		p.answer.Reasons = append(p.answer.Reasons, rejection)
	}
	p.answer.Rejected = append(p.answer.Rejected, index)
}

// filtering is one running Filter. Calls share none of it.
type filtering struct {
	s       *session
	cache   *clusterCache // of the call's version
	attempt *attempt
	inUse   *usageState
}

// Filter evaluates nodes in order until enough are feasible. The result does not depend on pods on nodes: nominated
// nodes need no second evaluation, and a simulated node is evaluated as the node itself. The session is not locked
// while the allocator runs, which may take long.
func (h *host) Filter(ctx context.Context, request *pb.FilterRequest) (*pb.FilterResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	found, nodes, err := s.startFiltering(request)
	leave()
	if err != nil {
		return nil, err
	}
	defer found.close()
	hypotheses := len(request.GetSimulatedNodes()) > 0
	enough := len(nodes)
	if !hypotheses {
		enough = enoughNodes(len(nodes), int(request.GetPercentageOfNodesToScore()), request.GetFirstFeasibleOnly())
		if given := int(request.GetNumFeasibleNodesToFind()); given > 0 { // Only inside a cycle.
			enough = given
		}
	}
	p := packer{reasons: map[string]uint32{}}
	err = found.run(ctx, nodes, func(q *question) bool {
		switch rejection := q.verdict.rejection; {
		case rejection.GetCode() == pb.Code_CODE_ERROR && hypotheses: // For simulated nodes, a failure is a rejection.
			p.add(unresolvable(rejection.GetReasons()[0]))
		case rejection.GetCode() == pb.Code_CODE_ERROR:
			p.answer.Error = failing(`"`+pluginName+`" filter plugin`, rejection)
			return false
		case rejection == nil && p.feasible == enough:
			return false
		default:
			p.add(rejection)
		}
		return true
	})
	return &p.answer, err
}

func (s *session) startFiltering(request *pb.FilterRequest) (*filtering, []*node, error) {
	a, err := s.attempt(request.GetHeader())
	if err != nil {
		return nil, nil, err
	}
	nodes, err := s.nodesToEvaluate(request)
	if err != nil {
		return nil, nil, err
	}
	usage := s.cache.claims.usage
	if a.allocates && a.inUse == nil {
		a.inUse, a.whole = usage.acquire(), nil
	}
	found := &filtering{s: s, cache: s.cache, attempt: a, inUse: a.inUse}
	if found.inUse != nil {
		found.inUse.holders++ // The attempt may end during this call.
	}
	return found, nodes, nil
}

func (s *session) nodesToEvaluate(request *pb.FilterRequest) ([]*node, error) {
	m := s.cache
	if hypotheses := request.GetSimulatedNodes(); len(hypotheses) > 0 {
		if len(hypotheses) > maxHypotheses {
			return nil, fail(pb.CallError_REASON_INVALID, fmt.Sprintf("%d hypotheses", len(hypotheses)))
		}
		nodes := make([]*node, len(hypotheses))
		for i, hypothesis := range hypotheses {
			if hypothesis.GetContinues() && (i == 0 || hypotheses[i-1].GetSlot() != hypothesis.GetSlot()) {
				return nil, fail(pb.CallError_REASON_INVALID, "a hypothesis continues a hypothesis about another node")
			}
			if err := m.checkHypothesis(hypothesis); err != nil {
				return nil, err
			}
			nodes[i] = m.nodes[hypothesis.GetSlot()]
		}
		return nodes, nil
	}
	nodes := make([]*node, 0, len(m.order))
	if request.Nodes != nil {
		var err error
		if nodes, err = s.nodes(request.GetNodes()); err != nil {
			return nil, err
		}
	} else {
		for _, slot := range m.order {
			if n := m.nodes[slot]; n != nil { // The node may be removed before the new order arrives.
				nodes = append(nodes, n)
			}
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	start := int(request.GetStartOffset()) % len(nodes)
	return append(nodes[start:len(nodes):len(nodes)], nodes[:start]...), nil
}

func (m *clusterCache) checkHypothesis(hypothesis *pb.SimulatedNode) error {
	if m.nodes[hypothesis.GetSlot()] == nil {
		return fail(pb.CallError_REASON_OBJECT_UNKNOWN, fmt.Sprintf("no node in slot %d", hypothesis.GetSlot()))
	}
	for _, uid := range hypothesis.GetRemovedPodUids() {
		p := m.pods[uid]
		if p == nil {
			return fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no pod "+uid)
		}
		if slot, placed := m.slotOf(p); !hypothesis.GetContinues() && (!placed || slot != hypothesis.GetSlot()) {
			return fail(pb.CallError_REASON_OBJECT_UNKNOWN, "pod "+uid+" is not there")
		}
	}
	for _, uid := range hypothesis.GetAddedPodUids() {
		if m.pods[uid] == nil {
			return fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no pod "+uid)
		}
	}
	return nil
}

// slotOf returns the pod's present or future node.
func (m *clusterCache) slotOf(p *pod) (uint32, bool) {
	if name := p.proto.GetNodeName(); name != "" {
		slot, known := m.slots[name]
		return slot, known
	}
	if !p.holdsPlace() {
		return 0, false
	}
	return p.slot, m.nodes[p.slot] != nil
}

// run evaluates the nodes, and passes the verdicts to `tell` in order until it returns false.
func (f *filtering) run(ctx context.Context, nodes []*node, tell func(*question) bool) error {
	workers := runtime.GOMAXPROCS(0)
	for batch := firstBatch * workers; len(nodes) > 0; batch = min(2*batch, largestBatch*workers) {
		questions := f.askSome(ctx, nodes, batch)
		nodes = nodes[len(questions):]
		f.answerAll(ctx, questions, workers)
		f.s.mu.Lock()
		more := true
		for i := 0; i < len(questions) && more; i++ {
			if more = tell(&questions[i]); more {
				f.attempt.remember(&questions[i])
			}
		}
		f.s.mu.Unlock()
		if !more {
			return nil
		}
		if ctx.Err() != nil { // The caller has given up.
			return fail(pb.CallError_REASON_INTERNAL, context.Cause(ctx).Error())
		}
	}
	return nil
}

// askSome prepares the first nodes: until `batch` of them need the allocator, or as many are known.
func (f *filtering) askSome(ctx context.Context, nodes []*node, batch int) []question {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	now := f.s.now()
	questions := make([]question, 0, min(len(nodes), 8*batch))
	for open := 0; open < batch && len(questions) < min(len(nodes), 8*batch); {
		n := nodes[len(questions)]
		if len(f.attempt.claims) == 0 {
			questions = append(questions, question{node: n})
			continue
		}
		q := f.attempt.ask(f.cache, n, now)
		if q.open != nil {
			open++
			f.attempt.arm(ctx, f.cache, &q)
		}
		questions = append(questions, q)
	}
	return questions
}

// answerAll runs the allocator for the open questions, on all processors.
func (f *filtering) answerAll(ctx context.Context, questions []question, workers int) {
	var open []*question
	for i := range questions {
		if questions[i].open != nil {
			open = append(open, &questions[i])
		}
	}
	if len(open) == 0 {
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	var fault atomic.Pointer[string]
	for range min(workers, len(open)) {
		group.Go(func() {
			defer func() {
				if caught := recover(); caught != nil {
					logFault("Filter", caught)
					text := fmt.Sprint(caught)
					fault.Store(&text)
				}
			}()
			for i := next.Add(1) - 1; int(i) < len(open); i = next.Add(1) - 1 {
				f.attempt.answer(ctx, open[i])
			}
		})
	}
	group.Wait()
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if text := fault.Load(); text != nil {
		for _, q := range open {
			q.open.key, q.verdict.rejection = "", reject(pb.Code_CODE_ERROR, "node %s: the allocator failed: %s", q.node.object.Name, *text)
		}
	}
	for _, q := range open {
		if q.open.key != "" {
			f.cache.memo.keep(q.open.key, memoEntry{node: q.node, own: q.open.own, everywhere: q.open.everywhere, outcome: q.open.outcome})
		}
	}
}

func (f *filtering) close() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.inUse != nil {
		f.inUse.holders--
	}
}
