package main

import (
	"container/heap"
	"math"
	"sort"
)

// Textbook EASY backfill (Lifka 1995; Mu'alem and Feitelson 2001), with priorities and without preemption. Jobs start
// in order of priority and arrival. The first job that does not fit gets a reservation at the time when enough will
// be free according to the declared run times. Other jobs start if they end before that time, or need only what it
// will leave. Shares no code with the scheduler and its plugins.
type easy struct {
	jobs     []job
	pool     bool  // all GPUs are one pool; otherwise a pod's GPUs are on one node
	free     []int // by node; a pool is one
	withFree []int // number of nodes with that many free
	all      int   // sum of free GPUs
	queue    []int // jobs that wait, in order
	runs     endings
	outcomes []outcome
	until    float64
	used     float64 // GPU-seconds until then
}

type running struct {
	job      *job
	nodes    []int   // one for each piece
	end      float64 // actual
	declared float64 // by the declared run time
}

type endings []*running

func (e endings) Len() int           { return len(e) }
func (e endings) Less(a, b int) bool { return e[a].end < e[b].end }
func (e endings) Swap(a, b int)      { e[a], e[b] = e[b], e[a] }
func (e *endings) Push(x any)        { *e = append(*e, x.(*running)) }
func (e *endings) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// playEasy plays the jobs until `until`. Returns the outcome of each, and the GPU-seconds in use until then.
func playEasy(jobs []job, nodes, gpus int, pool bool, until float64) ([]outcome, float64) {
	e := &easy{jobs: jobs, pool: pool, until: until, all: nodes * gpus, outcomes: make([]outcome, len(jobs))}
	if pool {
		e.free = []int{nodes * gpus}
	} else {
		for range nodes {
			e.free = append(e.free, gpus)
		}
	}
	e.withFree = make([]int, e.free[0]+1)
	e.withFree[e.free[0]] = len(e.free)
	order := make([]int, len(jobs))
	for i := range jobs {
		e.outcomes[i].start = -1
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return jobs[order[a]].arrival < jobs[order[b]].arrival })
	for {
		now := math.Inf(1)
		if len(order) > 0 {
			now = jobs[order[0]].arrival
		}
		if len(e.runs) > 0 {
			now = math.Min(now, e.runs[0].end)
		}
		if now >= until {
			return e.outcomes, e.used
		}
		for len(e.runs) > 0 && e.runs[0].end <= now {
			e.end(heap.Pop(&e.runs).(*running))
		}
		for ; len(order) > 0 && jobs[order[0]].arrival <= now; order = order[1:] {
			e.enqueue(order[0])
		}
		e.schedule(now)
	}
}

// pieces returns the GPUs that must be on one node, and the number of such pieces.
func (e *easy) pieces(j *job) (gpus, count int) {
	if e.pool {
		return j.pods * j.gpus, 1
	}
	return j.gpus, j.pods
}

func (e *easy) end(run *running) {
	gpus, count := e.pieces(run.job)
	for _, node := range run.nodes {
		e.change(node, gpus)
	}
	e.all += gpus * count
}

func (e *easy) change(node, gpus int) {
	e.withFree[e.free[node]]--
	e.free[node] += gpus
	e.withFree[e.free[node]]++
}

// mayFit returns whether the nodes have room for all pieces, without reservations.
func (e *easy) mayFit(gpus, count int) bool {
	if e.pool || gpus*count > e.all {
		return gpus*count <= e.all
	}
	for free := gpus; free < len(e.withFree) && count > 0; free++ {
		count -= e.withFree[free] * (free / gpus)
	}
	return count <= 0
}

func (e *easy) enqueue(i int) {
	at := sort.Search(len(e.queue), func(k int) bool { return e.jobs[e.queue[k]].priority < e.jobs[i].priority })
	e.queue = append(e.queue, 0)
	copy(e.queue[at+1:], e.queue[at:])
	e.queue[at] = i
}

func (e *easy) start(i int, nodes []int, now float64) {
	j := &e.jobs[i]
	gpus, count := e.pieces(j)
	for _, node := range nodes {
		e.change(node, -gpus)
	}
	e.all -= gpus * count
	e.outcomes[i].start = now
	e.used += float64(gpus*count) * (math.Min(now+j.run, e.until) - now)
	heap.Push(&e.runs, &running{j, nodes, now + j.run, now + j.declared})
}

// place finds nodes for a job, the fullest first, that also leave what is in `kept` (nil: no reservation). Returns
// nil if none fit.
func (e *easy) place(j *job, kept []int) []int {
	gpus, count := e.pieces(j)
	if !e.mayFit(gpus, count) {
		return nil
	}
	var nodes []int
	taken := map[int]int{}
	for ; count > 0; count-- {
		best := -1
		for node, free := range e.free {
			free -= taken[node]
			if free < gpus || kept != nil && kept[node]-taken[node] < gpus {
				continue
			}
			if best < 0 || free < e.free[best]-taken[best] {
				best = node
			}
		}
		if best < 0 {
			return nil
		}
		taken[best] += gpus
		nodes = append(nodes, best)
	}
	return nodes
}

// shadow returns when the job will fit, and what each node then has left; false: never.
func (e *easy) shadow(j *job, now float64) (when float64, spare []int, ok bool) {
	gpus, count := e.pieces(j)
	spare = append(spare, e.free...)
	ends := append(endings(nil), e.runs...)
	sort.Slice(ends, func(a, b int) bool { return ends[a].declared < ends[b].declared })
	fit := 0
	for _, free := range spare {
		fit += free / gpus
	}
	var last []int // nodes in the order in which they last got room
	when = now
	for _, run := range ends {
		if fit >= count {
			break
		}
		its, _ := e.pieces(run.job)
		for _, node := range run.nodes {
			fit += (spare[node]+its)/gpus - spare[node]/gpus
			spare[node] += its
			last = append(last, node)
		}
		when = math.Max(now, run.declared)
	}
	if fit < count {
		return 0, nil, false
	}
	for i := len(last) - 1; i >= 0 && count > 0; i-- {
		for ; spare[last[i]] >= gpus && count > 0; count-- {
			spare[last[i]] -= gpus
		}
	}
	for node := range spare {
		for ; spare[node] >= gpus && count > 0; count-- {
			spare[node] -= gpus
		}
	}
	return when, spare, true
}

func (e *easy) schedule(now float64) {
	for len(e.queue) > 0 {
		nodes := e.place(&e.jobs[e.queue[0]], nil)
		if nodes == nil {
			break
		}
		e.start(e.queue[0], nodes, now)
		e.queue = e.queue[1:]
	}
	if len(e.queue) < 2 || e.all == 0 {
		return
	}
	when, spare, ok := e.shadow(&e.jobs[e.queue[0]], now)
	rest := e.queue[:1]
	for at, i := range e.queue[1:] {
		if e.all == 0 {
			rest = append(rest, e.queue[1+at:]...)
			break
		}
		j := &e.jobs[i]
		kept := spare
		if !ok || now+j.declared <= when {
			kept = nil
		}
		nodes := e.place(j, kept)
		if nodes == nil {
			rest = append(rest, i)
			continue
		}
		if kept != nil {
			gpus, _ := e.pieces(j)
			for _, node := range nodes {
				spare[node] -= gpus
			}
		}
		e.start(i, nodes, now)
	}
	e.queue = rest
}
