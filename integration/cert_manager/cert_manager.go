// Package certmanager runs the real cert-manager beside a control plane of package controlplane, with the
// CustomResourceDefinitions and the webhooks of its chart.
package certmanager

import (
	"context"
	"maps"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	controlplane "outboard.dev/integration/control_plane"
)

// Module and Version are cert-manager's. program/go.mod requires the same.
const (
	Module  = "github.com/cert-manager/cert-manager"
	Version = "v1.21.2"
)

const (
	namespace    = "cert-manager"
	startTimeout = time.Minute // Long, because the machine may be busy.
)

var (
	group        = schema.GroupVersion{Group: "cert-manager.io", Version: "v1"}
	Certificates = group.WithResource("certificates")
	issuers      = group.WithResource("issuers")
	// What the program needs to be served.
	resources = []schema.GroupVersionResource{Certificates, issuers, group.WithResource("certificaterequests"), group.WithResource("clusterissuers")}
)

// ApplyResources makes the API server serve cert-manager's resources, and returns when it does. Nothing answers them.
func ApplyResources(ctx context.Context, c *controlplane.ControlPlane) error {
	files, err := rendered(ctx, "")
	if err != nil {
		return err
	}
	return applyResources(ctx, c, files)
}

// Build builds the program, and returns its path. `progress` hears of the first build, which takes minutes.
func Build(ctx context.Context, progress func(format string, args ...any)) (string, error) {
	return controlplane.BuildTool(ctx, "cert-manager-"+Version, "integration/cert_manager/program", ".", progress)
}

// Start runs cert-manager until the control plane stops, and returns when its webhook accepts an Issuer.
func Start(ctx context.Context, c *controlplane.ControlPlane, progress func(format string, args ...any)) error {
	program, err := Build(ctx, progress)
	if err != nil {
		return err
	}
	addresses, err := controlplane.FreeAddresses(1)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return err
	}
	files, err := rendered(ctx, "localhost:"+port)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}"); err != nil {
		return err
	}
	if err := applyResources(ctx, c, files); err != nil {
		return err
	}
	for _, file := range []string{"webhook-mutating-webhook.yaml", "webhook-validating-webhook.yaml"} {
		if err := c.Apply(ctx, files[file]); err != nil {
			return err
		}
	}
	process, err := c.StartProcess("cert-manager", program, "--kubeconfig="+c.AdminKubeconfig, "--webhook-port="+port)
	if err != nil {
		return err
	}
	client, err := c.Dynamic()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	issuer := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Issuer",
		"metadata": map[string]any{"name": "probe"}, "spec": map[string]any{"selfSigned": map[string]any{}}}}
	return process.WaitUntil(ctx, "its webhook does not accept an Issuer", func(ctx context.Context) error {
		_, err := client.Resource(issuers).Namespace(namespace).Create(ctx, issuer, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

func applyResources(ctx context.Context, c *controlplane.ControlPlane, files map[string]string) error {
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(file, "crd-") {
			if err := c.Apply(ctx, files[file]); err != nil {
				return err
			}
		}
	}
	return c.AwaitServed(ctx, resources...)
}

// rendered returns the templates of cert-manager's chart by name, with its webhook at HOST:PORT.
func rendered(ctx context.Context, webhook string) (map[string]string, error) {
	folder, err := controlplane.ModuleFolder(ctx, Module, Version)
	if err != nil {
		return nil, err
	}
	chart, err := loader.LoadDir(filepath.Join(folder, "deploy", "charts", "cert-manager"))
	if err != nil {
		return nil, err
	}
	values, err := chartutil.ToRenderValues(chart, map[string]any{
		"crds":    map[string]any{"enabled": true},
		"webhook": map[string]any{"url": map[string]any{"host": webhook}},
	}, chartutil.ReleaseOptions{Name: "cert-manager", Namespace: namespace, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	templates, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range templates {
		files[path.Base(name)] = text
	}
	return files, nil
}
