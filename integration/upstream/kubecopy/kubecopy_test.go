package kubecopy

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"testing"
)

func TestRenameLeavesTheRestAsItIs(t *testing.T) {
	source := "package p\n\n// Run runs.\nfunc (t *T) Run() { t.Run() }\n\nfunc Run() {}\n\nfunc Stop() {}\n"
	text, count, err := Rename([]byte(source), "old", func(_ *token.FileSet, _ *ast.File, function *ast.FuncDecl) (bool, error) {
		return function.Name.Name == "Run", nil
	})
	want := "package p\n\n// Run runs.\nfunc (t *T) oldRun() { t.Run() }\n\nfunc oldRun() {}\n\nfunc Stop() {}\n"
	if err != nil || count != 2 || string(text) != want {
		t.Errorf("%d, %v:\n%s", count, err, text)
	}
	if _, _, err := Rename([]byte("package"), "old", nil); err == nil {
		t.Error("a file that is not Go was accepted")
	}
}

func TestWhatIsThereIsNotCopiedAgain(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"a/new.go": "new", "a/changed.go": "original"} {
		if err := os.MkdirAll(filepath.Join(from, "a"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(to, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "a/changed.go"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := copyMissing(from, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a/new.go": "new", "a/changed.go": "changed"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
