package harvest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// makeStorable adds fields that an API server requires and the case's plugin does not read.
func (c *Case) makeStorable() {
	if c.Point == "prefilter" && len(c.Nodes) == 0 {
		// PreFilter rejects the pod in any case.
		c.Nodes = []Node{{Node: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}}}
	}
	rename := map[string]string{}
	for _, node := range c.Nodes {
		rename[node.Node.Name] = storableName(node.Node.Name)
		node.Node.Name = rename[node.Node.Name]
		for _, pod := range node.Pods {
			c.completePod(pod)
		}
	}
	c.Target = storableName(c.Target)
	scores := map[string]int64{}
	for node, score := range c.Scores {
		scores[storableName(node)] = score
	}
	c.Scores = scores
	c.Reason = realWords(c.Reason)
	for i := range c.Reasons {
		c.Reasons[i] = realWords(c.Reasons[i])
	}
	c.completePod(c.Pod)
	c.completeObjects()
	if c.Plugin != "NodeName" {
		c.Pod.Spec.NodeName = ""
	}
}

// realWords: some tests use their own listers with other error texts instead of the real ones, and names that cannot
// be stored.
func realWords(reason string) string {
	reason = strings.NewReplacer(`persistentvolumeclaims "`, `persistentvolumeclaim "`,
		`storageclasses.storage.k8s.io "`, `storageclass.storage.k8s.io "`).Replace(reason)
	return quotedName.ReplaceAllStringFunc(reason, storableName)
}

var quotedName = regexp.MustCompile(`"\w*_\w*"`)

func storableName(name string) string {
	return strings.Trim(strings.ToLower(strings.NewReplacer("_", "-", "/", "-").Replace(name)), "-.")
}

func (c *Case) completePod(pod *v1.Pod) {
	if len(pod.Spec.Containers) == 0 && c.Plugin != "ImageLocality" {
		// Explicitly zero requests; without them scores would assume defaults.
		nothing := v1.ResourceList{v1.ResourceCPU: resource.Quantity{}, v1.ResourceMemory: resource.Quantity{}}
		pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: nothing}}}
	}
	for kind, containers := range map[string][]v1.Container{"i": pod.Spec.InitContainers, "c": pod.Spec.Containers} {
		for i := range containers {
			container := &containers[i]
			if container.Name == "" {
				container.Name = fmt.Sprint(kind, i)
			}
			// An API server does not know this resource; nor do plugins, which count pods.
			delete(container.Resources.Requests, v1.ResourcePods)
			if container.Image == "" && c.Plugin != "ImageLocality" {
				container.Image = "image"
			}
			for j := range container.Ports {
				port := &container.Ports[j]
				if port.ContainerPort == 0 {
					port.ContainerPort = max(port.HostPort, 1)
				}
			}
		}
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if len(validation.IsDNS1123Label(volume.Name)) > 0 {
			volume.Name = fmt.Sprint("v", i)
		}
		if claim := volume.PersistentVolumeClaim; claim != nil {
			claim.ClaimName = storableName(claim.ClaimName)
		}
	}
}

// completeObjects names objects without a name: they are found by their selectors. It removes invalid characters from
// names of namespaces, also in references.
func (c *Case) completeObjects() {
	for kind, objects := range c.Objects {
		for i := range objects {
			var object map[string]any
			if json.Unmarshal(objects[i], &object) != nil {
				continue
			}
			metadata, _ := object["metadata"].(map[string]any)
			if metadata == nil {
				metadata = map[string]any{}
				object["metadata"] = metadata
			}
			if name, _ := metadata["name"].(string); name == "" && kind != "v1/Namespace" {
				metadata["name"] = fmt.Sprint("object-", i)
			} else if kind == "v1/Namespace" {
				metadata["name"] = namespaceName(name)
				if name == "" {
					metadata["name"] = "default"
				}
			}
			completeStorage(kind, object)
			if namespace, _ := metadata["namespace"].(string); namespace != "" {
				metadata["namespace"] = namespaceName(namespace)
			}
			if data, err := json.Marshal(object); err == nil {
				objects[i] = data
			}
		}
	}
	pods := []*v1.Pod{c.Pod}
	for _, node := range c.Nodes {
		pods = append(pods, node.Pods...)
	}
	for _, pod := range pods {
		pod.Namespace = namespaceName(pod.Namespace)
		forEachTerm(pod, func(term *v1.PodAffinityTerm) {
			for i := range term.Namespaces {
				term.Namespaces[i] = namespaceName(term.Namespaces[i])
			}
		})
	}
}

// completeStorage adds required fields to volumes, claims and classes where their absence means the same.
func completeStorage(kind string, object map[string]any) {
	metadata := object["metadata"].(map[string]any)
	spec, _ := object["spec"].(map[string]any)
	switch kind {
	case "storage.k8s.io/v1/StorageClass", "storage.k8s.io/v1/CSINode", "v1/PersistentVolume", "v1/PersistentVolumeClaim":
		rename(metadata, "name")
		rename(spec, "volumeName", "storageClassName")
		if reference, _ := spec["claimRef"].(map[string]any); reference != nil {
			rename(reference, "name")
		}
		if annotations, _ := metadata["annotations"].(map[string]any); annotations != nil {
			rename(annotations, v1.BetaStorageClassAnnotation)
		}
		drivers, _ := spec["drivers"].([]any)
		for _, driver := range drivers {
			if driver, ok := driver.(map[string]any); ok {
				rename(driver, "name")
			}
		}
	}
	switch kind {
	case "storage.k8s.io/v1/StorageClass":
		if provisioner, _ := object["provisioner"].(string); provisioner == "" {
			object["provisioner"] = "kubernetes.io/no-provisioner"
		}
	case "v1/PersistentVolume", "v1/PersistentVolumeClaim":
		if spec == nil {
			spec = map[string]any{}
			object["spec"] = spec
		}
		if spec["accessModes"] == nil {
			spec["accessModes"] = []any{"ReadWriteOnce"}
		}
		amount := map[string]any{"storage": "1Gi"}
		if resources, _ := spec["resources"].(map[string]any); kind == "v1/PersistentVolumeClaim" && resources["requests"] == nil {
			spec["resources"] = map[string]any{"requests": amount}
		}
		if kind == "v1/PersistentVolume" && spec["capacity"] == nil {
			spec["capacity"] = amount
		}
	}
}

func rename(object map[string]any, keys ...string) {
	for _, key := range keys {
		if name, _ := object[key].(string); name != "" {
			object[key] = storableName(name)
		}
	}
}

func namespaceName(name string) string { return strings.ReplaceAll(strings.ToLower(name), ".", "-") }

func forEachTerm(pod *v1.Pod, change func(*v1.PodAffinityTerm)) {
	if pod.Spec.Affinity == nil {
		return
	}
	if rules := pod.Spec.Affinity.PodAffinity; rules != nil {
		for i := range rules.RequiredDuringSchedulingIgnoredDuringExecution {
			change(&rules.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
		for i := range rules.PreferredDuringSchedulingIgnoredDuringExecution {
			change(&rules.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
		}
	}
	if rules := pod.Spec.Affinity.PodAntiAffinity; rules != nil {
		for i := range rules.RequiredDuringSchedulingIgnoredDuringExecution {
			change(&rules.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
		for i := range rules.PreferredDuringSchedulingIgnoredDuringExecution {
			change(&rules.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
		}
	}
}
