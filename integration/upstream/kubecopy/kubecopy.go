// Package kubecopy copies Kubernetes' module out of the module cache, so that its own tests can run with changes:
// files in the module cache cannot be overlaid. Copies are outside the repository.
package kubecopy

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

const module = "k8s.io/kubernetes"

// Tree is a copy that `go` uses instead of the module.
type Tree struct {
	// Original is the module in the module cache, Copied the copy.
	Original, Copied string
	directory        string
	modfile          string
}

// Prepare copies missing files to `copied`. directory is that of a Go module that requires Kubernetes' module; go
// files in folder replace the original by the copy.
func Prepare(ctx context.Context, directory, copied, folder string) (*Tree, error) {
	original, err := list(ctx, directory)
	if err != nil {
		return nil, err
	}
	if err := copyMissing(original, copied); err != nil {
		return nil, err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return nil, err
		}
		if name == "go.mod" {
			data = append(data, "\nreplace "+module+" => "+copied+"\n"...)
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	return &Tree{Original: original, Copied: copied, directory: directory, modfile: filepath.Join(folder, "go.mod")}, nil
}

// Go is `go VERB ARGUMENTS…` with the copy instead of the original.
func (t *Tree) Go(ctx context.Context, verb string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", append([]string{verb, "-mod=mod", "-modfile=" + t.modfile}, arguments...)...)
	command.Dir = t.directory
	return command
}

// Rewrite creates a file of the copy from the original.
func (t *Tree) Rewrite(path string, change func(source []byte) ([]byte, error)) error {
	source, err := os.ReadFile(filepath.Join(t.Original, path))
	if err != nil {
		return err
	}
	text, err := change(source)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(filepath.Join(t.Copied, path), text, 0o644)
}

// Add writes a file that the original does not have.
func (t *Tree) Add(path, text string) error {
	return os.WriteFile(filepath.Join(t.Copied, path), []byte(text), 0o644)
}

// Rename adds a prefix to the names of the chosen functions and methods of a file, and returns their number.
func Rename(source []byte, prefix string, chosen func(*token.FileSet, *ast.File, *ast.FuncDecl) (bool, error)) ([]byte, int, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, 0, err
	}
	var offsets []int
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		yes, err := chosen(set, file, function)
		if err != nil {
			return nil, 0, err
		}
		if yes {
			offsets = append(offsets, set.Position(function.Name.Pos()).Offset)
		}
	}
	sort.Sort(sort.Reverse(sort.IntSlice(offsets)))
	for _, offset := range offsets {
		source = append(source[:offset:offset], append([]byte(prefix), source[offset:]...)...)
	}
	return source, len(offsets), nil
}

func list(ctx context.Context, directory string) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	command.Dir = directory
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", module, err)
	}
	return strings.TrimSpace(string(output)), nil
}

func copyMissing(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if _, err := os.Lstat(target); err == nil || !entry.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}
