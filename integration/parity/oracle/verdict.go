// Package oracle schedules pods from manifests with kube-scheduler's own plugin code, in process and without an API
// server, and says for every pod what `outboard simulate -o json` must say.
package oracle

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
)

// The values of Verdict.Result.
const (
	Scheduled     = "scheduled"
	Unschedulable = "unschedulable"
	Error         = "error"
)

// Verdict is one line of output: what became of a pod's first attempt.
type Verdict struct {
	Pod           string                   `json:"pod"`
	Result        string                   `json:"result"`
	Node          string                   `json:"node"`
	Message       string                   `json:"message"`
	Filter        map[string]NodeRejection `json:"filter"`
	Scores        map[string]NodeScore     `json:"scores"`
	NominatedNode string                   `json:"nominatedNode"`
	Victims       []string                 `json:"victims"`
	// Effects is nil if the line does not have the field.
	Effects []Effect `json:"effects,omitempty"`

	// Claims says what became of claims for devices, by name.
	Claims []ClaimOutcome `json:"-"`
	// FreeChoice holds the nodes among which kube-scheduler itself picks at random (it iterates over a Go map);
	// nil if its choice is determined.
	FreeChoice []string `json:"-"`
	// AwaitsVolumes: the pod has its node, and its volumes are yet to be bound or made.
	AwaitsVolumes bool `json:"-"`
	// Violations is the number of victims that a disruption budget protects.
	Violations int64 `json:"-"`
	// Feasible is the number of nodes that passed, and Examined how many were looked at.
	Feasible int `json:"-"`
	Examined int `json:"-"`
}

// NodeRejection says why a node was refused. An empty Plugin means that no single plugin did it.
type NodeRejection struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
}

// NodeScore holds weighted, normalised scores.
type NodeScore struct {
	Total   int64            `json:"total"`
	Plugins map[string]int64 `json:"plugins"`
	// Terms are what a plugin's score is made of, where the host says it; nothing that kube-scheduler knows.
	Terms json.RawMessage `json:"terms,omitempty"`
}

// Write prints verdicts as JSON, one a line.
func Write(w io.Writer, verdicts []Verdict) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for i := range verdicts {
		verdict := verdicts[i]
		verdict.Effects = effectsOf(verdict.Claims)
		if err := encoder.Encode(&verdict); err != nil {
			return err
		}
	}
	return nil
}

// Read parses what Write printed, or what `outboard simulate -o json` prints. A field that the format does not have,
// or one that is missing, is an error: the format itself is under test.
func Read(r io.Reader) ([]Verdict, error) {
	var verdicts []Verdict
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 1<<20), 64<<20)
	required := []string{"pod", "result", "node", "message", "filter", "scores", "nominatedNode", "victims"}
	for line := 1; scanner.Scan(); line++ {
		if strings.TrimSpace(scanner.Text()) == "" {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(scanner.Bytes(), &fields); err != nil {
			return nil, fmt.Errorf("line %d: %w: %.200s", line, err, scanner.Text())
		}
		for _, name := range required {
			if raw, ok := fields[name]; !ok || string(raw) == "null" {
				return nil, fmt.Errorf("line %d: field %q is missing: %.200s", line, name, scanner.Text())
			}
		}
		decoder := json.NewDecoder(strings.NewReader(scanner.Text()))
		decoder.DisallowUnknownFields()
		var verdict Verdict
		if err := decoder.Decode(&verdict); err != nil {
			return nil, fmt.Errorf("line %d: %w: %.200s", line, err, scanner.Text())
		}
		var err error
		if verdict.Claims, err = claimsOf(verdict.Effects); err != nil {
			return nil, fmt.Errorf("line %d: %w: %.200s", line, err, scanner.Text())
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, scanner.Err()
}

// CanonicalReasons puts the reasons of one rejection into an order that can be compared: NodeResourcesFit names
// extended resources in the order of a Go map, after the ordinary ones, whose order is fixed.
func CanonicalReasons(reasons []string) []string {
	result := append([]string{}, reasons...)
	fixed := 0
	for fixed < len(result) && isOrdinary(result[fixed]) {
		fixed++
	}
	tail := result[fixed:]
	for _, reason := range tail {
		if !strings.HasPrefix(reason, "Insufficient ") || isOrdinary(reason) {
			return result
		}
	}
	sort.Strings(tail)
	return result
}

func isOrdinary(reason string) bool {
	switch reason {
	case "Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage":
		return true
	}
	return false
}
