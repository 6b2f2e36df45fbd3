package testcluster_test

import (
	"path/filepath"
	"testing"
	"time"

	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/operations"
	testcluster "outboard.dev/integration/test_cluster"
)

// The operations guide from install to uninstall, with kustomize and with Helm: all its commands, also those that talk to
// Outboard's pods.
func TestTheOperationsGuide(t *testing.T) {
	images := imageArchives(t)
	programs, err := operations.Programs(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := operations.Guide(filepath.Join(root, "docs", "operations"))
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []struct {
		name  string
		marks []string
	}{
		{"kustomize", []string{operations.Kustomize, operations.KustomizeCluster}},
		{"Helm", []string{operations.Helm, operations.HelmCluster}},
	} {
		t.Run(way.name, func(t *testing.T) {
			c := testcluster.ForTest(t, testcluster.Options{Nodes: 2, Images: images, DNS: true})
			e := operations.Executor{Kubeconfig: c.AdminKubeconfig, Marks: way.marks, Root: root, Programs: programs, Log: t.Logf}
			began := time.Now()
			ran, err := e.Run(t.Context(), t.TempDir(), blocks)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d blocks of the guide in %.1f minutes", ran, time.Since(began).Minutes())
		})
	}
}
