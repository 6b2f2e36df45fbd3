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
	maxSimulatedNodes = 65536
	// How many nodes per worker go to the allocator at once, at first and at most. More nodes than needed may be
	// evaluated; that is not wasted while their outcomes stay cached.
	firstBatch, largestBatch = 2, 32
)

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

// selection is what one Filter evaluates.
type selection struct {
	nodes     []*node
	enough    int // feasible nodes; the search ends at one more
	simulated bool
}

// Filter evaluates nodes in order until enough are feasible, or simulated nodes.
func (h *host) Filter(ctx context.Context, request *pb.FilterRequest) (*pb.FilterResponse, error) {
	return h.filter(ctx, request.GetHeader(), func(s *session) (selection, error) {
		switch what := request.GetWhat().(type) {
		case *pb.FilterRequest_Search:
			enough := int(what.Search.GetNumFeasibleNodesToFind())
			if enough == 0 {
				return selection{}, fail(pb.CallError_REASON_INVALID, "search.num_feasible_nodes_to_find is required")
			}
			nodes, err := s.nodesToSearch(what.Search)
			return selection{nodes: nodes, enough: enough}, err
		case *pb.FilterRequest_Simulation:
			nodes, err := s.cache.simulatedNodes(what.Simulation)
			return selection{nodes: nodes, enough: len(nodes), simulated: true}, err
		}
		return selection{}, fail(pb.CallError_REASON_INVALID, "search or simulation is required")
	})
}

// filter evaluates what `choose` returns. The result does not depend on pods on nodes: nominated nodes need no second
// evaluation, and a simulated node is evaluated as the node itself. The session is not locked while the allocator runs,
// which may take long.
func (h *host) filter(ctx context.Context, header *pb.CallHeader, choose func(*session) (selection, error)) (*pb.FilterResponse, error) {
	s, leave, err := h.enter(ctx, header, exactly)
	if err != nil {
		return nil, err
	}
	defer h.metrics.at(pb.ExtensionPoint_EXTENSION_POINT_FILTER)()
	found, chosen, err := s.startFiltering(header, choose)
	leave()
	if err != nil {
		return nil, err
	}
	defer found.close()
	p := packer{reasons: map[string]uint32{}}
	err = found.run(ctx, chosen.nodes, func(q *question) bool {
		switch rejection := q.verdict.rejection; {
		case rejection.GetCode() == pb.Code_CODE_ERROR && chosen.simulated: // For simulated nodes, a failure is a rejection.
			p.add(unresolvable(rejection.GetReasons()[0]))
		case rejection.GetCode() == pb.Code_CODE_ERROR:
			p.answer.Error = failing(`"`+pluginName+`" filter plugin`, rejection)
			return false
		case rejection == nil && p.feasible == chosen.enough:
			return false
		default:
			p.add(rejection)
		}
		return true
	})
	return &p.answer, err
}

func (s *session) startFiltering(header *pb.CallHeader, choose func(*session) (selection, error)) (*filtering, selection, error) {
	a, err := s.attempt(header)
	if err != nil {
		return nil, selection{}, err
	}
	chosen, err := choose(s)
	if err != nil {
		return nil, selection{}, err
	}
	usage := s.cache.claims.usage
	if a.allocates && a.inUse == nil {
		a.inUse, a.whole = usage.acquire(), nil
	}
	found := &filtering{s: s, cache: s.cache, attempt: a, inUse: a.inUse}
	if found.inUse != nil {
		found.inUse.holders++ // The attempt may end during this call.
	}
	return found, chosen, nil
}

// nodesToSearch returns the search's nodes, from its start offset on.
func (s *session) nodesToSearch(search *pb.NodeSearch) ([]*node, error) {
	m := s.cache
	nodes := make([]*node, 0, len(m.order))
	if given := search.GetNodes(); given != nil {
		var err error
		if nodes, err = s.nodes(given); err != nil {
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
	start := int(search.GetStartOffset()) % len(nodes)
	return append(nodes[start:len(nodes):len(nodes)], nodes[:start]...), nil
}

// simulatedNodes checks the pods that are added and removed, and returns the nodes as they are.
func (m *clusterCache) simulatedNodes(simulation *pb.NodeSimulation) ([]*node, error) {
	simulated := simulation.GetNodes()
	if len(simulated) > maxSimulatedNodes {
		return nil, fail(pb.CallError_REASON_INVALID, fmt.Sprintf("%d simulated nodes", len(simulated)))
	}
	nodes := make([]*node, len(simulated))
	for i, one := range simulated {
		if one.GetContinues() && (i == 0 || simulated[i-1].GetSlot() != one.GetSlot()) {
			return nil, fail(pb.CallError_REASON_INVALID, "a simulated node continues another node")
		}
		if err := m.checkSimulatedNode(one); err != nil {
			return nil, err
		}
		nodes[i] = m.nodes[one.GetSlot()]
	}
	return nodes, nil
}

func (m *clusterCache) checkSimulatedNode(simulated *pb.SimulatedNode) error {
	if m.nodes[simulated.GetSlot()] == nil {
		return fail(pb.CallError_REASON_OBJECT_UNKNOWN, fmt.Sprintf("no node in slot %d", simulated.GetSlot()))
	}
	for _, uid := range simulated.GetRemovedPodUids() {
		p := m.pods[uid]
		if p == nil {
			return fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no pod "+uid)
		}
		if slot, placed := m.slotOf(p); !simulated.GetContinues() && (!placed || slot != simulated.GetSlot()) {
			return fail(pb.CallError_REASON_OBJECT_UNKNOWN, "pod "+uid+" is not there")
		}
	}
	for _, uid := range simulated.GetAddedPodUids() {
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
