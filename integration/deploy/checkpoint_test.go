package deploy_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	checkpoint    = "outboard-checkpoint" // account, role and policy
	checkpointKey = "outboard/last-checkpoint-time"
	checkpointAt  = "2026-01-05T12:00:00Z"
)

// trainingPod creates a pod with the component's account.
func (c *cluster) trainingPod(name string) *corev1.Pod {
	c.Helper()
	c.applyAll(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: default, labels: {app: train}, annotations: {example.com/other: kept}},
spec: {serviceAccountName: %s, containers: [{name: main, image: pause}]}}`, name, checkpoint))
	pod, err := c.client.CoreV1().Pods("default").Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return pod
}

// report runs a form of sdk/checkpoint as in the pod, with its token and the API server's authority.
func (c *cluster) report(pod, token string, command ...string) (string, error) {
	c.Helper()
	config, err := c.RESTConfig()
	if err != nil {
		c.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		c.Fatal(err)
	}
	authority := config.CAData
	if len(authority) == 0 {
		if authority, err = os.ReadFile(config.CAFile); err != nil {
			c.Fatal(err)
		}
	}
	account := c.TempDir()
	for name, text := range map[string][]byte{"token": []byte(token), "namespace": []byte("default"), "ca.crt": authority} {
		if err := os.WriteFile(filepath.Join(account, name), text, 0o600); err != nil {
			c.Fatal(err)
		}
	}
	run := exec.CommandContext(c.Context(), command[0], command[1:]...)
	run.Dir = path(c.T, "sdk/checkpoint")
	run.Env = append(run.Environ(), "OUTBOARD_ACCOUNT="+account, "POD_NAME="+pod, "POD_NAMESPACE=", "PYTHONDONTWRITEBYTECODE=1",
		"KUBERNETES_SERVICE_HOST="+server.Hostname(), "KUBERNETES_SERVICE_PORT_HTTPS="+server.Port())
	out, err := run.CombinedOutput()
	return string(out), err
}

func (c *cluster) podAnnotations(name string) map[string]string {
	c.Helper()
	pod, err := c.client.CoreV1().Pods("default").Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return pod.Annotations
}

// The component: both forms of sdk/checkpoint write annotations of their own pod, with one right, and the pod may do
// nothing else.
func TestAPodReportsOnlyItsOwnCheckpoint(t *testing.T) {
	t.Parallel()
	c := newClusterOf(t, controlplane.Options{ControllerManager: true, Audit: true})
	c.apply(kustomized(t, "components/checkpoints"))
	first := c.trainingPod("train-0")
	c.trainingPod("train-1")
	c.policyIsTyped(checkpoint)
	token, nowhere := c.boundToken("default", checkpoint, first), c.boundToken("default", checkpoint, nil)

	pods := guarded{checkpoint, func(client kubernetes.Interface, pod string, text []byte) error {
		_, err := client.CoreV1().Pods("default").Patch(t.Context(), pod, types.MergePatchType, text, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}}
	own := c.clientWith(token)
	mine := `{"metadata":{"annotations":{"` + checkpointKey + `":"` + checkpointAt + `","outboard/checkpointing":"true","outboard/estimated-end":"2026-01-06T12:00:00Z"}}}`
	// The policy is effective a moment after it is created.
	c.eventually(func() error { return pods.denied(own, "train-1", mine) })

	for _, form := range [][]string{
		{"python3", "-c", "import outboard_checkpoint, sys; sys.exit(not outboard_checkpoint.written(when=1767614400))"},
		{"sh", "outboard-checkpoint.sh", checkpointAt},
	} {
		if err := c.client.CoreV1().Pods("default").Delete(t.Context(), "train-0", *metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
		c.eventually(func() error {
			_, err := c.client.CoreV1().Pods("default").Get(t.Context(), "train-0", metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("train-0 is still there: %v", err)
			}
			return nil
		})
		first = c.trainingPod("train-0")
		token = c.boundToken("default", checkpoint, first)
		if out, err := c.report("train-0", token, form...); err != nil {
			t.Fatalf("%s: %v\n%s", form[0], err, out)
		}
		got := c.podAnnotations("train-0")
		if got[checkpointKey] != checkpointAt || got["outboard/checkpointing"] != "true" || got["example.com/other"] != "kept" {
			t.Errorf("%s: annotations after a report: %v", form[0], got)
		}
		if out, err := c.report("train-1", token, form...); err == nil {
			t.Errorf("%s: reported for another pod\n%s", form[0], out)
		}
		if got := c.podAnnotations("train-1"); got[checkpointKey] != "" {
			t.Errorf("%s: annotations of another pod: %v", form[0], got)
		}
	}

	pods.writesOnly(c, c.clientWith(token), c.clientWith(nowhere), "train-0", mine,
		`{"metadata":{"annotations":{"outboard/preemptible":"false"}}}`,
		`{"metadata":{"labels":{"app":null}}}`,
		`{"metadata":{"labels":{"kai.scheduler/preemptibility":"non-preemptible"}}}`,
		`{"spec":{"activeDeadlineSeconds":60}}`)
	// Other users are not concerned.
	if err := pods.patch(c.client, "train-1", []byte(`{"metadata":{"labels":{"app":"other"}}}`)); err != nil {
		t.Errorf("another user: %v", err)
	}
	c.checkpointRightIsUsed()
}

// checkpointRightIsUsed: the role grants what reports use, and nothing else.
func (c *cluster) checkpointRightIsUsed() {
	c.Helper()
	role, err := c.client.RbacV1().Roles("default").Get(c.Context(), checkpoint, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if want := (rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}}); len(role.Rules) != 1 || role.Rules[0].String() != want.String() {
		c.Errorf("the role's rules are %v", role.Rules)
	}
	events, err := c.AuditLog("system:serviceaccount:default:" + checkpoint)
	if err != nil {
		c.Fatal(err)
	}
	if len(events) == 0 {
		c.Error("no requests in the audit log")
	}
	if i := slices.IndexFunc(events, func(event controlplane.AuditEvent) bool {
		return event.Verb != "patch" || event.ObjectRef == nil || event.ObjectRef.Resource != "pods" || event.ObjectRef.Subresource != ""
	}); i >= 0 {
		c.Errorf("a request other than a patch of a Pod: %+v", events[i])
	}
}
