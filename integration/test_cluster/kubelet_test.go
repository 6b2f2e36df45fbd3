package testcluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	testcluster "outboard.dev/integration/test_cluster"
)

// What the manifests of deploy/ use of a kubelet, in a pod that kube-scheduler places on a real node.
const podWithAll = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
---
apiVersion: v1
kind: Pod
metadata: {name: all, labels: {app: all}}
spec:
  readinessGates: [{conditionType: example.com/allowed}]
  securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    imagePullPolicy: IfNotPresent
    livenessProbe: {exec: {command: [pause, --check]}, periodSeconds: 2, timeoutSeconds: 5}
    readinessProbe: {exec: {command: [pause, --check]}, periodSeconds: 2, timeoutSeconds: 5}
    lifecycle: {preStop: {sleep: {seconds: 1}}}
    resources: {limits: {memory: 64Mi}}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    volumeMounts:
    - {name: memory, mountPath: /memory}
    - {name: settings, mountPath: /settings}
    - {name: labels, mountPath: /labels}
  volumes:
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: settings, configMap: {name: settings}}
  - {name: labels, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
`

// A pod that only a node of KWOK may run.
const podOfFakeNode = `
apiVersion: v1
kind: Pod
metadata: {name: fake}
spec:
  nodeSelector: {outboard.dev/fake-node: "true"}
  tolerations: [{key: outboard.dev/fake-node, operator: Exists}]
  containers: [{name: main, image: example.com/app}]
`

func TestAPodRunsOnAKubelet(t *testing.T) {
	began := time.Now()
	c := testcluster.ForTest(t, testcluster.Options{Nodes: 1, FakeNodes: 1})
	t.Logf("the cluster is ready after %v", time.Since(began).Round(time.Second))
	began = time.Now()
	if err := c.Apply(t.Context(), podWithAll+"---"+podOfFakeNode); err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := c.Kubectl(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	kubectl("wait", "--for=condition=ContainersReady", "--timeout=120s", "pod/all")
	t.Logf("its containers are ready after %v", time.Since(began).Round(time.Millisecond))
	kubectl("wait", "--for=condition=Ready=false", "--timeout=60s", "pod/all")
	kubectl("patch", "pod", "all", "--subresource=status", "--patch", `{"status":{"conditions":[{"type":"example.com/allowed","status":"True"}]}}`)
	kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/all")
	kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/fake")
	if got := kubectl("logs", "all"); !strings.Contains(got, "pause: running") {
		t.Errorf("logs: %q", got)
	}
	for file, want := range map[string]string{
		"/settings/color": "blue",
		"/labels/labels":  `app="all"`,
		"/proc/mounts":    " /memory tmpfs ",
		"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "default",
	} {
		if got := kubectl("exec", "all", "--", "pause", "--print", file); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	// The Service's address, and the way to the API server.
	kubectl("exec", "all", "--", "pause", "--connect", kubectl("get", "service", "kubernetes", "--output", "jsonpath={.spec.clusterIP}")+":443")

	kubectl("patch", "configmap", "settings", "--patch", `{"data":{"color":"green"}}`)
	began = time.Now()
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		return kubectl("exec", "all", "--", "pause", "--print", "/settings/color") == "green", nil
	}); err != nil {
		t.Errorf("the changed ConfigMap does not arrive: %v", err)
	}
	t.Logf("a changed ConfigMap arrives after %v", time.Since(began).Round(time.Millisecond))
	kubectl("delete", "pod", "all", "fake", "--timeout=60s")
}
