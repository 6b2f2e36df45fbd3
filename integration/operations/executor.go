package operations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pageTime bounds the commands of a page.
const pageTime = 15 * time.Minute

// Executor runs blocks of the guide as a reader would: those of a page in one shell, in a folder that has `deploy`.
//
// Which cluster the kubeconfig names does not matter; Marks select the blocks that make sense there.
type Executor struct {
	Kubeconfig string
	Marks      []string
	Root       string   // of the repository
	Programs   []string // folders before the rest of PATH: kubectl, helm, outboard
	Log        func(format string, args ...any)
}

// Run executes the blocks and compares their output with what the pages show. It returns how many it ran, and an error
// with the place, the commands and the output of the first that failed. What the commands write lies in folder.
func (e Executor) Run(ctx context.Context, folder string, blocks []Block) (ran int, err error) {
	if err := os.Symlink(filepath.Join(e.Root, "deploy"), filepath.Join(folder, "deploy")); err != nil {
		return 0, err
	}
	for len(blocks) > 0 {
		page := []Block{}
		name := blocks[0].Page
		for ; len(blocks) > 0 && blocks[0].Page == name; blocks = blocks[1:] {
			if blocks[0].Runs(e.Marks) {
				page = append(page, blocks[0])
			}
		}
		if len(page) == 0 {
			continue
		}
		began := time.Now()
		if err := e.page(ctx, folder, page); err != nil {
			return ran, err
		}
		ran += len(page)
		e.Log("docs/operations/%s: %d blocks, %.0f s", name, len(page), time.Since(began).Seconds())
	}
	return ran, nil
}

// The shell prints it before each block, and after the last one.
const separator = "\x1e\n"

func (e Executor) page(ctx context.Context, folder string, blocks []Block) error {
	script := &strings.Builder{}
	script.WriteString("set -euo pipefail\ntrap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\n")
	for _, block := range blocks {
		fmt.Fprintf(script, "printf '\\036\\n'\n%s", block.Commands)
	}
	script.WriteString("printf '\\036\\n'\n")
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	shell.Dir = folder
	shell.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig, "HOME="+folder, "LC_ALL=C.UTF-8",
		"PATH="+strings.Join(append(e.Programs, os.Getenv("PATH")), ":"))
	var out bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &out
	// With what it leaves in the background, such as a port-forward.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.WaitDelay = time.Second
	err := shell.Run()
	if shell.Process != nil {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // The shell succeeded; only its background still had the output open.
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	outputs := strings.Split(out.String(), separator)[1:]
	if err == nil && len(outputs) != len(blocks)+1 {
		err = errors.New("the shell ended early")
	}
	if err != nil {
		at := max(min(len(outputs), len(blocks))-1, 0)
		return fmt.Errorf("%s: %w\n%s\noutput:\n%s", blocks[at].Place(), err, blocks[at].Commands, strings.Join(outputs[at:], ""))
	}
	for i, block := range blocks {
		if block.Shown == "" {
			continue
		}
		if err := Compare(block.Shown, outputs[i]); err != nil {
			return fmt.Errorf("%s: %w\n%s\noutput:\n%s", block.Place(), err, block.Commands, outputs[i])
		}
	}
	return nil
}
