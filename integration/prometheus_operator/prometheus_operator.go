// Package prometheusoperator runs the real Prometheus operator beside a control plane of package controlplane, and builds a
// Prometheus that can ask the API server.
package prometheusoperator

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	controlplane "outboard.dev/integration/control_plane"
)

// Module and Version are the operator's. operator/go.mod requires the same.
const (
	Module  = "github.com/prometheus-operator/prometheus-operator"
	Version = "v0.85.0"
)

// Of Prometheus; Go modules number its version 3.13.5 so. prometheus/go.mod requires the same.
const (
	prometheusModule  = "github.com/prometheus/prometheus"
	prometheusVersion = "v0.313.5"
	prometheusRelease = "3.13.5"
)

// CRDs is the folder of the module with its CustomResourceDefinitions.
const CRDs = "example/prometheus-operator-crd"

var (
	group        = schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	prometheuses = group.WithResource("prometheuses")
)

// Start runs the operator until the control plane stops, with the administrator's rights, and returns when the API server
// serves its resources. `progress` hears of the first build, which takes minutes.
func Start(ctx context.Context, c *controlplane.ControlPlane, progress func(format string, args ...any)) error {
	program, err := controlplane.BuildTool(ctx, "prometheus-operator-"+Version, "integration/prometheus_operator/operator", Module+"/cmd/operator", progress)
	if err != nil {
		return err
	}
	if err := ApplyResources(ctx, c); err != nil {
		return err
	}
	restConfig, err := c.RESTConfig()
	if err != nil {
		return err
	}
	credentials := map[string][]byte{"operator-ca.crt": restConfig.CAData, "operator.crt": restConfig.CertData, "operator.key": restConfig.KeyData}
	for name, data := range credentials {
		if err := os.WriteFile(filepath.Join(c.Dir, name), data, 0o600); err != nil {
			return err
		}
	}
	addresses, err := controlplane.FreeAddresses(1)
	if err != nil {
		return err
	}
	_, err = c.StartProcess("prometheus-operator", program, "--apiserver="+restConfig.Host, "--ca-file="+filepath.Join(c.Dir, "operator-ca.crt"),
		"--cert-file="+filepath.Join(c.Dir, "operator.crt"), "--key-file="+filepath.Join(c.Dir, "operator.key"), "--web.listen-address="+addresses[0])
	return err
}

// ApplyResources makes the API server serve the operator's resources, and returns when it does. Nothing answers them.
func ApplyResources(ctx context.Context, c *controlplane.ControlPlane) error {
	folder, err := controlplane.ModuleFolder(ctx, Module, Version)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(CRDs), "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s@%s has %d CustomResourceDefinitions: %w", Module, Version, len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, string(text)); err != nil {
			return err
		}
	}
	return c.AwaitServed(ctx, prometheuses, group.WithResource("servicemonitors"), group.WithResource("podmonitors"))
}

// Program builds Prometheus with Kubernetes as its only discovery, which Debian's lacks.
func Program(ctx context.Context, progress func(format string, args ...any)) (string, error) {
	return controlplane.BuildTool(ctx, "prometheus-"+prometheusVersion, "integration/prometheus_operator/prometheus", prometheusModule+"/cmd/prometheus",
		progress, "-tags=remove_all_sd,enable_kubernetes_sd")
}

// CreatePrometheus creates a Prometheus object that selects all monitors and rules of all namespaces. The operator writes a
// configuration for the version of Program; without replicas it runs no pod.
func CreatePrometheus(ctx context.Context, c *controlplane.ControlPlane, namespace, name string) error {
	client, err := c.Dynamic()
	if err != nil {
		return err
	}
	all := map[string]any{}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"version": prometheusRelease, "replicas": int64(0),
			"serviceMonitorSelector": all, "serviceMonitorNamespaceSelector": all, "podMonitorSelector": all, "podMonitorNamespaceSelector": all,
			"ruleSelector": all, "ruleNamespaceSelector": all,
		},
	}}
	_, err = client.Resource(prometheuses).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// Written is what the operator wrote for a Prometheus object.
type Written struct {
	Configuration string
	Rules         map[string]string // by file name
}

// Read returns what the operator has written for a Prometheus object so far.
func Read(ctx context.Context, c *controlplane.ControlPlane, namespace, name string) (*Written, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, "prometheus-"+name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	configuration, err := unzipped(secret)
	if err != nil {
		return nil, err
	}
	rules, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "prometheus-"+name+"-rulefiles-0", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &Written{Configuration: configuration, Rules: rules.Data}, nil
}

func unzipped(secret *corev1.Secret) (string, error) {
	reader, err := gzip.NewReader(bytes.NewReader(secret.Data["prometheus.yaml.gz"]))
	if err != nil {
		return "", fmt.Errorf("prometheus.yaml.gz of Secret %s: %w", secret.Name, err)
	}
	text, err := io.ReadAll(reader)
	// The reloader in Prometheus' pod replaces these by its environment.
	return strings.NewReplacer("$(SHARD)", "0", "$(POD_NAME)", "outside").Replace(string(text)), err
}
