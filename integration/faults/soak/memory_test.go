package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	controlplane "outboard.dev/integration/control_plane"
)

// memory samples the resident memory of a process of each replica once a second, and compares what lived from one
// number of binds to another one.
type memory struct {
	*cluster
	process  func(*replica) *controlplane.Process
	from, to int                    // binds
	samples  map[int][]memorySample // by process id
	names    map[int]string

	mutex sync.Mutex
	now   map[string]int // MiB, by name
}

type memorySample struct {
	binds int
	mib   float64
}

func newMemory(c *cluster, process func(*replica) *controlplane.Process, from, to int) *memory {
	return &memory{cluster: c, process: process, from: from, to: to, samples: map[int][]memorySample{}, names: map[int]string{}, now: map[string]int{}}
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
		for _, user := range users {
			r := m.replicas[user]
			if !r.mutex.TryLock() {
				continue
			}
			process := m.process(r)
			usage, err := process.Usage()
			if err == nil && !hasEnded(process) {
				mib := float64(usage.RSS) / (1 << 20)
				m.mutex.Lock()
				m.now[process.Name] = int(mib)
				m.mutex.Unlock()
				if bound >= m.from && bound <= m.to {
					m.names[process.PID()] = process.Name
					m.samples[process.PID()] = append(m.samples[process.PID()], memorySample{bound, mib})
				}
			}
			r.mutex.Unlock()
		}
	}
}

// compare returns the processes that lived through both the first and the last tenth; short: that is too short to
// judge them.
func (m *memory) compare() (lived []Memory, short bool) {
	tenth := (m.to - m.from) / 10
	mean := func(samples []memorySample, from, to int) float64 {
		sum, n := 0.0, 0
		for _, s := range samples {
			if s.binds >= from && s.binds <= to {
				sum += s.mib
				n++
			}
		}
		if n == 0 {
			return 0
		}
		return sum / float64(n)
	}
	for pid, samples := range m.samples {
		first, last := mean(samples, m.from, m.from+tenth), mean(samples, m.to-tenth, m.to)
		if first > 0 && last > 0 {
			lived = append(lived, Memory{m.names[pid], m.to - m.from, first, last})
		}
	}
	slices.SortFunc(lived, func(a, b Memory) int { return int(b.First - a.First) })
	return lived, m.to-m.from < enoughBinds
}
