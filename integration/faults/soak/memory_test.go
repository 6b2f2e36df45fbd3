package soak

import (
	"context"
	"slices"
	"time"

	controlplane "outboard.dev/integration/control_plane"
)

// memory samples the resident memory of the replicas' processes once a second in the steady part of a piece.
type memory struct {
	*cluster
	from, to int                    // binds
	samples  map[int][]memorySample // by process id
	names    map[int]string
}

type memorySample struct {
	binds int
	mib   float64
}

func newMemory(c *cluster, from, to int) *memory {
	return &memory{cluster: c, from: from, to: to, samples: map[int][]memorySample{}, names: map[int]string{}}
}

func (m *memory) sample(ctx context.Context) {
	for tick := time.Tick(time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		bound, _, _ := m.record.progress()
		if bound < m.from || bound > m.to {
			continue
		}
		for _, user := range users {
			r := m.replicas[user]
			if !r.mutex.TryLock() {
				continue
			}
			for _, process := range []*controlplane.Process{r.Shim, r.Host} {
				if usage, err := process.Usage(); err == nil && !hasEnded(process) {
					m.names[process.PID()] = process.Name
					m.samples[process.PID()] = append(m.samples[process.PID()], memorySample{bound, float64(usage.RSS) / (1 << 20)})
				}
			}
			r.mutex.Unlock()
		}
	}
}

// compare returns the processes that lived through both the first and the last tenth of the steady part; short: the
// part is too short to judge them.
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
