package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
)

// result is one run of one workload with one scheduler.
type result struct {
	Scheduler string  `json:"scheduler"`
	Load      float64 `json:"load"`
	Seed      int     `json:"seed"`
	figures
}

// setting is common to all results of a file.
type setting struct {
	Nodes       int     `json:"nodes"`
	GPUsPerNode int     `json:"gpusPerNode"`
	Hours       float64 `json:"hours"`
	Declared    float64 `json:"declared"`
	MostWaiting int     `json:"mostWaiting"`
}

func (o options) setting() setting {
	return setting{o.nodes, o.gpus, o.hours, o.declared, o.mostWaiting}
}

type run struct {
	scheduler string
	load      float64
	seed      int
}

// ledger keeps results in memory and, with a file, there: one line each, written at once, so that an interrupted
// measurement can be resumed. The file's first line is the setting.
type ledger struct {
	lock  sync.Mutex
	known map[run]result
	file  *os.File
}

// openLedger reads the file, if it exists (path "": no file). A file with another setting is an error.
func openLedger(path string, wanted setting) (*ledger, error) {
	l := &ledger{known: map[run]result{}}
	if path == "" {
		return l, nil
	}
	existing, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	complete, err := l.read(path, existing, wanted)
	if err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	// An incomplete line, written when the measurement was interrupted.
	if err := l.file.Truncate(int64(complete)); err != nil {
		return nil, err
	}
	if _, err := l.file.Seek(int64(complete), 0); err != nil {
		return nil, err
	}
	if complete == 0 {
		return l, json.NewEncoder(l.file).Encode(wanted)
	}
	return l, nil
}

// read parses the complete lines and returns their length in bytes.
func (l *ledger) read(path string, text []byte, wanted setting) (complete int, err error) {
	for number := 1; ; number++ {
		size, line, err := bufio.ScanLines(text[complete:], false)
		if err != nil || size == 0 {
			return complete, err
		}
		if number == 1 {
			var found setting
			if err := json.Unmarshal(line, &found); err != nil {
				return 0, fmt.Errorf("%s:1: %w", path, err)
			}
			if found != wanted {
				return 0, fmt.Errorf("%s has results of %+v, but %+v is requested; use another file", path, found, wanted)
			}
		} else {
			var r result
			if err := json.Unmarshal(line, &r); err != nil {
				return 0, fmt.Errorf("%s:%d: %w", path, number, err)
			}
			l.known[run{r.Scheduler, r.Load, r.Seed}] = r
		}
		complete += size
	}
}

func (l *ledger) find(wanted run) (result, bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	r, found := l.known[wanted]
	return r, found
}

func (l *ledger) add(r result) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.known[run{r.Scheduler, r.Load, r.Seed}] = r
	if l.file == nil {
		return nil
	}
	return json.NewEncoder(l.file).Encode(r)
}
