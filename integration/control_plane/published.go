package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Published reads a file of a Go module of exactly this version, such as the CustomResourceDefinitions that a project
// publishes. The module is downloaded to Go's module cache, and checked against Go's checksum database.
func Published(ctx context.Context, module, version, file string) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	command.Dir = os.TempDir() // Outside of any module, whose requirements would matter.
	out, err := command.Output()
	var downloaded struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &downloaded); jsonErr != nil || downloaded.Dir == "" {
		return "", fmt.Errorf("%s@%s: %v %v %s", module, version, err, jsonErr, downloaded.Error)
	}
	text, err := os.ReadFile(filepath.Join(downloaded.Dir, filepath.FromSlash(file)))
	return string(text), err
}
