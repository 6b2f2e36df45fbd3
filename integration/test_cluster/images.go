package testcluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	controlplane "outboard.dev/integration/control_plane"
)

// PauseImage is an image that every node has: it only runs, and `pause --check` succeeds in it. It has the name of
// Kubernetes' own, which deploy/examples names, but is built here, because nodes have no registry.
const PauseImage = "registry.k8s.io/pause:3.10"

// LoadImages imports archives of `docker save`, compressed or not, into every node.
func (c *Cluster) LoadImages(ctx context.Context, archives ...string) error {
	for _, archive := range archives {
		if err := controlplane.InParallel(ctx, len(c.Nodes), len(c.Nodes), func(ctx context.Context, i int) error {
			return c.Nodes[i].loadImage(ctx, archive)
		}); err != nil {
			return fmt.Errorf("load %s: %w", filepath.Base(archive), err)
		}
	}
	return nil
}

func (n *Node) loadImage(ctx context.Context, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	var stream io.Reader = file
	if strings.HasSuffix(archive, ".gz") {
		if stream, err = gzip.NewReader(file); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
	cmd := n.Command(ctx, "ctr", "--namespace", "k8s.io", "images", "import", "-")
	cmd.Stdin = stream
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: import of %s: %w: %s", n.Name, archive, err, out)
	}
	return nil
}

// TagImage gives an image a second name on every node, such as that of the next version.
func (c *Cluster) TagImage(ctx context.Context, image, name string) error {
	for _, node := range c.Nodes {
		if out, err := node.Command(ctx, "ctr", "--namespace", "k8s.io", "images", "tag", "--force", qualified(image), qualified(name)).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: tag %s as %s: %w: %s", node.Name, image, name, err, out)
		}
	}
	return nil
}

// qualified returns the full name that containerd has for the short name of an image of `docker save`.
func qualified(image string) string {
	if strings.Contains(image, "/") {
		return image
	}
	return "docker.io/library/" + image
}

// buildPauseImage builds the image for this machine and returns its archive.
func buildPauseImage(ctx context.Context, dir string) (string, error) {
	root, err := controlplane.Repository()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "pause")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", program, "./test_cluster/cmd/pause")
	build.Dir = filepath.Join(root, "integration")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build of the pause image: %w\n%s", err, out)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	image, err := imageOf("pause", data)
	if err != nil {
		return "", err
	}
	archive := program + ".tar"
	return archive, os.WriteFile(archive, image, 0o644)
}

// imageOf returns an image in the format of `docker save` whose one file is a program, which it runs.
func imageOf(name string, program []byte) ([]byte, error) {
	layer, err := tarOf(file{name, 0o755, program})
	if err != nil {
		return nil, err
	}
	config, err1 := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + name}, "Env": []string{"PATH=/"}, "User": "65535:65535"},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	manifest, err2 := json.Marshal([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{PauseImage}, "Layers": []string{"layer.tar"}},
	})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return tarOf(file{"config.json", 0o644, config}, file{"layer.tar", 0o644, layer}, file{"manifest.json", 0o644, manifest})
}

type file struct {
	name string
	mode int64
	data []byte
}

func tarOf(files ...file) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, f := range files {
		if err := writer.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := writer.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := writer.Close()
	return buffer.Bytes(), err
}
