package soak

import "testing"

// A replica that leads for a second time is not compared with the first time: it has remembered less meanwhile.
func TestMemoryIsComparedWithinATurnOfLeading(t *testing.T) {
	m := newMemory(nil, nil, 1000)
	for _, turn := range []struct {
		leads    bool
		from, to int // binds
		mib      float64
	}{{true, 0, 20000, 60}, {false, 20000, 40000, 50}, {true, 40000, 45000, 90}, {true, 45000, 61000, 70}} {
		for binds := turn.from; binds < turn.to; binds += 100 {
			m.add(7, "shim", turn.leads, memorySample{binds, turn.mib})
		}
	}
	lives := m.compare()
	if len(lives) != 3 {
		t.Fatalf("want three lives, got %v", lives)
	}
	for i, want := range []Memory{{"shim", 18900, 50, 50}, {"shim, leading", 19900, 90, 70}, {"shim, leading", 18900, 60, 60}} {
		if lives[i] != want {
			t.Errorf("got %v, want %v", lives[i], want)
		}
	}
	if m.now["shim"] != 70 {
		t.Errorf("now %d MiB", m.now["shim"])
	}
}
