// Package oracle schedules pods from manifests with kube-scheduler's own plugin code, in process and without an API
// server, and returns the expected output of `outboard simulate -o json` for every pod.
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
	Preempting    = "preempting"
	Unschedulable = "unschedulable"
	Error         = "error"
)

// Verdict is one line of output: the result of a pod's first attempt.
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

	// What Outboard adds for people; nothing of it is compared.
	Priority  json.RawMessage `json:"priority,omitempty"`
	Scheduler json.RawMessage `json:"scheduler,omitempty"`
	Attempt   json.RawMessage `json:"attempt,omitempty"`
	Time      json.RawMessage `json:"time,omitempty"`
	Reasons   json.RawMessage `json:"reasons,omitempty"`
	Group     json.RawMessage `json:"group,omitempty"`
	Why       json.RawMessage `json:"why,omitempty"`

	// Claims are the outcomes of device claims, by name.
	Claims []ClaimOutcome `json:"-"`
	// FreeChoice holds the nodes among which kube-scheduler itself chooses at random (it iterates over a Go map); nil
	// if its choice is determined.
	FreeChoice []string `json:"-"`
	// AwaitsVolumes: the pod has its node, and its volumes are not bound or provisioned yet.
	AwaitsVolumes bool `json:"-"`
	// Violations is the number of victims that a disruption budget protects.
	Violations int64 `json:"-"`
	// Feasible is the number of nodes that passed, and Examined the number of examined nodes.
	Feasible int `json:"-"`
	Examined int `json:"-"`
}

// NodeRejection is the reason why a node was rejected. An empty Plugin means that no single plugin rejected it.
type NodeRejection struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
}

// NodeScore holds weighted, normalised scores.
type NodeScore struct {
	Total   int64            `json:"total"`
	Plugins map[string]int64 `json:"plugins"`
	// Terms are the parts of a plugin's score, if the host reports them; kube-scheduler has none.
	Terms json.RawMessage `json:"terms,omitempty"`
}

// Write prints verdicts as JSON, one for each line.
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

// Read parses the output of Write or of `outboard simulate -o json`. An unknown or missing field is an error: the
// format itself is under test.
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
				return nil, fmt.Errorf("line %d: missing field %q: %.200s", line, name, scanner.Text())
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

// CanonicalReasons sorts the reasons of one rejection for comparison: NodeResourcesFit names extended resources in
// the order of a Go map, after the ordinary ones, whose order is fixed.
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
