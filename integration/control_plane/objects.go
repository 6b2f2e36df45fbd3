package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var getOptions = metav1.GetOptions{}

// clusterScoped are the kinds without a namespace that tests create.
var clusterScoped = map[string]bool{
	"Node": true, "Namespace": true, "PriorityClass": true, "FlowSchema": true, "ClusterRole": true,
	"ClusterRoleBinding": true, "PersistentVolume": true, "StorageClass": true, "RuntimeClass": true,
	"CustomResourceDefinition": true, "DeviceClass": true, "ResourceSlice": true, "StaticIPPool": true, "StaticIPReservation": true,
	"MutatingAdmissionPolicy": true, "MutatingAdmissionPolicyBinding": true, "ValidatingWebhookConfiguration": true,
	"MutatingWebhookConfiguration": true,
}

// Resource returns the client for an object's kind, in the object's namespace or else in the given one.
func Resource(client dynamic.Interface, object *unstructured.Unstructured, namespace string) dynamic.ResourceInterface {
	gvr, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if clusterScoped[object.GetKind()] {
		return client.Resource(gvr)
	}
	if object.GetNamespace() != "" {
		namespace = object.GetNamespace()
	}
	return client.Resource(gvr).Namespace(namespace)
}

// Apply creates the objects of a manifest of one or more YAML documents.
func (c *ControlPlane) Apply(ctx context.Context, manifest string) error {
	client, err := c.Dynamic()
	if err != nil {
		return err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		if _, err := Resource(client, object, "default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}
