// Package harvest runs upstream's own table tests of plugins with recorders in the plugins, and replays the
// recordings through `outboard simulate`. Upstream's sources are read from the module cache; generated files are only
// in a temporary folder.
package harvest

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"outboard.dev/integration/upstream/kubecopy"
)

//go:embed recorder.go.txt
var recorder string

// methods are the recorded methods of a plugin, with their number of parameters.
var methods = map[string]int{"Filter": 4, "PreFilter": 4, "AddPod": 5, "RemovePod": 5, "PreScore": 4, "Score": 4, "NormalizeScore": 4}

// instrument adds recorders to the Go files of a package of the copy.
func instrument(tree *kubecopy.Tree, directory string) error {
	paths, err := filepath.Glob(filepath.Join(tree.Original, directory, "*.go"))
	if err != nil {
		return err
	}
	name, reads := "", map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		err := tree.Rewrite(filepath.Join(directory, filepath.Base(path)), func(source []byte) (text []byte, err error) {
			text, name, err = rewrite(source)
			return text, err
		})
		if err != nil {
			return err
		}
		if err := addGates(path, reads); err != nil {
			return err
		}
	}
	var quoted []string
	for _, gate := range slices.Sorted(maps.Keys(reads)) {
		quoted = append(quoted, strconv.Quote(gate))
	}
	text := strings.Replace(recorder, "package PACKAGE", "package "+name, 1)
	text = strings.Replace(text, "{READS}", "{"+strings.Join(quoted, ", ")+"}", 1)
	return tree.Add(filepath.Join(directory, "zz_harvest_recorder.go"), text)
}

// addGates adds the fields of feature.Features that a file reads and that affect verdicts.
func addGates(path string, reads map[string]bool) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	known := reflect.TypeFor[feature.Features]()
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok && selector.Sel.Name != "EnableSchedulingQueueHint" {
			if _, ok := known.FieldByName(selector.Sel.Name); ok {
				reads[selector.Sel.Name] = true
			}
		}
		return true
	})
	return nil
}

// rewrite renames the recorded functions and adds functions with the old names that call and record them.
func rewrite(source []byte) (text []byte, name string, err error) {
	var added bytes.Buffer
	text, _, err = kubecopy.Rename(source, "unrecorded", func(set *token.FileSet, file *ast.File, function *ast.FuncDecl) (bool, error) {
		name = file.Name.Name
		wrapper, err := wrap(set, function)
		added.WriteString(wrapper)
		return wrapper != "", err
	})
	return append(text, added.Bytes()...), name, err
}

// wrap returns the function that replaces another one, or "" if it is not recorded.
func wrap(set *token.FileSet, function *ast.FuncDecl) (string, error) {
	types, err := parameterTypes(set, function)
	if err != nil {
		return "", err
	}
	name, receiver, call := function.Name.Name, "", "unrecorded"+function.Name.Name
	var before, hook string
	switch {
	case function.Recv == nil && strings.HasPrefix(name, "New") && isConstructor(types):
		features := "nil"
		if len(types) > 3 {
			features = "given"
			before = "\tgiven := p3\n\tp3 = harvestGates(p3, p2)\n"
		}
		hook = fmt.Sprintf("\tharvestMade(r0, p1, p2, %s)\n", features)
	case function.Recv != nil && methods[name] > 0 && methods[name] == len(types) && isPluginMethod(types):
		kind, err := source(set, function.Recv.List[0].Type)
		if err != nil {
			return "", err
		}
		receiver, call = "(harvested "+kind+") ", "harvested."+call
		hook = fmt.Sprintf("\tharvest%s(harvested, %s)\n", name, arguments(len(types), results(function)))
	default:
		return "", nil
	}
	var parameters, returned, values []string
	for i, kind := range types {
		parameters = append(parameters, fmt.Sprintf("p%d %s", i, kind))
	}
	for i, field := range function.Type.Results.List {
		kind, err := source(set, field.Type)
		if err != nil {
			return "", err
		}
		returned, values = append(returned, kind), append(values, fmt.Sprintf("r%d", i))
	}
	return fmt.Sprintf("\nfunc %s%s(%s) (%s) {\n%s\t%s := %s(%s)\n%s\treturn %s\n}\n", receiver, name, strings.Join(parameters, ", "),
		strings.Join(returned, ", "), before, strings.Join(values, ", "), call, names("p", len(types)), hook, strings.Join(values, ", ")), nil
}

func results(function *ast.FuncDecl) int { return len(function.Type.Results.List) }

func names(letter string, count int) string {
	var list []string
	for i := range count {
		list = append(list, fmt.Sprintf("%s%d", letter, i))
	}
	return strings.Join(list, ", ")
}

// arguments returns the parameters without the context, then the results.
func arguments(parameters, results int) string {
	return strings.TrimPrefix(names("p", parameters), "p0, ") + ", " + names("r", results)
}

func parameterTypes(set *token.FileSet, function *ast.FuncDecl) ([]string, error) {
	var types []string
	for _, field := range function.Type.Params.List {
		kind, err := source(set, field.Type)
		if err != nil {
			return nil, err
		}
		for range max(len(field.Names), 1) {
			types = append(types, kind)
		}
	}
	return types, nil
}

func isConstructor(types []string) bool {
	return len(types) >= 3 && types[0] == "context.Context" && types[1] == "runtime.Object" && types[2] == "fwk.Handle"
}

func isPluginMethod(types []string) bool {
	return types[0] == "context.Context" && types[1] == "fwk.CycleState"
}

func source(set *token.FileSet, expression ast.Expr) (string, error) {
	var buffer bytes.Buffer
	err := printer.Fprint(&buffer, set, expression)
	return buffer.String(), err
}
