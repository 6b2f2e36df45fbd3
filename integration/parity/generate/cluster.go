package generate

import "fmt"

const (
	zoneLabel       = "topology.kubernetes.io/zone"
	regionLabel     = "topology.kubernetes.io/region"
	betaZoneLabel   = "failure-domain.beta.kubernetes.io/zone"
	betaRegionLabel = "failure-domain.beta.kubernetes.io/region"
	hostnameLabel   = "kubernetes.io/hostname"
)

var (
	extendedResources = []string{"nvidia.com/gpu", "example.com/fpga", "example.com/licence"}
	// Values that a careless YAML reader does not read as strings.
	tierValues = []string{"gold", "silver", "bronze", "", "true", "null", "1e3", "0x10", "007", "y", "1.0"}
	// Numbers for Gt and Lt, and label values that are not numbers.
	sizeValues = []string{"1", "4", "16", "64", "32", "007", "", "abc", "4.5", "9223372036854775808", "9223372036854775807", "0"}
	// Two regions with a cloud's names: volumes there are translated, and the region is read from the zone's name.
	allZones   = []string{"us-east1-a", "us-east1-b", "eu-west4-a", "eu-west4-b"}
	imageNames = []string{"registry.example.com/web/front", "busybox", "nginx", "docker.io/library/redis", "quay.io/team/model",
		"localhost:5000/tool", "registry.example.com:8443/a/b/c", "k8s.gcr.io/pause", "tensor/flow", "db"}
)

func regionOf(zone string) string { return zone[:len(zone)-2] }

// world is everything that the pods of one seed can refer to.
type world struct {
	random
	features Features
	// about is the subject of most pods of this seed.
	about Features
	nodes []string
	zones []string
	// objects collects objects that pods need, for instance their claims.
	objects []object
	storage storage
	devices deviceWorld
	// ports are host ports of running pods, by node/number.
	ports map[string]bool
	// started counts pods with a start time; all start times differ.
	started int
	// large clusters test sampling and the rotating start; small ones everything else.
	large bool
	// unscored: a profile without scoring stops at the first feasible node.
	unscored bool
}

// newWorld selects the size of the cluster: usually up to 90 nodes, one seed in twenty 100 to 300, one in a hundred
// none.
func newWorld(seed uint64, features Features) *world {
	w := &world{random: newRandom(seed, 1), features: features, about: features.emphasis(seed)}
	count := w.between(1, 90)
	switch {
	case seed%100 == 77:
		count = 0
	case seed%20 == 0 && !w.dense() && features&Claims == 0:
		count, w.large = w.between(100, 300), true
	case seed%5 == 1:
		count = w.between(1, 8)
	case seed%5 == 2:
		count = w.between(3, 30)
	case w.about == Claims:
		count = w.between(3, 16)
	case w.dense():
		count = w.between(2, 12)
	case w.about == Preemption:
		count = w.between(3, 30)
	}
	w.name(count)
	w.zones = some(w.random, w.between(1, 4), allZones)
	return w
}

// name names this many nodes.
func (w *world) name(count int) {
	w.nodes = nil
	style := pick(w.random, "node-%d", "n%03d", "ip-10-0-0-%d.example.internal", "worker-%d")
	for i := range count {
		w.nodes = append(w.nodes, fmt.Sprintf(style, i))
	}
	w.Shuffle(len(w.nodes), func(i, j int) { w.nodes[i], w.nodes[j] = w.nodes[j], w.nodes[i] })
}

// nodeObjects creates the nodes: all different, or of a few kinds like node pools, so that many scores are equal.
func (w *world) nodeObjects() []object {
	var nodes, kinds []object
	if w.chance(35) {
		for range w.between(1, 3) {
			kinds = append(kinds, w.node("kind"))
		}
	}
	for _, name := range w.nodes {
		if len(kinds) == 0 || w.chance(5) {
			nodes = append(nodes, w.node(name))
			continue
		}
		kind := pick(w.random, kinds...)
		labels := object{}
		for key, value := range kind["metadata"].(object)["labels"].(object) {
			labels[key] = value
		}
		labels[hostnameLabel] = name
		nodes = append(nodes, object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "labels": labels},
			"spec": kind["spec"], "status": kind["status"]})
	}
	return nodes
}

func (w *world) node(name string) object {
	metadata := object{"name": name, "labels": w.nodeLabels(name)}
	if w.chance(80) {
		metadata["uid"] = "uid-" + name
		metadata["creationTimestamp"] = "2026-01-02T03:04:05Z"
	}
	spec := object{}
	if taints := w.taints(); len(taints) > 0 {
		spec["taints"] = taints
	}
	if w.chance(5) {
		spec["unschedulable"] = true
		if w.chance(50) {
			spec["taints"] = append(w.taints(), object{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
		}
	}
	status := object{}
	if resources := w.nodeResources(); resources != nil {
		status["capacity"] = resources
		if w.chance(85) {
			status["allocatable"] = resources
		}
	}
	if images := w.nodeImages(); len(images) > 0 {
		status["images"] = images
	}
	if w.when(Declared, 90, 75) {
		status["declaredFeatures"] = w.declaredFeatures()
	}
	return object{"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}
}

func (w *world) nodeLabels(name string) object {
	labels := object{hostnameLabel: name, "kubernetes.io/os": pick(w.random, "linux", "linux", "linux", "windows")}
	zone := pick(w.random, w.zones...)
	switch {
	case w.chance(80):
		labels[zoneLabel], labels[regionLabel] = zone, regionOf(zone)
	case w.chance(30):
		labels[betaZoneLabel], labels[betaRegionLabel] = zone, regionOf(zone)
	case w.chance(30):
		labels[zoneLabel], labels[betaZoneLabel] = zone, "zone-old"
	case w.chance(50):
		labels[zoneLabel] = zone
	case w.chance(30):
		labels[regionLabel] = "region-a"
	}
	if w.chance(70) {
		labels["disk"] = pick(w.random, "ssd", "ssd", "hdd", "")
	}
	if w.chance(60) {
		labels["example.com/size"] = pick(w.random, sizeValues...)
	}
	if w.chance(60) {
		labels["tier"] = pick(w.random, tierValues...)
	}
	if w.features&(Spread|Affinity) != 0 && w.chance(90) {
		labels["rack"] = fmt.Sprintf("r%d", w.IntN(6))
	}
	return labels
}

func (w *world) taints() []any {
	var taints []any
	if !w.noise(30, 15) {
		return nil
	}
	seen := map[string]bool{}
	for range w.between(1, 3) {
		taint := object{
			"key":    pick(w.random, "dedicated", "gpu", "spot", "example.com/maintenance"),
			"effect": pick(w.random, "NoSchedule", "NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"),
		}
		if value := pick(w.random, "", "a", "b", "true"); value != "" || w.chance(20) {
			taint["value"] = value
		}
		// Key and effect are unique on a node.
		if key := fmt.Sprint(taint["key"], taint["effect"]); !seen[key] {
			seen[key] = true
			taints = append(taints, taint)
		}
	}
	return taints
}

func (w *world) nodeResources() object {
	if w.chance(1) {
		return nil
	}
	cores := pick(w.random, 500, 1000, 1900, 2000, 4000, 4000, 3920, 8000, 16000)
	memory := pick[int64](w.random, 1<<30, 3<<29, 4<<30, 8e9, 16<<30, 8065134592, 32<<30, 128974848)
	switch {
	case w.about == Preemption:
		cores, memory = pick(w.random, 4000, 4000, 6000, 8000), pick[int64](w.random, 8<<30, 8<<30, 16<<30)
	case w.quiet() && cores < 2000:
		cores, memory = 4*cores, 8e9
	}
	resources := object{
		"cpu":    w.cpu(cores),
		"memory": w.bytes(memory),
		"pods":   pick[any](w.random, "110", "110", 110, "30", "8", "4", "2", "1e1"),
	}
	if w.about == Preemption && w.chance(85) {
		resources["pods"] = pick[any](w.random, "110", 110, "16")
	}
	if w.chance(88) {
		resources["ephemeral-storage"] = w.bytes(pick[int64](w.random, 10<<30, 100e9, 50<<30, 1<<30))
	}
	if w.chance(1) {
		resources["ephemeral-storage"] = "2E"
	}
	if w.chance(25) {
		resources["hugepages-2Mi"] = pick[any](w.random, "0", "512Mi", "1Gi", "64Mi")
	}
	if w.chance(10) {
		resources["hugepages-1Gi"] = pick[any](w.random, "0", "2Gi", "4Gi")
	}
	for _, name := range extendedResources {
		if w.chance(45) {
			resources[name] = pick[any](w.random, "0", "1", "1", "2", 4, "8")
		}
	}
	if w.chance(3) {
		delete(resources, pick(w.random, "cpu", "memory", "pods"))
	}
	return resources
}

// imageSize is usually the same for a name on all nodes.
func (w *world) imageSize(index int) int64 {
	sizes := []int64{5e6, 24117249, 80 << 20, 300 << 20, 700e6, 1 << 30, 1500e6, 2 << 30, 40e6, 950 << 20}
	if w.chance(5) {
		return sizes[index%len(sizes)] + int64(w.between(1, 1<<20))
	}
	return sizes[index%len(sizes)]
}

func (w *world) nodeImages() []any {
	var images []any
	if w.chance(25) {
		return nil
	}
	for _, index := range w.Perm(len(imageNames))[:w.between(0, 6)] {
		name := imageNames[index]
		names := []any{fmt.Sprintf("%s@sha256:%064x", name, index+1)}
		if w.chance(90) {
			names = append(names, name+":"+pick(w.random, "latest", "v1", "v2"))
		}
		if w.chance(10) {
			names = append(names, name+":v3", name)
		}
		images = append(images, object{"names": names, "sizeBytes": w.imageSize(index)})
	}
	return images
}
