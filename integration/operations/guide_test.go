package operations

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/deploy"
)

func root(t *testing.T) string {
	t.Helper()
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func guide(t *testing.T) string {
	t.Helper()
	return filepath.Join(root(t), "docs", "operations")
}

// Every page is in the table of contents, and every block of commands has a mark.
func TestThePages(t *testing.T) {
	pages, err := Pages(guide(t))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(guide(t), "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "README.md" && !slices.Contains(pages, name) {
			t.Errorf("docs/operations/README.md does not name %s", name)
		}
	}
	blocks, err := Guide(guide(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{Kustomize, Helm, KustomizeCluster, HelmCluster} {
		if !slices.ContainsFunc(blocks, func(b Block) bool { return b.Runs([]string{mark}) }) {
			t.Errorf("no block is marked %q", mark)
		}
	}
}

func TestParse(t *testing.T) {
	blocks, err := parse("page.md", "# A page\n\n<!-- tested by: operations operations-helm -->\n```sh\nls\npwd\n```\n\n<!-- shows -->\n```text\na b1\n```\n\n```text\nnot run\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 1 || blocks[0].Line != 4 || blocks[0].Commands != "ls\npwd\n" || blocks[0].Shown != "a b1\n" || !slices.Equal(blocks[0].Marks, []string{Kustomize, Helm}) {
		t.Errorf("%+v", blocks)
	}
	for text, wanted := range map[string]string{
		"Text\n```sh\nls\n```\n":                                           "no test runs this block",
		"<!-- tested by: somewhere -->\n```sh\nls\n```\n":                  "unknown mark",
		"<!-- shows -->\n```text\na\n```\n":                                "output without commands",
		"<!-- tested by: operations -->\n\nText\n\n```sh\nls\n```\nText\n": "no test runs this block",
	} {
		if _, err := parse("page.md", text); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%q: %v, want %q", text, err, wanted)
		}
	}
}

func TestCompare(t *testing.T) {
	output := "NAME READY AGE\noutboard-shim-6d8f-x2x7k 2/3 5s\nprogress\nyes\n"
	for _, shown := range []string{"yes\n", "NAME …\noutboard-shim-1 3/3 9m\nyes\n", "progress\n"} {
		if err := Compare(shown, output); err != nil {
			t.Errorf("%q: %v", shown, err)
		}
	}
	for _, shown := range []string{"no\n", "yes\nprogress\n", "NAME READY\n", "NAME READY AGE IP\n", "yes\nyes\n", "yes 5\n"} {
		if Compare(shown, output) == nil {
			t.Errorf("%q matches", shown)
		}
	}
}

// The Executor runs the blocks with its marks, those of a page in one shell, and reports the place of a failure.
func TestExecutor(t *testing.T) {
	block := func(line int, mark, commands, shown string) Block {
		return Block{Page: "page.md", Line: line, Marks: []string{mark}, Commands: commands, Shown: shown}
	}
	run := func(blocks ...Block) (int, error) {
		e := Executor{Kubeconfig: "none", Marks: []string{Kustomize}, Root: root(t), Log: t.Logf}
		return e.Run(t.Context(), t.TempDir(), blocks)
	}
	ran, err := run(block(1, Kustomize, "x=$KUBECONFIG\n", ""), block(2, Helm, "false\n", ""), block(3, Kustomize, "echo \"$x\"; ls -d deploy/crds\n", "none\ndeploy/crds\n"))
	if ran != 2 || err != nil {
		t.Errorf("%d blocks, %v", ran, err)
	}
	for wanted, blocks := range map[string][]Block{
		"page.md:2: exit status 1":       {block(1, Kustomize, "true\n", ""), block(2, Kustomize, "echo said\nfalse | true\n", "")},
		"failed: false":                  {block(1, Kustomize, "false\n", "")},
		"page.md:1: the page shows":      {block(1, Kustomize, "echo 1\n", "2\n3\n"), block(2, Kustomize, "true\n", "")},
		"page.md:1: the shell ended":     {block(1, Kustomize, "exit 0\n", ""), block(2, Kustomize, "true\n", "")},
		"page.md:1: exit status 127":     {block(1, Kustomize, "no-such-program\n", "")},
		"page.md:3: exit status 1\nls x": {block(1, Kustomize, "true\n", ""), block(3, Kustomize, "ls x >/dev/null 2>&1 || exit 1\n", "")},
	} {
		if _, err := run(blocks...); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v, want %q", err, wanted)
		}
	}
	// What a page leaves in the background ends with it.
	if _, err := run(block(1, Kustomize, "sleep 600 &\n", "")); err != nil {
		t.Error(err)
	}
}

// Kinds without a namespace. Objects of other kinds need one, which some components leave to their installation.
var clusterScoped = []string{"Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "FlowSchema", "CustomResourceDefinition",
	"ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// before-you-install.md names every object without a namespace that the manifests create, and no other.
func TestObjectsWithoutANamespaceAreNamed(t *testing.T) {
	named := namedObjects(t)
	folders, err := filepath.Glob(filepath.Join(root(t), "deploy", "kustomize", "*", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, folder := range folders {
		name := filepath.Base(filepath.Dir(folder))
		if name == "canary" { // The same objects with another ending.
			continue
		}
		text, err := deploy.Kustomized(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objectsOf(t, text) {
			if !slices.Contains(clusterScoped, strings.Fields(object)[0]) {
				continue
			}
			found[object] = true
			if !named[object] && object != "Namespace outboard-system" {
				t.Errorf("before-you-install.md does not name the %s of %s", object, name)
			}
		}
	}
	for _, component := range []string{"leader-binds", "node-pool", "checkpoints"} {
		text, err := deploy.Kustomized("components/" + component)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objectsOf(t, text) {
			found[object] = true
			if slices.Contains(clusterScoped, strings.Fields(object)[0]) && !named[object] {
				t.Errorf("before-you-install.md does not name the %s of the component %s", object, component)
			}
		}
	}
	definitions, err := filepath.Glob(filepath.Join(root(t), "deploy", "crds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		text, err := os.ReadFile(definition)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objectsOf(t, string(text)) {
			found[object] = true
			if !named[object] {
				t.Errorf("before-you-install.md does not name the %s", object)
			}
		}
	}
	for object := range named {
		if !found[object] {
			t.Errorf("before-you-install.md names the %s, which no manifest has", object)
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// namedObjects returns the objects of the page's table as `KIND NAME`: each kind of a row's first cell with each name.
func namedObjects(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(guide(t), "before-you-install.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n| object | in | what |\n|---|---|---|\n")
	if !ok {
		t.Fatal("before-you-install.md has no table of objects")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		cell := strings.Split(row, "|")[1]
		var kinds, names []string
		for _, word := range quoted.FindAllStringSubmatch(cell, -1) {
			if slices.Contains(clusterScoped, word[1]) {
				kinds = append(kinds, word[1])
			} else {
				names = append(names, word[1])
			}
		}
		if strings.Contains(cell, "and its binding") {
			kinds = append(kinds, "ValidatingAdmissionPolicyBinding")
		}
		if len(kinds) == 0 || len(names) == 0 {
			t.Errorf("before-you-install.md: a row without kind and name: %s", row)
		}
		for _, kind := range kinds {
			for _, name := range names {
				named[kind+" "+name] = true
			}
		}
	}
	return named
}

// objectsOf returns the objects of a manifest as `KIND NAME`.
func objectsOf(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		object := struct {
			Kind     string
			Metadata struct{ Name string }
		}{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind != "" {
			all = append(all, object.Kind+" "+object.Metadata.Name)
		}
	}
	return all
}

// What a plugin returns for the shim to write, in the code of built-in plugins.
var writes = regexp.MustCompile(`sdk::(CreateObject|ReplaceObject|ReplaceStatus|DeleteObject|PatchObject|PatchPod)\(|mutable_(bind_volume|select_node)\(`)

// backup.md names every built-in plugin that writes objects.
func TestWritersAreNamed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(guide(t), "backup.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root(t), "plugins", "*", "*.cc"))
	if err != nil {
		t.Fatal(err)
	}
	writers := map[string]bool{"DynamicResources": true} // In Go.
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.cc") || !writes.Match(code) {
			continue
		}
		readme, err := os.ReadFile(filepath.Join(filepath.Dir(file), "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(string(readme), "\n")
		writers[strings.TrimPrefix(title, "# ")] = true
	}
	if len(writers) < 5 {
		t.Errorf("only %v write; does the expression still match the SDK's functions?", writers)
	}
	for writer := range writers {
		if !strings.Contains(string(page), "| "+writer) {
			t.Errorf("backup.md does not name %s", writer)
		}
	}
}
