// Package plugins_test tests the promises of the plugins' READMEs: it applies the manifest of each on a real API
// server, pod by pod, and compares the results with the table below it.
package plugins_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	patience = 20 * time.Second
	// In `goes to` of a README's table.
	pending = "pending: "
)

// promise is the manifest and table of a README.
type promise struct {
	config  string
	shim    string   // ShimConfiguration; empty: none
	objects []string // manifests, in order
	places  map[string]string
}

var (
	manifestBlock = regexp.MustCompile("(?s)## A manifest\n(.*?)```yaml\n(.*?)```\n(.*)")
	tableRow      = regexp.MustCompile("(?m)^\\| `?([a-z0-9.-]+)`? \\| `?([^|`]+?)`? \\| [^|]+ \\|$")
)

// readPromise returns nil if the README has no manifest with a table.
func readPromise(t *testing.T, path string) *promise {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := manifestBlock.FindStringSubmatch(string(text))
	if found == nil || !strings.Contains(found[3], "| pod | goes to | why |") {
		return nil
	}
	p := &promise{places: map[string]string{}}
	table := found[3][strings.Index(found[3], "| pod | goes to | why |"):]
	for _, row := range tableRow.FindAllStringSubmatch(table, -1) {
		if row[1] != "pod" {
			p.places[row[1]] = row[2]
		}
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(found[2])))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch kind.Kind {
		case "KubeSchedulerConfiguration":
			p.config = string(document)
		case "ShimConfiguration":
			p.shim = string(document)
		default:
			p.objects = append(p.objects, string(document))
		}
	}
	if p.config == "" || len(p.places) == 0 {
		t.Fatalf("%s: manifest without KubeSchedulerConfiguration, or table without rows", path)
	}
	return p
}

// became returns the pod's node, or `pending: ` and the message of its condition, or "" if it has neither yet.
func became(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Message != "" {
			return pending + condition.Message
		}
	}
	return ""
}

func keeps(got, promised string) bool {
	if part, isPending := strings.CutPrefix(promised, pending); isPending {
		return strings.HasPrefix(got, pending) && strings.Contains(got, strings.TrimSpace(part))
	}
	return got == promised
}

// await returns the pod's result as soon as it matches the promise, or after a timeout.
func await(ctx context.Context, client kubernetes.Interface, name, promised string) (string, error) {
	got := ""
	for until := time.Now().Add(patience); time.Now().Before(until); {
		pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if got = became(pod); got != "" && (keeps(got, promised) || pod.Spec.NodeName != "") {
			break
		}
		select {
		case <-ctx.Done():
			return got, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return got, nil
}

func removePods(ctx context.Context, client kubernetes.Interface) error {
	now := int64(0)
	return client.CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
}

// clear deletes the objects of a README's manifest.
func clear(ctx context.Context, client kubernetes.Interface) error {
	if err := removePods(ctx, client); err != nil {
		return err
	}
	return client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func TestReadmesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	readmes, err := filepath.Glob("../../../plugins/*/README.md")
	if err != nil || len(readmes) == 0 {
		t.Fatalf("no READMEs (%v)", err)
	}
	clusters := controlplane.NewPool(2, func() (*controlplane.ControlPlane, error) {
		c, err := controlplane.StartForTest(t, controlplane.Options{})
		if err == nil {
			err = c.ApplyCustomResources(t.Context())
		}
		return c, err
	})
	found := 0
	for _, path := range readmes {
		p := readPromise(t, path)
		if p == nil {
			continue
		}
		found++
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			keep(t, clusters.Lend(t), p)
		})
	}
	if found == 0 {
		t.Fatal("found no README with a manifest and a table")
	}
}

func keep(t *testing.T, c *controlplane.ControlPlane, p *promise) {
	ctx := t.Context()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	outboard, err := c.StartOutboard(ctx, controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: p.config}, Shim: p.shim})
	if err != nil {
		t.Fatal(err)
	}
	defer outboard.Stop()
	var classes []string
	defer func() {
		if err := clear(context.WithoutCancel(ctx), client); err != nil {
			t.Error(err)
		}
		if err := c.ClearCustomResources(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
		for _, name := range classes {
			if err := client.SchedulingV1().PriorityClasses().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	}()
	left := map[string]bool{}
	for name := range p.places {
		left[name] = true
	}
	for _, manifest := range p.objects {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(ctx, manifest); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "PriorityClass" {
			classes = append(classes, object.GetName())
		}
		promised, isPromised := p.places[object.GetName()]
		if object.GetKind() != "Pod" || !isPromised {
			continue
		}
		delete(left, object.GetName())
		got, err := await(ctx, client, object.GetName(), promised)
		if err != nil {
			t.Fatal(err)
		}
		if !keeps(got, promised) {
			t.Errorf("pod %s: %q, not %q\n%s", object.GetName(), got, promised, outboard.Shim.LogTail())
			continue
		}
		t.Log(fmt.Sprintf("pod %s: %s", object.GetName(), got))
	}
	for name := range left {
		t.Errorf("the table has pod %s, which is not in the manifest", name)
	}
}
