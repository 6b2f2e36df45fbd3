package oracle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	schedulerserver "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// Objects are what manifests hold, in file order, after the defaulting that an API server does when it stores them.
type Objects struct {
	Nodes []*v1.Node
	Pods  []*v1.Pod
}

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
	switch meta.Kind {
	case "List", "NodeList", "PodList":
		for i := range meta.Items {
			if err := o.add(meta.Items[i].Raw); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
	case "Node":
		node := &v1.Node{}
		if err := json.Unmarshal(raw, node); err != nil {
			return fmt.Errorf("node: %w", err)
		}
		corev1defaults.SetObjectDefaults_Node(node)
		o.Nodes = append(o.Nodes, node)
	case "Pod":
		pod := &v1.Pod{}
		if err := json.Unmarshal(raw, pod); err != nil {
			return fmt.Errorf("pod: %w", err)
		}
		corev1defaults.SetObjectDefaults_Pod(pod)
		if pod.Namespace == "" {
			pod.Namespace = "default"
		}
		if pod.UID == "" {
			pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
		}
		o.Pods = append(o.Pods, pod)
	default:
		return fmt.Errorf("kind %q is none that the oracle reads", meta.Kind)
	}
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
