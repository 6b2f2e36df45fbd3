package hints

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an API object of any kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// From the contract's fields to the API's: a case names fields as the contract does, all at the top level.

// fields moves a case's fields into a manifest. A remaining field is an error, so that the oracle sees everything
// that is compared.
type fields struct {
	given    map[string]any
	manifest map[string]any
}

func newFields(given map[string]any) *fields {
	rest := map[string]any{}
	for key, value := range given {
		rest[key] = value
	}
	return &fields{given: rest, manifest: map[string]any{}}
}

// take removes a field.
func (f *fields) take(key string) (any, bool) {
	value, ok := f.given[key]
	delete(f.given, key)
	return value, ok
}

// put sets a field of the manifest by its path.
func (f *fields) put(path string, value any) {
	keys := strings.Split(path, ".")
	at := f.manifest
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = value
}

// move removes fields, and puts each under the same name below a path.
func (f *fields) move(below string, keys ...string) {
	for _, key := range keys {
		if value, ok := f.take(key); ok {
			f.put(below+"."+key, value)
		}
	}
}

// rename removes a field, and puts it at another path.
func (f *fields) rename(key, path string) {
	if value, ok := f.take(key); ok {
		f.put(path, value)
	}
}

// metadata handles the common fields; kinds with namespaces are in `default` unless the case names another.
func (f *fields) metadata(namespaced bool) {
	f.move("metadata", "name", "labels", "annotations", "uid")
	namespace, given := f.take("namespace")
	if !namespaced {
		return
	}
	if !given {
		namespace = "default"
	}
	f.put("metadata.namespace", namespace)
	metadata := f.manifest["metadata"].(map[string]any)
	if metadata["uid"] == nil {
		f.put("metadata.uid", fmt.Sprintf("%v/%v", namespace, metadata["name"]))
	}
}

// into creates the object from the manifest.
func (f *fields) into(object Object) error {
	for key := range f.given {
		return fmt.Errorf("unknown field %s of a %T", key, object)
	}
	text, err := json.Marshal(withTexts(f.manifest, ""))
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	return decoder.Decode(object)
}

// withTexts converts scalars to strings where the API has only strings.
func withTexts(value any, key string) any {
	switch typed := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for name, inner := range typed {
			if _, scalar := inner.(string); !scalar && (key == "labels" || key == "annotations" || key == "nodeSelector" || key == "matchLabels") {
				inner = fmt.Sprint(inner)
			}
			result[name] = withTexts(inner, name)
		}
		return result
	case []any:
		result := make([]any, 0, len(typed))
		for _, inner := range typed {
			if key == "values" {
				inner = fmt.Sprint(inner)
			}
			result = append(result, withTexts(inner, key))
		}
		return result
	default:
		return value
	}
}

func podOf(given map[string]any) (*v1.Pod, error) {
	f := newFields(given)
	f.metadata(true)
	f.move("spec", "nodeName", "affinity", "topologySpreadConstraints", "tolerations", "nodeSelector", "priority")
	f.rename("nominatedNodeName", "status.nominatedNodeName")
	if gates, ok := f.take("schedulingGates"); ok {
		f.put("spec.schedulingGates", wrap(gates, func(gate any) any { return map[string]any{"name": gate} }))
	}
	if controller, ok := f.take("controller"); ok {
		owner := map[string]any{"controller": true, "uid": "owner"}
		for key, value := range controller.(map[string]any) {
			owner[key] = value
		}
		f.put("metadata.ownerReferences", []any{owner})
	}
	// A pod has no API field for the features that it needs of nodes; featureFramework reads them here.
	if features, ok := f.take("requiredNodeFeatures"); ok {
		f.put("spec.serviceAccountName", strings.Join(texts(features), ","))
	}
	if requests, ok := f.take("requests"); ok {
		f.put("spec.containers", []any{map[string]any{"name": "main", "resources": map[string]any{"requests": requests}}})
	}
	f.move("spec", "containers")
	if volumes, ok := f.take("volumes"); ok {
		converted, err := volumesOf(volumes)
		if err != nil {
			return nil, err
		}
		f.put("spec.volumes", converted)
	}
	pod := &v1.Pod{}
	return pod, f.into(pod)
}

// The contract's fields of a volume by its source, and their API names.
var volumeFields = map[string]map[string]string{
	"emptyDir":              {},
	"ephemeral":             {},
	"persistentVolumeClaim": {"claimName": "claimName"},
	"csi":                   {"csiDriver": "driver"},
	"gcePersistentDisk":     {"disk": "pdName", "readOnly": "readOnly"},
	"awsElasticBlockStore":  {"disk": "volumeID", "readOnly": "readOnly"},
	"iscsi":                 {"disk": "iqn", "readOnly": "readOnly"},
	"rbd":                   {"disk": "image", "pool": "pool", "monitors": "monitors", "readOnly": "readOnly"},
}

func volumesOf(given any) ([]any, error) {
	var volumes []any
	for _, volume := range given.([]any) {
		of := volume.(map[string]any)
		name, _ := of["source"].(string)
		known, ok := volumeFields[name]
		if !ok {
			return nil, fmt.Errorf("unknown volume source %s", name)
		}
		source := map[string]any{}
		for key, value := range of {
			switch {
			case key == "name" || key == "source":
			case key == "migrated": // The shim's translation; the oracle translates itself.
			case known[key] != "":
				source[known[key]] = value
			default:
				return nil, fmt.Errorf("unknown field %s of a volume of %s", key, name)
			}
		}
		volumes = append(volumes, map[string]any{"name": of["name"], name: source})
	}
	return volumes, nil
}

func nodeOf(given map[string]any) (*v1.Node, error) {
	f := newFields(given)
	f.metadata(false)
	f.move("spec", "taints", "unschedulable")
	f.move("status", "allocatable", "declaredFeatures")
	allocatable, _ := f.manifest["status"].(map[string]any)
	if resources, ok := allocatable["allocatable"].(map[string]any); !ok || resources["pods"] == nil {
		f.put("status.allocatable.pods", 110)
	}
	node := &v1.Node{}
	return node, f.into(node)
}

// objectOf creates an object of another kind, whose name is the API's.
func objectOf(kind string, given map[string]any) (Object, error) {
	f := newFields(given)
	var object Object
	switch kind {
	case "PersistentVolumeClaim":
		f.metadata(true)
		f.move("spec", "volumeName")
		object = &v1.PersistentVolumeClaim{}
	case "PersistentVolume":
		f.metadata(false)
		f.rename("capacityBytes", "spec.capacity.storage")
		object = &v1.PersistentVolume{}
	case "StorageClass":
		f.metadata(false)
		f.rename("provisioner", "provisioner")
		f.rename("volumeBindingMode", "volumeBindingMode")
		if terms, ok := f.take("allowedTopologies"); ok {
			f.put("allowedTopologies", wrap(terms, topologyTerm))
		}
		object = &storagev1.StorageClass{}
	case "CSINode":
		f.metadata(false)
		if plugins, ok := f.take("migratedPlugins"); ok {
			f.put("metadata.annotations", map[string]any{v1.MigratedPluginsAnnotationKey: strings.Join(texts(plugins), ",")})
		}
		if drivers, ok := f.take("drivers"); ok {
			f.put("spec.drivers", wrap(drivers, csiNodeDriver))
		}
		object = &storagev1.CSINode{}
	case "CSIDriver":
		f.metadata(false)
		f.move("spec", "storageCapacity")
		object = &storagev1.CSIDriver{}
	case "CSIStorageCapacity":
		f.metadata(true)
		f.rename("storageClassName", "storageClassName")
		f.rename("capacityBytes", "capacity")
		f.rename("maximumVolumeBytes", "maximumVolumeSize")
		object = &storagev1.CSIStorageCapacity{}
	case "VolumeAttachment":
		f.metadata(false)
		f.move("spec", "attacher", "nodeName")
		object = &storagev1.VolumeAttachment{}
	case "DeviceClass":
		f.metadata(false)
		f.move("spec", "extendedResourceName")
		object = &resourcev1.DeviceClass{}
	case "Service":
		f.metadata(true)
		f.move("spec", "selector")
		object = &v1.Service{}
	case "ReplicaSet":
		f.metadata(true)
		f.move("spec", "selector")
		object = &appsv1.ReplicaSet{}
	default:
		return nil, fmt.Errorf("unknown kind %s", kind)
	}
	return object, f.into(object)
}

func topologyTerm(term any) any {
	var expressions []any
	for _, expression := range term.(map[string]any)["matchExpressions"].([]any) {
		of := expression.(map[string]any)
		expressions = append(expressions, map[string]any{"key": of["key"], "values": of["values"]})
	}
	return map[string]any{"matchLabelExpressions": expressions}
}

func csiNodeDriver(driver any) any {
	of := driver.(map[string]any)
	result := map[string]any{"name": of["name"], "nodeID": "node"}
	if keys, ok := of["topologyKeys"]; ok {
		result["topologyKeys"] = keys
	}
	if count, ok := of["allocatableCount"]; ok {
		result["allocatable"] = map[string]any{"count": count}
	}
	return result
}

func wrap(list any, convert func(any) any) []any {
	result := []any{}
	for _, item := range list.([]any) {
		result = append(result, convert(item))
	}
	return result
}

func texts(list any) []string {
	var result []string
	for _, item := range list.([]any) {
		result = append(result, fmt.Sprint(item))
	}
	return result
}
