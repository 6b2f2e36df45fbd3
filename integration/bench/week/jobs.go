package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// job is a line of a trace, with the fields used here. All its pods run at once.
type job struct {
	name     string
	class    string
	arrival  float64 // seconds
	run      float64
	declared float64 // its declared run time
	pods     int
	gpus     int // of each pod
	priority int
}

func (j job) allGPUs() int { return j.pods * j.gpus }

// outcome is the result of a job.
type outcome struct {
	start float64 // seconds; below 0: it had not started at the end
}

// readJobs reads the output of `outboard generate-workload`.
func readJobs(reader io.Reader) ([]job, error) {
	var jobs []job
	scanner := bufio.NewScanner(reader)
	scanner.Buffer(nil, 1<<20)
	for number := 1; scanner.Scan(); number++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := struct {
			Job         string
			Class       string
			Arrival     float64
			Run         float64
			Replicas    int
			Gang        bool
			GPUs        int
			Priority    int
			Annotations map[string]string
		}{Replicas: 1}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if fields.Job == "" || fields.Run <= 0 || fields.GPUs <= 0 || fields.Replicas > 1 && !fields.Gang {
			return nil, fmt.Errorf("line %d: not a job with a run time and GPUs, whose pods run at once: %s", number, line)
		}
		made := job{fields.Job, fields.Class, fields.Arrival, fields.Run, fields.Run, fields.Replicas, fields.GPUs, fields.Priority}
		if text, ok := fields.Annotations["outboard/run-seconds"]; ok {
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			made.declared = seconds
		}
		jobs = append(jobs, made)
	}
	return jobs, scanner.Err()
}
