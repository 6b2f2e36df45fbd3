package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// keepLogs copies the logs of nodes and of the control plane into a new folder and returns a sentence with its path.
func (c *Cluster) keepLogs() string {
	kept, err := os.MkdirTemp("", "outboard-logs-")
	if err != nil {
		return fmt.Sprintf("; logs are lost: %v", err)
	}
	patterns := []string{filepath.Join(c.slot.folder(), "*.log"), filepath.Join(c.slot.folder(), "*", "*.log")}
	if c.ControlPlane != nil {
		patterns = append(patterns, filepath.Join(c.Dir, "*.log"))
	}
	for _, pattern := range patterns {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				name := filepath.Base(filepath.Dir(file)) + "-" + filepath.Base(file)
				os.WriteFile(filepath.Join(kept, name), data, 0o644)
			}
		}
	}
	return "; logs of all processes: " + kept
}
