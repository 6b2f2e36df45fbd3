package wire_schema

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// wireFiles reads the schema of the shim's build, by the paths of its imports.
func wireFiles(t *testing.T) map[string]string {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "shim", "kube", "wire", "*.proto"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no shim/kube/wire/*.proto: %v", err)
	}
	sources := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources[filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))] = string(data)
	}
	return sources
}

// One for all tests, because compiling it takes longer than a check.
var upstream = sync.OnceValues(NewUpstream)

func check(t *testing.T, sources map[string]string) *Report {
	t.Helper()
	u, err := upstream()
	if err != nil {
		t.Fatal(err)
	}
	report, err := u.Check(context.Background(), sources)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestShimsSchemaIsASubsetOfKubernetes(t *testing.T) {
	report := check(t, wireFiles(t))
	for _, problem := range report.Problems {
		t.Error(problem)
	}
	if report.Messages < 20 || report.Fields < 80 {
		t.Errorf("only %d messages and %d fields were compared", report.Messages, report.Fields)
	}
	t.Logf("%d messages, %d fields", report.Messages, report.Fields)
}

var numberedField = regexp.MustCompile(`(?m)^(\s+[^/\n=]*= *)(\d+)( *(?:\[[^\n]*\])?;)`)

// The check must notice every single wrong number in the shim's schema.
func TestEveryWrongNumberIsNoticed(t *testing.T) {
	sources := wireFiles(t)
	mutants := 0
	for path, source := range sources {
		for _, at := range numberedField.FindAllStringSubmatchIndex(source, -1) {
			statement := source[at[0]:at[1]]
			if strings.Contains(statement, "reserved") || strings.Contains(statement, "option ") || testing.Short() && mutants >= 40 {
				continue
			}
			number, err := strconv.Atoi(source[at[4]:at[5]])
			if err != nil {
				t.Fatal(err)
			}
			mutant := map[string]string{}
			for name, text := range sources {
				mutant[name] = text
			}
			// A number that no message uses.
			mutant[path] = source[:at[4]] + strconv.Itoa(number+7000) + source[at[5]:]
			mutants++
			if report := check(t, mutant); !strings.Contains(strings.Join(report.Problems, "\n"), strconv.Itoa(number+7000)) {
				t.Errorf("%s: not noticed: %s", path, strings.TrimSpace(mutant[path][at[0]:at[1]+4]))
			}
		}
	}
	if mutants < 20 {
		t.Errorf("only %d fields were changed", mutants)
	}
}

const sample = `
syntax = "proto3";
package outboard.kube.wire;
// upstream: k8s.io.api.core.v1
// upstream: k8s.io.apimachinery.pkg.apis.meta.v1

message Taint {
  string key = 1;
  bytes value = 2;
  optional string effect = 3;
  reserved 4;
  reserved "timeAdded";
}

message NodeSpec {
  bool unschedulable = 4;
  repeated Taint taints = 5;
  reserved 1 to 3, 6, 7;
  reserved "podCIDR", "podCIDRs", "providerID", "externalID", "configSource";
}

message LabelSelector {
  map<string, string> match_labels = 1;
  reserved 2;
  reserved "matchExpressions";
}

message ContainerStateRunning {
  // upstream: k8s.io.apimachinery.pkg.apis.meta.v1.Time
  message Moment {
    int64 seconds = 1;
    reserved 2;
    reserved "nanos";
  }
  Moment started_at = 1;
}

message ContainerPort {
  string name = 1;
  int32 host_port = 2;
  int32 container_port = 3;
  string protocol = 4;
  string host_ip = 5;
}

// A node.
//
// upstream: k8s.io.api.core.v1.Node
message Machine {
  bytes metadata = 1;
  NodeSpec spec = 2;
  bytes status = 3;
}
`

func TestSampleIsCorrect(t *testing.T) {
	report := check(t, map[string]string{"sample.proto": sample})
	if len(report.Problems) > 0 || report.Messages != 7 || report.Fields != 16 {
		t.Errorf("%+v", report)
	}
}

func TestMistakesInTheSampleAreNoticed(t *testing.T) {
	for _, mistake := range []struct{ name, from, to, problem string }{
		{"number", "unschedulable = 4", "unschedulable = 40", "number 40, upstream 4"},
		{"scalar type", "string key = 1", "int64 key = 1", "type int64, upstream string"},
		{"signedness", "int64 seconds", "uint64 seconds", "type uint64, upstream int64"},
		{"bytes for a number", "int64 seconds", "bytes seconds", "type bytes, upstream int64"},
		{"label", "repeated Taint taints", "Taint taints", "is singular, upstream repeated"},
		{"map for a list", "repeated Taint taints", "map<string, Taint> taints", "is a map, upstream repeated"},
		{"map value", "map<string, string> match_labels", "map<string, int64> match_labels", "type int64, upstream string"},
		{"unknown field", "host_ip", "host_ipv8", "no such field"},
		{"message type", "NodeSpec spec = 2", "Taint spec = 2", "upstream has k8s.io.api.core.v1.NodeSpec here"},
		{"unknown message", "message ContainerPort", "message ContainerDoor", "no package named at the top"},
		{"unknown upstream", "k8s.io.api.core.v1.Node\n", "k8s.io.api.core.v1.Machine\n", "upstream has no message"},
		{"wrong upstream", "k8s.io.api.core.v1.Node\n", "k8s.io.api.core.v1.Pod\n", "upstream has k8s.io.api.core.v1.PodSpec here"},
		{"field forgotten", `, "configSource"`, "", "neither present nor reserved"},
		{"number forgotten", "1 to 3, 6, 7", "1 to 3, 7", "configSource = 6: neither present nor reserved"},
		{"reserved too much", `"timeAdded"`, `"timeAdded", "timeRemoved"`, "reserves the name timeRemoved"},
		{"reserved a number too much", "reserved 4;", "reserved 4, 5;", "reserves the number 5"},
		{"no upstream", "// upstream: k8s.io.api.core.v1\n", "", "no package named at the top"},
	} {
		t.Run(mistake.name, func(t *testing.T) {
			mutant := strings.Replace(sample, mistake.from, mistake.to, 1)
			if mutant == sample {
				t.Fatal("the sample has no", mistake.from)
			}
			report := check(t, map[string]string{"sample.proto": mutant})
			if !strings.Contains(strings.Join(report.Problems, "\n"), mistake.problem) {
				t.Errorf("want a problem with %q, got %q", mistake.problem, report.Problems)
			}
		})
	}
}
