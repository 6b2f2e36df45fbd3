package wire_schema

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// kindRow is a row of cli/manifests/kinds.cc: kind, apiVersions, use.
var kindRow = regexp.MustCompile(`\{"([A-Za-z]+)",\s*"([^"]+)",\s*k([A-Za-z]+)\}`)

type kindUse struct {
	versions []string
	use      string
}

func knownKinds(t *testing.T) map[string]kindUse {
	t.Helper()
	source, err := os.ReadFile("../../cli/manifests/kinds.cc")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]kindUse{}
	for _, row := range kindRow.FindAllStringSubmatch(string(source), -1) {
		kinds[row[1]] = kindUse{strings.Fields(row[2]), row[3]}
	}
	if len(kinds) < 50 {
		t.Fatalf("only %d kinds were found", len(kinds))
	}
	return kinds
}

// notInManifests are types with metadata that are not kept in files: requests, answers and internal types.
var notInManifests = regexp.MustCompile(`^(Binding|Eviction|Scale|TokenRequest|TokenReview|PodStatusResult|RangeAllocation|StorageVersion|.*AccessReview|.*SubjectReview|.*RulesReview)$`)

// elsewhere are kinds of API servers whose types are in other modules.
var elsewhere = []string{"APIService", "CustomResourceDefinition"}

// served returns the kinds of the API's types with all versions that this release has not removed.
func served(t *testing.T) map[string][]schema.GroupVersion {
	t.Helper()
	kinds := map[string][]schema.GroupVersion{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		object, err := scheme.Scheme.New(kind)
		if err != nil {
			continue
		}
		if _, err := meta.Accessor(object); err != nil || notInManifests.MatchString(kind.Kind) {
			continue
		}
		if removed, ok := object.(interface{ APILifecycleRemoved() (int, int) }); ok {
			if major, minor := removed.APILifecycleRemoved(); major == 1 && minor <= 36 {
				continue
			}
		}
		kinds[kind.Kind] = append(kinds[kind.Kind], kind.GroupVersion())
	}
	return kinds
}

func TestManifestsKnowTheKindsOfKubernetes(t *testing.T) {
	known := knownKinds(t)
	for kind, versions := range served(t) {
		row, ok := known[kind]
		if !ok {
			t.Errorf("kinds.cc lacks %s of %v", kind, versions)
			continue
		}
		for _, version := range versions {
			mustServe := row.use != "Skipped" || version.Version == "v1"
			if mustServe && !slices.Contains(row.versions, version.String()) {
				t.Errorf("kinds.cc: %s lacks %s", kind, version)
			}
		}
		for _, name := range row.versions {
			if !slices.ContainsFunc(versions, func(version schema.GroupVersion) bool { return version.String() == name }) {
				t.Errorf("kinds.cc: %s has no %s", name, kind)
			}
		}
		delete(known, kind)
	}
	for kind := range known {
		if !slices.Contains(elsewhere, kind) {
			t.Errorf("kinds.cc: Kubernetes has no kind %s", kind)
		}
	}
}

// Objects as API servers send them, with every field set, contain no field that the reader of manifests takes for a
// mistake.
func TestManifestsKnowAllFieldsOfRealObjects(t *testing.T) {
	outboard := os.Getenv("OUTBOARD_BINARY")
	if outboard == "" {
		t.Skip("OUTBOARD_BINARY is not set")
	}
	modules, err := moduleDirectories()
	if err != nil {
		t.Fatal(err)
	}
	var samples []map[string]any
	for kind, row := range knownKinds(t) {
		if row.use != "Read" && row.use != "ReadWorkload" {
			continue
		}
		group := strings.ReplaceAll(row.versions[0], "/", ".")
		if !strings.Contains(row.versions[0], "/") {
			group = "core." + group
		}
		text, err := os.ReadFile(filepath.Join(modules["k8s.io/api"], "testdata", "HEAD", group+"."+kind+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		var sample map[string]any
		if err := json.Unmarshal(text, &sample); err != nil {
			t.Fatal(err)
		}
		samples = append(samples, sample)
	}
	if len(samples) < 15 {
		t.Errorf("only %d kinds are checked", len(samples))
	}
	for _, line := range unknownFields(t, outboard, samples) {
		t.Error(line)
	}
	// The reader notices a field that no kind has.
	for _, sample := range samples {
		sample["metadata"].(map[string]any)["nmae"] = "x"
	}
	noticed := unknownFields(t, outboard, samples)
	if len(noticed) != len(samples) {
		t.Errorf("%d misspelt fields are noticed in %d objects:\n%s", len(noticed), len(samples), strings.Join(noticed, "\n"))
	}
	for _, line := range noticed {
		if !strings.HasSuffix(line, "metadata.nmae: unknown field, ignored; did you mean name?") {
			t.Error(line)
		}
	}
}

// unknownFields returns what `outboard simulate` says about unknown fields. It also reports errors, because the values
// of samples are arbitrary.
func unknownFields(t *testing.T, outboard string, objects []map[string]any) []string {
	t.Helper()
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command := exec.Command(outboard, "simulate", "--cluster", "-", "--pods", "no-such-file")
	command.Stdin, command.Stderr = bytes.NewReader(list), &stderr
	if err := command.Run(); err == nil {
		t.Fatal("must fail, because a file is missing")
	}
	if !strings.Contains(stderr.String(), "no-such-file: No such file or directory") {
		t.Fatalf("no list of errors: %s", stderr.String())
	}
	var found []string
	for _, line := range strings.Split(stderr.String(), "\n") {
		if strings.Contains(line, "unknown field") {
			found = append(found, line)
		}
	}
	return found
}
