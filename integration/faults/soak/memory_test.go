package soak

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	controlplane "outboard.dev/integration/control_plane"
)

// memory samples the resident memory of a process of each replica once a second.
type memory struct {
	*cluster
	process func(*replica) *controlplane.Process
	warm    int // binds until a process remembers as much as it ever will

	mutex   sync.Mutex
	samples map[life][]memorySample
	current map[int]life   // by PID
	now     map[string]int // MiB, by name
}

// life is a part of a process's life: a replica that begins to lead remembers more than before.
type life struct {
	pid   int
	name  string
	leads bool
	turn  int // how often it has begun or ceased to lead before
}

type memorySample struct {
	binds int // of the piece
	mib   float64
}

func newMemory(c *cluster, process func(*replica) *controlplane.Process, warm int) *memory {
	return &memory{cluster: c, process: process, warm: warm, samples: map[life][]memorySample{}, current: map[int]life{}, now: map[string]int{}}
}

// last returns the last sample of each process.
func (m *memory) last() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.now)) {
		fmt.Fprintf(&text, " %s %d", strings.TrimPrefix(name, "outboard-"), m.now[name])
	}
	return text.String()
}

func (m *memory) sample(ctx context.Context) {
	for tick := time.Tick(time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		bound, _, _ := m.record.progress()
		leader := m.record.leader()
		for _, user := range users {
			r := m.replicas[user]
			if !r.mutex.TryLock() {
				continue
			}
			process := m.process(r)
			usage, err := process.Usage()
			if err == nil && !process.HasEnded() {
				mib := float64(usage.RSS) / (1 << 20)
				m.add(process.PID(), process.Name, user == leader, memorySample{bound, mib})
			}
			r.mutex.Unlock()
		}
	}
}

func (m *memory) add(pid int, name string, leads bool, sample memorySample) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	now, known := m.current[pid]
	switch {
	case !known:
		now = life{pid, name, leads, 0}
	case now.leads != leads:
		now = life{pid, name, leads, now.turn + 1}
	}
	m.current[pid] = now
	m.now[name] = int(sample.mib)
	m.samples[now] = append(m.samples[now], sample)
}

// compare returns the lives with at least leastLife binds after they were warm: the memory in the first and in the last
// tenth of these binds.
func (m *memory) compare() (lived []Memory) {
	for key, samples := range m.samples {
		from, to := samples[0].binds+m.warm, samples[len(samples)-1].binds
		if to-from < leastLife {
			continue
		}
		tenth := (to - from) / 10
		name := key.name
		if key.leads {
			name += ", leading"
		}
		lived = append(lived, Memory{name, to - from, meanMemory(samples, from, from+tenth), meanMemory(samples, to-tenth, to)})
	}
	slices.SortFunc(lived, func(a, b Memory) int { return cmp.Or(cmp.Compare(a.Process, b.Process), b.Binds-a.Binds) })
	return lived
}

// meanMemory is of the samples in a range of binds, or of the last one before it if it has none.
func meanMemory(samples []memorySample, from, to int) float64 {
	sum, n, before := 0.0, 0, samples[0].mib
	for _, s := range samples {
		switch {
		case s.binds < from:
			before = s.mib
		case s.binds <= to:
			sum += s.mib
			n++
		}
	}
	if n == 0 {
		return before
	}
	return sum / float64(n)
}
