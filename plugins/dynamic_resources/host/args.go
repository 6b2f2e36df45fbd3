package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const argsSchema = `{
  "type": "object", "additionalProperties": false,
  "properties": {
    "filterTimeout": {"type": "string", "default": "10s",
      "description": "Maximum time of the search for devices on a node; 0s: unlimited."},
    "bindingTimeout": {"type": "string", "default": "600s",
      "description": "Maximum time for devices to become ready; at least 1s."}}}`

// args are the plugin's arguments in a profile.
type args struct{ filterTimeout, bindingTimeout time.Duration }

var defaultArgs = args{filterTimeout: 10 * time.Second, bindingTimeout: 10 * time.Minute}

// problem is an invalid field of the arguments.
type problem struct{ field, message string }

// readArgs parses arguments strictly, by kube-scheduler's rules.
func readArgs(text string) (args, []problem) {
	read := defaultArgs
	if strings.TrimSpace(text) == "" {
		return read, nil
	}
	var fields map[string]json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(&fields); err != nil {
		return read, []problem{{"", "not a JSON object: " + err.Error()}}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return read, []problem{{"", "more than one JSON value"}}
	}
	var problems []problem
	for name, value := range fields {
		var into *time.Duration
		switch name {
		case "filterTimeout":
			into = &read.filterTimeout
		case "bindingTimeout":
			into = &read.bindingTimeout
		default:
			problems = append(problems, problem{name, "unknown field"})
			continue
		}
		if bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
			continue
		}
		var duration metav1.Duration
		if err := json.Unmarshal(value, &duration); err != nil {
			problems = append(problems, problem{name, "not a duration as Go writes them, for example 10s: " + err.Error()})
			continue
		}
		*into = duration.Duration
	}
	invalid := func(name string, value time.Duration, message string) {
		fault := field.Invalid(field.NewPath(name), value.String(), message)
		problems = append(problems, problem{name, fault.ErrorBody()})
	}
	if read.filterTimeout < 0 {
		invalid("filterTimeout", read.filterTimeout, "must be zero or positive")
	}
	if read.bindingTimeout < time.Second {
		invalid("bindingTimeout", read.bindingTimeout, "must be at least 1 second")
	}
	return read, problems
}
