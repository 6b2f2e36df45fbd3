package generate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Case is one generated case. Manifests are untyped, so that their notation is preserved.
type Case struct {
	Seed     uint64
	Features Features
	Nodes    []map[string]any
	// Objects are neither nodes nor pods: namespaces, services, controllers, budgets, volumes.
	Objects []map[string]any
	Running []map[string]any
	Pending []map[string]any
	Config  map[string]any
	// Kinds are the kinds of device claims of a pending pod, by its namespace/name.
	Kinds map[string][]string
}

// Files are the paths of a written case.
type Files struct{ Cluster, Pods, Config string }

// New returns the case of a seed. The same seed and features give the same case, byte for byte.
func New(seed uint64, features Features) *Case {
	w := newWorld(seed, features)
	c := &Case{Seed: seed, Features: features}
	c.Nodes = w.nodeObjects()
	w.addSurroundings(c)
	w.addRunning(c)
	var profiles []string
	c.Config, profiles = w.config(seed)
	for i := range w.pendingCount() {
		pod := w.pendingPod(i, profiles)
		if i > 0 && w.chance(25) && features&Claims == 0 {
			w.makeReplica(pod, c.Pending[i-1])
		}
		c.Pending = append(c.Pending, pod)
	}
	c.Objects = append(c.Objects, w.objects...)
	c.Kinds = w.devices.byPod
	return c
}

func (w *world) addRunning(c *Case) {
	crowd := pick(w.random, 0, 1, 2, 4)
	switch {
	case w.dense():
		crowd = pick(w.random, 8, 12, 16)
	case w.about == Preemption:
		crowd = pick(w.random, 3, 4, 6)
	case w.about != None:
		crowd = pick(w.random, 1, 2, 3, 6)
	}
	if len(w.nodes) > 60 {
		crowd = min(crowd, 3)
	}
	for _, node := range w.nodes {
		for range w.between(0, crowd) {
			c.Running = append(c.Running, w.runningPod(len(c.Running), node))
		}
	}
	if w.chance(10) {
		// The node is deleted, or not yet known.
		c.Running = append(c.Running, w.runningPod(len(c.Running), "no-such-node"))
	}
	if w.chance(30) {
		w.Shuffle(len(c.Running), func(i, j int) { c.Running[i], c.Running[j] = c.Running[j], c.Running[i] })
	}
}

func (w *world) pendingCount() int {
	if w.dense() {
		return w.between(40, 80)
	}
	return w.between(12, 40)
}

// makeReplica makes the pod equal to another one except for its name, like pods of one controller.
func (w *world) makeReplica(pod, model object) {
	pod["spec"] = model["spec"]
	metadata, models := pod["metadata"].(object), model["metadata"].(object)
	for _, key := range []string{"labels", "ownerReferences", "namespace"} {
		if value, ok := models[key]; ok && w.features != None {
			metadata[key] = value
		}
	}
}

// Write writes the case into three files; the notation of the manifests varies with the seed.
func (c *Case) Write(directory string) (Files, error) {
	files := Files{Config: filepath.Join(directory, "config.yaml")}
	config, err := yaml.Marshal(c.Config)
	if err != nil {
		return files, err
	}
	if err := os.WriteFile(files.Config, config, 0o644); err != nil {
		return files, err
	}
	cluster := append(append(append([]map[string]any{}, c.Nodes...), c.Objects...), c.Running...)
	if files.Cluster, err = c.write(directory, "cluster", cluster); err != nil {
		return files, err
	}
	files.Pods, err = c.write(directory, "pods", c.Pending)
	return files, err
}

func (c *Case) write(directory, name string, objects []map[string]any) (string, error) {
	var data []byte
	var err error
	path := filepath.Join(directory, name+".yaml")
	items := make([]any, 0, len(objects))
	for _, object := range objects {
		items = append(items, object)
	}
	list := object{"apiVersion": "v1", "kind": "List", "items": items}
	switch form := c.Seed % 4; {
	case form == 0:
		path = filepath.Join(directory, name+".json")
		data, err = json.MarshalIndent(list, "", " ")
	case form == 1:
		data, err = yaml.Marshal(list)
	default:
		data, err = documents(objects)
	}
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o644)
}

func documents(objects []map[string]any) ([]byte, error) {
	var buffer bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		buffer.WriteString("---\n")
		buffer.Write(document)
	}
	return buffer.Bytes(), nil
}
