package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, resources: [{group: coordination.k8s.io, resources: [leases]}]}
- {level: Metadata}
`

// AuditEvent has the fields of the API server's audit event that tests read.
type AuditEvent struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
	// By the API server's clock: when the request arrived and when it was answered.
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
	// The body, only of requests about leases.
	RequestObject json.RawMessage `json:"requestObject"`
}

// AuditLog returns all requests of a user whose response has started; requires Options.Audit. A finished watch
// appears twice.
func (c *ControlPlane) AuditLog(user string) ([]AuditEvent, error) {
	follower, err := c.FollowAudit()
	if err != nil {
		return nil, err
	}
	defer follower.Close()
	all, err := follower.Next()
	if err != nil {
		return nil, err
	}
	var events []AuditEvent
	for _, event := range all {
		if event.User.Username == user {
			events = append(events, event)
		}
	}
	return events, nil
}

// AuditFollower reads the audit log while it grows. Use it from one goroutine.
type AuditFollower struct {
	file    *os.File
	partial []byte // the incomplete line at the end of the last read
}

// FollowAudit starts at the log's first line; requires Options.Audit.
func (c *ControlPlane) FollowAudit() (*AuditFollower, error) {
	file, err := os.Open(c.file("audit.json"))
	return &AuditFollower{file: file}, err
}

// Next returns the events of all users since the last call.
func (f *AuditFollower) Next() ([]AuditEvent, error) {
	more, err := io.ReadAll(f.file)
	if err != nil {
		return nil, err
	}
	var events []AuditEvent
	data := append(f.partial, more...)
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			f.partial = bytes.Clone(line)
			return events, nil
		}
		var event AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		events = append(events, event)
	}
	f.partial = nil
	return events, nil
}

// Close closes the log file.
func (f *AuditFollower) Close() { f.file.Close() }
