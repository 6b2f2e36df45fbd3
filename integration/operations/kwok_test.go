package operations

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplane "outboard.dev/integration/control_plane"
)

// The guide's commands succeed and show what the pages show, with kustomize and with Helm. KWOK says that Outboard's
// pods run, so that the commands which talk to them are left out.
func TestTheGuide(t *testing.T) {
	programs, err := Programs(t.Context(), t.Logf)
	if errors.Is(err, ErrNoProgram) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := Guide(guide(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, mark := range map[string]string{"kustomize": Kustomize, "Helm": Helm} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := controlplane.ForTest(t, controlplane.Options{ControllerManager: true, KWOK: true})
			startSchedulers(t, c)
			e := Executor{Kubeconfig: c.AdminKubeconfig, Marks: []string{mark}, Root: root(t), Programs: programs, Log: t.Logf}
			ran, err := e.Run(t.Context(), t.TempDir(), blocks)
			if err != nil {
				t.Fatal(err)
			}
			if ran < 20 {
				t.Errorf("only %d blocks ran", ran)
			}
		})
	}
}

// startSchedulers creates two nodes and starts kube-scheduler, which places Outboard's pods, and an Outboard that stands
// for what these pods would do.
func startSchedulers(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 2); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		// As its kubelet labels it; Outboard's pods select Linux.
		if _, err := client.CoreV1().Nodes().Patch(t.Context(), controlplane.FakeNode(i).Name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"kubernetes.io/os":"linux"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.StartKubeScheduler(t.Context(), controlplane.SchedulerConfig{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{Text: "profiles:\n- schedulerName: outboard-scheduler\n"}}); err != nil {
		t.Fatal(err)
	}
}
