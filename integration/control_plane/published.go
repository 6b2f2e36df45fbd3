package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ModuleFolder returns where the files of a Go module of exactly this version are. The module is downloaded to Go's module
// cache, and checked against Go's checksum database.
func ModuleFolder(ctx context.Context, module, version string) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	command.Dir = os.TempDir() // Outside of any module, whose requirements would matter.
	out, err := command.Output()
	var downloaded struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &downloaded); jsonErr != nil || downloaded.Dir == "" {
		return "", fmt.Errorf("%s@%s: %v %v %s", module, version, err, jsonErr, downloaded.Error)
	}
	return downloaded.Dir, nil
}

// Published reads a file of a module's version, such as the CustomResourceDefinitions that a project publishes.
func Published(ctx context.Context, module, version, file string) (string, error) {
	folder, err := ModuleFolder(ctx, module, version)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(file)))
	return string(text), err
}
