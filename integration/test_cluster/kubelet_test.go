package testcluster_test

import (
	"strings"
	"testing"
	"time"

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
    livenessProbe: {exec: {command: [pause, --check]}, periodSeconds: 1}
    readinessProbe: {exec: {command: [pause, --check]}, periodSeconds: 1}
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

func TestAPodRunsOnAKubelet(t *testing.T) {
	began := time.Now()
	c := testcluster.ForTest(t, testcluster.Options{Nodes: 1, FakeNodes: 1})
	t.Logf("the cluster is ready after %v", time.Since(began).Round(time.Second))
	if err := c.Apply(t.Context(), podWithAll); err != nil {
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
	began = time.Now()
	kubectl("wait", "--for=condition=ContainersReady", "--timeout=120s", "pod/all")
	t.Logf("its containers are ready after %v", time.Since(began).Round(time.Millisecond))
	t.Log(kubectl("get", "pods", "-A", "-o", "wide"))
	if got := kubectl("logs", "all"); !strings.Contains(got, "pause: running") {
		t.Errorf("logs: %q", got)
	}
	kubectl("exec", "all", "--", "pause", "--check")
}
