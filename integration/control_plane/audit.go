package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// AuditEvent is what the API server logs of a request, as far as anybody here asks.
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
}

// AuditLog returns all requests of a user that have begun to be answered; Options.Audit must be set. A watch is there twice once it has ended.
func (c *ControlPlane) AuditLog(user string) ([]AuditEvent, error) {
	data, err := os.ReadFile(c.file("audit.json"))
	if err != nil {
		return nil, err
	}
	var events []AuditEvent
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // It is being written.
		}
		var event AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if event.User.Username == user {
			events = append(events, event)
		}
	}
	return events, nil
}
