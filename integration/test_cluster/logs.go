package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keepLogs copies the logs of nodes, of the pods that they have, and of the control plane into a new folder, and returns a
// phrase with its path for the end of a message.
func (c *Cluster) keepLogs() string {
	kept, err := os.MkdirTemp("", "outboard-logs-")
	if err != nil {
		return fmt.Sprintf("; logs are lost: %v", err)
	}
	folders := []string{c.slot.folder()}
	if c.ControlPlane != nil {
		folders = append(folders, c.Dir)
	}
	for _, folder := range folders {
		for _, pattern := range []string{"*.log", "*/*.log", "*/log/pods/*/*/*.log"} {
			files, _ := filepath.Glob(filepath.Join(folder, pattern))
			for _, file := range files {
				name, err := filepath.Rel(folder, file)
				if err != nil {
					continue
				}
				if data, err := os.ReadFile(file); err == nil {
					os.WriteFile(filepath.Join(kept, strings.ReplaceAll(name, "/", "-")), data, 0o644)
				}
			}
		}
	}
	return "; logs of all processes: " + kept
}
