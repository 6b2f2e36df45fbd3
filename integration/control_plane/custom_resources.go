package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// CustomResources are the resources of deploy/crds.
func CustomResources() []schema.GroupVersionResource {
	group := schema.GroupVersion{Group: "accelerator.sched.io", Version: "v1alpha1"}
	return []schema.GroupVersionResource{
		group.WithResource("trainingjobplacements"), group.WithResource("staticippools"), group.WithResource("staticipreservations"),
	}
}

// ApplyCustomResources applies deploy/crds and returns when the API server serves them all.
func (c *ControlPlane) ApplyCustomResources(ctx context.Context) error {
	root, err := Repository()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "crds", "*.yaml"))
	if err != nil || len(files) != len(CustomResources()) {
		return fmt.Errorf("deploy/crds has %d files, want %d (%v)", len(files), len(CustomResources()), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := yaml.UnmarshalStrict(text, &map[string]any{}); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := c.Apply(ctx, string(text)); err != nil && !apierrors.IsAlreadyExists(errors.Unwrap(err)) {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return c.AwaitServed(ctx, CustomResources()...)
}

// AwaitServed returns when the API server serves all these resources, which CustomResourceDefinitions define.
func (c *ControlPlane) AwaitServed(ctx context.Context, resources ...schema.GroupVersionResource) error {
	client, err := c.Dynamic()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, resource := range resources {
		for {
			_, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not served: %w", resource.Resource, err)
			case <-time.After(50 * time.Millisecond): // Poll interval.
			}
		}
	}
	return nil
}

// ClearCustomResources deletes all objects of these resources, also those with finalizers.
func (c *ControlPlane) ClearCustomResources(ctx context.Context) error {
	client, err := c.Dynamic()
	if err != nil {
		return err
	}
	for _, resource := range CustomResources() {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, object := range list.Items {
			objects := client.Resource(resource).Namespace(object.GetNamespace())
			free := []byte(`{"metadata":{"finalizers":null}}`)
			if _, err := objects.Patch(ctx, object.GetName(), types.MergePatchType, free, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			if err := objects.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}
