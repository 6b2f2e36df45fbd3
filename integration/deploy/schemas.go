package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	certmanager "outboard.dev/integration/cert_manager"
	controlplane "outboard.dev/integration/control_plane"
	prometheusoperator "outboard.dev/integration/prometheus_operator"
)

// SchemaFile is where WriteSchemas writes the schema of a kind, as a template of kubeconform.
const SchemaFile = "{{ .ResourceKind }}-{{ .Group }}-{{ .ResourceAPIVersion }}.json"

const definitionPrefix = "#/definitions/"

// publishedCRDs are files of modules with the CustomResourceDefinitions of others that the manifests use.
var publishedCRDs = []struct{ module, version, file string }{
	{certmanager.Module, certmanager.Version, "deploy/crds/cert-manager.io_certificates.yaml"},
	{certmanager.Module, certmanager.Version, "deploy/crds/cert-manager.io_issuers.yaml"},
	{prometheusoperator.Module, prometheusoperator.Version, prometheusoperator.CRDs + "/monitoring.coreos.com_servicemonitors.yaml"},
	{prometheusoperator.Module, prometheusoperator.Version, prometheusoperator.CRDs + "/monitoring.coreos.com_podmonitors.yaml"},
}

// WriteSchemas writes JSON schemas of Kubernetes' kinds and of publishedCRDs into `folder`, for kubeconform. They are
// strict: an unknown field is an error. Kubernetes' come from the OpenAPI document of its module.
func WriteSchemas(ctx context.Context, folder string) error {
	text, err := controlplane.Published(ctx, "k8s.io/kubernetes", controlplane.KubernetesVersion, "api/openapi-spec/swagger.json")
	if err != nil {
		return err
	}
	var openAPI struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal([]byte(text), &openAPI); err != nil {
		return err
	}
	for _, definition := range openAPI.Definitions {
		makeStrict(definition)
	}
	for name, definition := range openAPI.Definitions {
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue // A part of others, such as DeleteOptions.
		}
		kind := kinds[0].(map[string]any)
		closure := map[string]any{}
		collect(openAPI.Definitions, name, closure)
		schema := map[string]any{"allOf": []any{map[string]any{"$ref": definitionPrefix + name}}, "definitions": closure}
		if err := writeSchema(folder, kind["kind"].(string), kind["group"].(string), kind["version"].(string), schema); err != nil {
			return err
		}
	}
	for _, published := range publishedCRDs {
		text, err := controlplane.Published(ctx, published.module, published.version, published.file)
		if err != nil {
			return err
		}
		if err := writeSchemasOfCRD(folder, text); err != nil {
			return fmt.Errorf("%s: %w", published.file, err)
		}
	}
	return nil
}

func writeSchemasOfCRD(folder, text string) error {
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		properties := schema["properties"].(map[string]any)
		for _, common := range []string{"apiVersion", "kind", "metadata"} {
			if properties[common] == nil {
				properties[common] = map[string]any{}
			}
		}
		makeStrict(schema)
		if err := writeSchema(folder, crd.Spec.Names.Kind, crd.Spec.Group, version.Name, schema); err != nil {
			return err
		}
	}
	return nil
}

func writeSchema(folder, kind, group, version string, schema map[string]any) error {
	if group == "" {
		group = version // As kubeconform names the group of `v1`.
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	name := strings.NewReplacer("{{ .ResourceKind }}", strings.ToLower(kind), "{{ .Group }}", group, "{{ .ResourceAPIVersion }}", version).Replace(SchemaFile)
	return os.WriteFile(filepath.Join(folder, name), text, 0o600)
}

// makeStrict allows no other properties than those that a schema names, and both forms of numbers that are text in
// OpenAPI.
func makeStrict(schema map[string]any) {
	if schema["format"] == "int-or-string" {
		delete(schema, "type")
		schema["anyOf"] = []any{map[string]any{"type": "string"}, map[string]any{"type": "integer"}}
	}
	if description, _ := schema["description"].(string); strings.HasPrefix(description, "Quantity is a fixed-point") {
		schema["type"] = []any{"string", "number"}
	}
	if properties, has := schema["properties"].(map[string]any); has {
		if schema["additionalProperties"] == nil && schema["x-kubernetes-preserve-unknown-fields"] == nil {
			schema["additionalProperties"] = false
		}
		for _, property := range properties {
			makeStrict(property.(map[string]any))
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if of, is := schema[inner].(map[string]any); is {
			makeStrict(of)
		}
	}
}

// collect adds a definition, and all that it refers to.
func collect(definitions map[string]map[string]any, name string, closure map[string]any) {
	if closure[name] != nil {
		return
	}
	closure[name] = maps.Clone(definitions[name])
	var refer func(node any)
	refer = func(node any) {
		switch of := node.(type) {
		case map[string]any:
			if ref, is := of["$ref"].(string); is {
				collect(definitions, strings.TrimPrefix(ref, definitionPrefix), closure)
			}
			for _, child := range of {
				refer(child)
			}
		case []any:
			for _, child := range of {
				refer(child)
			}
		}
	}
	refer(definitions[name])
}
