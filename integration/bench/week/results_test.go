package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLedgerGoesOnWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	week := setting{Nodes: 100, GPUsPerNode: 8, Hours: 168, Declared: 1, MostWaiting: 3000}
	open := func() *ledger {
		t.Helper()
		l, err := openLedger(path, week)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := result{Scheduler: "easy", Load: 0.9, Seed: 1, figures: figures{Useful: 0.7}}
	if err := open().add(first); err != nil {
		t.Fatal(err)
	}
	// Interrupted within a line.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, `{"scheduler":"ea`...), 0o644); err != nil {
		t.Fatal(err)
	}
	again := open()
	if found, known := again.find(run{"easy", 0.9, 1}); !known || found != first {
		t.Errorf("%v %+v", known, found)
	}
	if _, known := again.find(run{"easy", 0.9, 2}); known {
		t.Error("a result without a measurement")
	}
	second := result{Scheduler: "easy", Load: 0.9, Seed: 2}
	if err := again.add(second); err != nil {
		t.Fatal(err)
	}
	if found, known := open().find(run{"easy", 0.9, 2}); !known || found != second {
		t.Errorf("%v %+v", known, found)
	}
	week.Hours = 24
	if _, err := openLedger(path, week); err == nil || !strings.Contains(err.Error(), "use another file") {
		t.Errorf("results of a week accepted for a day: %v", err)
	}
}

func TestLedgerSaysWhichLineIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	if err := os.WriteFile(path, []byte("{}\n{}\nnonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openLedger(path, setting{}); err == nil || !strings.Contains(err.Error(), path+":3:") {
		t.Errorf("%v", err)
	}
}
