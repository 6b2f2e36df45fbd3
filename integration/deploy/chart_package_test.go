package deploy_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// The chart's archive of a release, which a script makes so that its bytes repeat, is what Helm reads from the folder.
func TestTheChartPackage(t *testing.T) {
	version := strings.TrimSpace(read(t, "VERSION"))
	script := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c",
		`. integration/release/assemble.sh; chart_archive "$1" deploy/chart/outboard "$2"`, "chart", version, t.TempDir())
	out := script.Args[len(script.Args)-1]
	script.Dir = path(t, ".")
	script.Env = append(script.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if text, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	packed, err := loader.LoadFile(filepath.Join(out, "outboard-"+version+".tgz"))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := loader.LoadDir(path(t, "deploy/chart/outboard"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(folder.Metadata, packed.Metadata); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(contents(folder), contents(packed)); diff != "" {
		t.Error(diff)
	}
}

// contents is the text of each file of the chart.
func contents(c *chart.Chart) map[string]string {
	all := map[string]string{}
	for _, file := range c.Raw {
		all[file.Name] = string(file.Data)
	}
	return all
}
