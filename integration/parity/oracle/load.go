package oracle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	schedulerserver "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	resourcev1defaults "k8s.io/kubernetes/pkg/apis/resource/v1"
	storagev1defaults "k8s.io/kubernetes/pkg/apis/storage/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// Objects are the content of manifests, in file order, after an API server's defaulting.
type Objects struct {
	Nodes []*v1.Node
	Pods  []*v1.Pod
	// Others are objects that plugins look up in informers: namespaces, services, controllers, budgets, volumes and
	// so on.
	Others []Object
}

// Object is an API object of any kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// others creates empty objects of the kinds of Objects.Others.
var others = map[string]func() Object{
	"Namespace":             func() Object { return &v1.Namespace{} },
	"Service":               func() Object { return &v1.Service{} },
	"ReplicationController": func() Object { return &v1.ReplicationController{} },
	"ReplicaSet":            func() Object { return &appsv1.ReplicaSet{} },
	"StatefulSet":           func() Object { return &appsv1.StatefulSet{} },
	"PodDisruptionBudget":   func() Object { return &policyv1.PodDisruptionBudget{} },
	"PersistentVolume":      func() Object { return &v1.PersistentVolume{} },
	"PersistentVolumeClaim": func() Object { return &v1.PersistentVolumeClaim{} },
	"StorageClass":          func() Object { return &storagev1.StorageClass{} },
	"CSINode":               func() Object { return &storagev1.CSINode{} },
	"CSIDriver":             func() Object { return &storagev1.CSIDriver{} },
	"CSIStorageCapacity":    func() Object { return &storagev1.CSIStorageCapacity{} },
	"VolumeAttachment":      func() Object { return &storagev1.VolumeAttachment{} },
	"DeviceClass":           func() Object { return &resourcev1.DeviceClass{} },
	"ResourceSlice":         func() Object { return &resourcev1.ResourceSlice{} },
	"ResourceClaim":         func() Object { return &resourcev1.ResourceClaim{} },
}

// clusterScoped are those without a namespace.
var clusterScoped = map[string]bool{"Namespace": true, "PersistentVolume": true, "StorageClass": true, "CSINode": true,
	"CSIDriver": true, "VolumeAttachment": true, "DeviceClass": true, "ResourceSlice": true}

// LoadObjects reads manifests: YAML (one or many documents) or JSON, single objects or Lists.
func LoadObjects(paths ...string) (*Objects, error) {
	objects := &Objects{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := objects.decode(data); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return objects, nil
}

func (o *Objects) decode(data []byte) error {
	reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var raw runtime.RawExtension
		if err := reader.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if text := bytes.TrimSpace(raw.Raw); len(text) == 0 || string(text) == "null" {
			continue
		}
		if err := o.add(raw.Raw); err != nil {
			return err
		}
	}
}

func (o *Objects) add(raw []byte) error {
	var meta struct {
		Kind  string                 `json:"kind"`
		Items []runtime.RawExtension `json:"items"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return err
	}
	if strings.HasSuffix(meta.Kind, "List") {
		for i := range meta.Items {
			if err := o.add(meta.Items[i].Raw); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	switch meta.Kind {
	case "Node":
		node := &v1.Node{}
		err := json.Unmarshal(raw, node)
		if err != nil {
			return fmt.Errorf("node: %w", err)
		}
		corev1defaults.SetObjectDefaults_Node(node)
		if node, err = asServed(node); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
		o.Nodes = append(o.Nodes, node)
	case "Pod":
		pod := &v1.Pod{}
		err := json.Unmarshal(raw, pod)
		if err != nil {
			return fmt.Errorf("pod: %w", err)
		}
		corev1defaults.SetObjectDefaults_Pod(pod)
		mergeLabelKeys(pod)
		if pod, err = asServed(pod); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		if pod.Namespace == "" {
			pod.Namespace = "default"
		}
		if pod.UID == "" {
			pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
		}
		o.Pods = append(o.Pods, pod)
	default:
		return o.addOther(meta.Kind, raw)
	}
	return nil
}

// asServed returns the object as an API server would send it, with quantities in their canonical form. A quantity in
// another notation ("1.5Gi") shares its digits with its copies, and kube-scheduler's sums would change the object
// itself.
func asServed[T any](object *T) (*T, error) {
	served := new(T)
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, served)
	}
	if err != nil {
		return object, err
	}
	return served, nil
}

// mergeLabelKeys merges matchLabelKeys and mismatchLabelKeys into the selectors of pod affinity, as an API server
// does when a pod is created; the scheduler does not read these lists. (Those of spread constraints it reads.)
func mergeLabelKeys(pod *v1.Pod) {
	if pod.Spec.Affinity == nil {
		return
	}
	merge := func(term *v1.PodAffinityTerm) {
		if term.LabelSelector == nil {
			return
		}
		add := func(keys []string, operator metav1.LabelSelectorOperator) {
			for _, key := range keys {
				if value, ok := pod.Labels[key]; ok {
					term.LabelSelector.MatchExpressions = append(term.LabelSelector.MatchExpressions,
						metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
				}
			}
		}
		add(term.MatchLabelKeys, metav1.LabelSelectorOpIn)
		add(term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	both := func(required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm) {
		for i := range required {
			merge(&required[i])
		}
		for i := range preferred {
			merge(&preferred[i].PodAffinityTerm)
		}
	}
	if rules := pod.Spec.Affinity.PodAffinity; rules != nil {
		both(rules.RequiredDuringSchedulingIgnoredDuringExecution, rules.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if rules := pod.Spec.Affinity.PodAntiAffinity; rules != nil {
		both(rules.RequiredDuringSchedulingIgnoredDuringExecution, rules.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (o *Objects) addOther(kind string, raw []byte) error {
	create, ok := others[kind]
	if !ok {
		return fmt.Errorf("unsupported kind %q", kind)
	}
	object := create()
	if err := json.Unmarshal(raw, object); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	if object.GetNamespace() == "" && !clusterScoped[kind] {
		object.SetNamespace("default")
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID(object.GetNamespace() + "/" + object.GetName()))
	}
	switch typed := object.(type) {
	case *v1.Namespace:
		corev1defaults.SetObjectDefaults_Namespace(typed)
	case *v1.PersistentVolume:
		corev1defaults.SetObjectDefaults_PersistentVolume(typed)
	case *v1.PersistentVolumeClaim:
		corev1defaults.SetObjectDefaults_PersistentVolumeClaim(typed)
	case *v1.ReplicationController:
		corev1defaults.SetObjectDefaults_ReplicationController(typed)
	case *storagev1.StorageClass:
		storagev1defaults.SetObjectDefaults_StorageClass(typed)
	case *storagev1.CSIDriver:
		storagev1defaults.SetObjectDefaults_CSIDriver(typed)
	case *resourcev1.ResourceClaim:
		resourcev1defaults.SetObjectDefaults_ResourceClaim(typed)
	case *resourcev1.ResourceSlice:
		resourcev1defaults.SetObjectDefaults_ResourceSlice(typed)
	}
	if err := nextVersion(object, len(o.Others)); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	// Other kinds have no default that a plugin reads.
	served := create()
	if data, err := json.Marshal(object); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	} else if err := json.Unmarshal(data, served); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	o.Others = append(o.Others, served)
	return nil
}

// LoadConfig reads a KubeSchedulerConfiguration with kube-scheduler's own loader and validation.
func LoadConfig(path string) (*schedulerapi.KubeSchedulerConfiguration, error) {
	config, err := schedulerserver.LoadConfigFromFile(klog.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		return nil, err
	}
	return config, nil
}
