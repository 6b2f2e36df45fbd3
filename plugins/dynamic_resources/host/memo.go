package main

import (
	"crypto/sha256"
	"encoding/json"

	resourceapi "k8s.io/api/resource/v1"
)

// The maximum number of outcomes, over all pods and nodes.
const maxOutcomes = 100_000

// outcome is the result of an allocation on a node.
type outcome struct {
	results []resourceapi.AllocationResult // one per claim; read-only
	reason  string                         // why there are none; empty: success
}

// memo caches outcomes for pods with equal claims: pods of one template are equal, and placing one pod changes one
// node. An outcome depends only on the claims' specs, the node, its slices, the classes and the devices in use; all of
// these are in the key, or are counted by the inventory. The session's lock guards it.
type memo struct {
	tables map[string]*memoTable
	size   int
	clock  uint64
}

type memoTable struct {
	entries map[uint32]memoEntry // by slot
	used    uint64
}

type memoEntry struct {
	node            *node
	own, everywhere uint64
	outcome         outcome
}

func newMemo() *memo { return &memo{tables: map[string]*memoTable{}} }

func (m *memo) table(key string) *memoTable {
	t := m.tables[key]
	if t == nil {
		t = &memoTable{entries: map[uint32]memoEntry{}}
		m.tables[key] = t
	}
	m.clock++
	t.used = m.clock
	return t
}

func (t *memoTable) find(n *node, everywhere uint64) (outcome, bool) {
	entry, known := t.entries[n.slot]
	if !known || entry.node != n || entry.own != *n.counter || entry.everywhere != everywhere {
		return outcome{}, false
	}
	return entry.outcome, true
}

// keep stores an outcome, with the counters at which it was computed.
func (m *memo) keep(key string, entry memoEntry) {
	t := m.table(key)
	if _, known := t.entries[entry.node.slot]; !known {
		if m.size >= maxOutcomes {
			m.forgetOldest(key)
		}
		m.size++
	}
	t.entries[entry.node.slot] = entry
}

func (m *memo) forgetOldest(but string) {
	oldest := ""
	for key, t := range m.tables {
		if key != but && (oldest == "" || t.used < m.tables[oldest].used) {
			oldest = key
		}
	}
	if oldest == "" {
		oldest = but
		m.size -= len(m.tables[but].entries)
		clear(m.tables[but].entries)
		return
	}
	m.size -= len(m.tables[oldest].entries)
	delete(m.tables, oldest)
}

// specKey identifies a claim's spec.
func specKey(spec *resourceapi.ResourceClaimSpec) string {
	text, err := json.Marshal(spec)
	if err != nil { // A quantity or a raw extension that is not JSON; decoded objects are valid.
		return ""
	}
	sum := sha256.Sum256(text)
	return string(sum[:16])
}
