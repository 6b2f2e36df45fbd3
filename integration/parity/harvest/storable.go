package harvest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// makeStorable gives objects what an API server demands and the case's plugin does not look at.
func (c *Case) makeStorable() {
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
	c.completePod(c.Pod)
	if c.Plugin != "NodeName" {
		c.Pod.Spec.NodeName = ""
	}
}

func storableName(name string) string {
	return strings.Trim(strings.ToLower(strings.ReplaceAll(name, "_", "-")), "-.")
}

func (c *Case) completePod(pod *v1.Pod) {
	counted := c.Plugin == "ImageLocality" || strings.HasPrefix(c.Plugin, "NodeResources")
	if len(pod.Spec.Containers) == 0 && !counted {
		pod.Spec.Containers = []v1.Container{{}}
	}
	for kind, containers := range map[string][]v1.Container{"i": pod.Spec.InitContainers, "c": pod.Spec.Containers} {
		for i := range containers {
			container := &containers[i]
			if container.Name == "" {
				container.Name = fmt.Sprint(kind, i)
			}
			// An API server knows no such resource; nor do plugins, which count pods.
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
		if name := &pod.Spec.Volumes[i].Name; *name == "" || *name != strings.ToLower(*name) {
			*name = fmt.Sprint("v", i)
		}
	}
}
