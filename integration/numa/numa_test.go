package numa

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

var (
	number = flag.Int("cases", 10000, "cases of each test")
	seed   = flag.Uint64("seed", 1, "the first seed")
)

// Cases without a deliberate difference: all verdicts, and the scores that mean the same, are equal.
func TestPlainCasesAreEqual(t *testing.T) { compare(t, true) }

// Any cases: a verdict that differs has an explanation.
func TestEveryDifferenceIsExplained(t *testing.T) { compare(t, false) }

func compare(t *testing.T, plain bool) {
	var cases []Case
	for i := range *number {
		g := generator{rand.New(rand.NewPCG(*seed, uint64(i))), plain}
		cases = append(cases, g.Case(fmt.Sprintf("node-%d", i)))
	}
	ours := ask(t, cases)
	oracle := newOracle(t, cases)
	verdicts, explained := map[string]int{}, map[string]int{}
	differences, scores := 0, 0
	for i, c := range cases {
		scored := scoreComparable(c)
		reason, score := oracle.answer(t, c, scored)
		verdicts[reason]++
		if scored {
			scores++
			// Theirs is negative where a pod needs more zones than the highest zone's number, which kube-scheduler calls an error.
			score = max(score, 0)
			if got := strconv.FormatInt(score, 10); got != ours[i].score {
				t.Errorf("case %d: score %s, NodeResourceTopologyMatch's is %s:\n%s", i, ours[i].score, got, line(t, c))
			}
		}
		if reason == ours[i].reason {
			continue
		}
		differences++
		because := explanations(c)
		if len(because) == 0 {
			t.Errorf("case %d: %q, NodeResourceTopologyMatch's is %q:\n%s", i, ours[i].reason, reason, line(t, c))
		}
		explained[strings.Join(because, ", ")]++
	}
	t.Logf("%d cases, %d differences, %d scores compared", len(cases), differences, scores)
	for _, counts := range []map[string]int{verdicts, explained} {
		for _, name := range sorted(counts) {
			t.Logf("%6d %s", counts[name], name)
		}
	}
	for _, reason := range []string{"ok", "cannot align pod", "cannot align container", "cannot align init container"} {
		if verdicts[reason] < len(cases)/200 {
			t.Errorf("only %d cases with the verdict %q", verdicts[reason], reason)
		}
	}
	if scores < len(cases)/50 {
		t.Errorf("only %d scores", scores)
	}
}

func sorted(counts map[string]int) []string {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	sort.Slice(names, func(a, b int) bool { return counts[names[a]] > counts[names[b]] })
	return names
}

type answer struct{ reason, score string }

// ask returns what GPUModelMatch says.
func ask(t *testing.T, cases []Case) []answer {
	t.Helper()
	folder := os.Getenv("OUTBOARD_BIN")
	if folder == "" {
		folder = "../../build/release/bin"
	}
	program := exec.Command(filepath.Join(folder, "numa_answers"))
	var input, output, problems bytes.Buffer
	for _, c := range cases {
		input.WriteString(line(t, c) + "\n")
	}
	program.Stdin, program.Stdout, program.Stderr = &input, &output, &problems
	if err := program.Run(); err != nil {
		t.Fatalf("numa_answers (ninja -C build/release numa_answers builds it): %v\n%s", err, problems.String())
	}
	var answers []answer
	for scanner := bufio.NewScanner(&output); scanner.Scan(); {
		reason, score, _ := strings.Cut(scanner.Text(), "\t")
		answers = append(answers, answer{reason, score})
	}
	if len(answers) != len(cases) {
		t.Fatalf("%d answers to %d cases", len(answers), len(cases))
	}
	return answers
}

type object = map[string]any

// line is the case in the syntax of numa_answers.cc.
func line(t *testing.T, c Case) string {
	t.Helper()
	content, err := json.Marshal(c.Topology)
	if err != nil {
		t.Fatal(err)
	}
	var pods []object
	for _, pod := range c.Assumed {
		placed := podObject(pod)
		placed["nodeName"] = c.Node.Name
		pods = append(pods, placed)
	}
	text, err := json.Marshal(object{
		"args": object{"numa": object{"assumedPods": "EveryZone"}},
		"node": object{"name": c.Node.Name, "allocatable": amounts(c.Node.Status.Allocatable)},
		"object": object{"genericObject": object{"resource": "noderesourcetopologies.v1alpha2.topology.node.k8s.io", "name": c.Node.Name,
			"resourceVersion": "1", "json": string(content)}},
		"pods": pods, "pod": podObject(c.Pod)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func podObject(pod corev1.Pod) object {
	result := object{"name": pod.Name, "containers": containers(pod.Spec.Containers)}
	if len(pod.Spec.InitContainers) > 0 {
		result["initContainers"] = containers(pod.Spec.InitContainers)
	}
	if len(pod.Spec.Overhead) > 0 {
		result["overhead"] = amounts(pod.Spec.Overhead)
	}
	return result
}

func containers(of []corev1.Container) []object {
	var all []object
	for _, container := range of {
		one := object{"name": container.Name, "requests": amounts(container.Resources.Requests), "limits": amounts(container.Resources.Limits)}
		if container.RestartPolicy != nil {
			one["restartPolicyAlways"] = true
		}
		all = append(all, one)
	}
	return all
}

func amounts(list corev1.ResourceList) object {
	all := object{}
	for name, quantity := range list {
		all[string(name)] = quantity.String()
	}
	return all
}
