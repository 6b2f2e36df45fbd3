package controlplane_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	controlplane "outboard.dev/integration/control_plane"
)

// While the API server is away the shim says so once and at growing intervals, not for every informer, and first of
// all where a person looks.
func TestAPIServerIsAway(t *testing.T) {
	t.Parallel()
	c := controlplane.ForTest(t, controlplane.Options{})
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log := func() []byte {
		text, err := os.ReadFile(outboard.Shim.LogPath)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := len(log())
	c.StopAPIServer()
	// The line is repeated 10 s after the first one. By then each of the informers has tried several times.
	eventually(t, func(context.Context) error {
		if !bytes.Contains(log()[before:], []byte("has not answered for 1")) {
			return fmt.Errorf("the log since the API server ended:\n%s", log()[before:])
		}
		return nil
	})
	news := string(log()[before:])
	if lines := strings.Count(news, "\n"); lines > 5 {
		t.Errorf("%d lines in about 10 s:\n%s", lines, news)
	}
	response, err := http.Get(outboard.URL() + "/readyz?verbose")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusInternalServerError || !strings.HasPrefix(string(page), "[-]api-server failed") {
		t.Errorf("/readyz: %d\n%s", response.StatusCode, page)
	}
	if response, err := http.Get(outboard.URL() + "/livez"); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("/livez: %v %v", response, err)
	}
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"queue", "hosts"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(directory, "outboard"), verb,
			"--server", strings.TrimPrefix(outboard.URL(), "http://")).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "warning: API server https://127.0.0.1:") {
			t.Errorf("outboard %s: %v\n%s", verb, err, out)
		}
	}
}
