package generate

import "fmt"

const (
	annMigrated      = "storage.alpha.kubernetes.io/migrated-plugins"
	annBindCompleted = "pv.kubernetes.io/bind-completed"
	annBoundBy       = "pv.kubernetes.io/bound-by-controller"
	annSelectedNode  = "volume.kubernetes.io/selected-node"
	annBetaClass     = "volume.beta.kubernetes.io/storage-class"
)

// csiDrivers are drivers with limits; the last one publishes its capacity.
var csiDrivers = []string{"disk.csi.example.com", "net.csi.example.com", "lvm.csi.example.com"}

// inTreeDisks are in-tree plugins that translate into CSI, with their drivers.
var inTreeDisks = map[string]string{"kubernetes.io/gce-pd": "pd.csi.storage.gke.io", "kubernetes.io/aws-ebs": "ebs.csi.aws.com"}

// storage is the state of a case's storage objects.
type storage struct {
	// shared are claims of a namespace that several pods may use.
	shared map[string][]string
	// volumes counts persistent volumes, claims counts claims; both make sizes unique.
	volumes, claims int
}

// addStorage adds classes, drivers, attach limits of nodes, and unclaimed volumes.
func (w *world) addStorage(c *Case) {
	w.storage.shared = map[string][]string{}
	c.Objects = append(c.Objects, w.storageClasses()...)
	for i, driver := range csiDrivers {
		if w.chance(90) {
			c.Objects = append(c.Objects, object{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": object{"name": driver},
				"spec": object{"attachRequired": true, "storageCapacity": i == 2}})
		}
	}
	for _, node := range w.nodes {
		if w.chance(90) {
			c.Objects = append(c.Objects, w.csiNode(node))
		}
	}
	for i := range w.between(0, 6) {
		c.Objects = append(c.Objects, w.storageCapacity(i))
	}
	for range w.between(0, 12) {
		c.Objects = append(c.Objects, w.availableVolume(c.Nodes))
	}
	for _, namespace := range namespaceNames {
		for i := range w.between(1, 3) {
			w.storage.shared[namespace] = append(w.storage.shared[namespace], w.boundClaim(namespace, fmt.Sprintf("shared-%d", i), "", w.chance(35)))
		}
	}
	for i := range w.between(0, 2*len(w.nodes)) {
		name := "gone"
		if w.storage.volumes > 0 && w.chance(70) {
			name = fmt.Sprintf("pv-%d", w.IntN(w.storage.volumes))
		}
		c.Objects = append(c.Objects, object{"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": object{"name": fmt.Sprintf("attachment-%d", i)},
			"spec": object{"attacher": pick(w.random, csiDrivers...), "nodeName": w.nodeName(), "source": object{"persistentVolumeName": name}}})
	}
}

// storageClasses returns one of every kind. In some cases some are missing.
func (w *world) storageClasses() []object {
	class := func(name, provisioner, mode string) object {
		return object{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": object{"name": name},
			"provisioner": provisioner, "volumeBindingMode": mode}
	}
	const wait = "WaitForFirstConsumer"
	zonal := class("zonal", csiDrivers[0], wait)
	zonal["allowedTopologies"] = []any{object{"matchLabelExpressions": []any{object{"key": zoneLabel, "values": []any{pick(w.random, w.zones...), allZones[0]}}}}}
	if w.chance(30) {
		zonal["allowedTopologies"] = append(zonal["allowedTopologies"].([]any),
			object{"matchLabelExpressions": []any{object{"key": "disk", "values": []any{"ssd"}}}})
	}
	list := []object{zonal, class("anywhere", csiDrivers[1], wait), class("lvm", csiDrivers[2], wait),
		class("local", "kubernetes.io/no-provisioner", wait), class("in-tree", "kubernetes.io/gce-pd", wait)}
	immediate := class("immediate", csiDrivers[0], "Immediate")
	if w.chance(50) {
		delete(immediate, "volumeBindingMode")
	}
	list = append(list, immediate)
	if w.chance(10) {
		index := w.IntN(len(list))
		list = append(list[:index], list[index+1:]...)
	}
	return list
}

func (w *world) csiNode(node string) object {
	var drivers []any
	names := append(append([]string{}, csiDrivers...), inTreeDisks["kubernetes.io/gce-pd"], inTreeDisks["kubernetes.io/aws-ebs"])
	for _, name := range names {
		if !w.chance(75) {
			continue
		}
		driver := object{"name": name, "nodeID": node, "topologyKeys": []any{zoneLabel}}
		if w.chance(80) {
			driver["allocatable"] = object{"count": pick(w.random, 0, 1, 1, 2, 2, 3, 8)}
		} else if w.chance(30) {
			driver["allocatable"] = object{}
		}
		drivers = append(drivers, driver)
	}
	metadata := object{"name": node}
	if w.chance(70) {
		metadata["annotations"] = object{annMigrated: pick(w.random, "kubernetes.io/gce-pd", "kubernetes.io/aws-ebs,kubernetes.io/gce-pd", "kubernetes.io/cinder", "")}
	}
	return object{"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": object{"drivers": drivers}}
}

func (w *world) storageCapacity(index int) object {
	capacity := object{"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
		"metadata":         object{"name": fmt.Sprintf("capacity-%d", index), "namespace": "kube-system"},
		"storageClassName": pick(w.random, "lvm", "lvm", "lvm", "zonal")}
	if w.chance(90) {
		capacity["nodeTopology"] = pick(w.random,
			object{"matchLabels": object{zoneLabel: pick(w.random, w.zones...)}},
			object{"matchExpressions": []any{object{"key": "disk", "operator": "In", "values": []any{"ssd", "hdd"}}}},
			object{})
	}
	if w.chance(85) {
		capacity["capacity"] = pick(w.random, "0", "5Gi", "10Gi", "100Gi", "20G")
	}
	if w.chance(35) {
		capacity["maximumVolumeSize"] = pick(w.random, "3Gi", "10Gi", "50Gi")
	}
	return capacity
}

// volume returns a persistent volume of one of several kinds. All capacities differ: kube-scheduler selects the
// smallest that fits, and a random one of equal volumes.
func (w *world) volume(class string) object {
	name := fmt.Sprintf("pv-%d", w.storage.volumes)
	w.storage.volumes++
	metadata := object{"name": name, "uid": "uid-" + name}
	spec := object{"capacity": object{"storage": fmt.Sprintf("%dMi", 1024*w.between(1, 40)+w.storage.volumes)},
		"accessModes": []any{pick(w.random, "ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany")}, "persistentVolumeReclaimPolicy": "Delete"}
	if class != "" {
		spec["storageClassName"] = class
	}
	if w.chance(8) {
		spec["volumeMode"] = "Block"
	}
	zone := pick(w.random, w.zones...)
	switch {
	case class == "local":
		spec["local"] = object{"path": "/mnt"}
	case w.chance(20):
		// The zones of a disk must be of one region, or its translation is an error.
		spec["gcePersistentDisk"] = object{"pdName": pick(w.random, "pd-1", "pd-2", name)}
		metadata["labels"] = pick(w.random, object{zoneLabel: zone}, object{betaZoneLabel: zone}, object{zoneLabel: allZones[0] + "__" + allZones[1]})
	case w.chance(15):
		spec["awsElasticBlockStore"] = object{"volumeID": pick(w.random, "aws://"+zone+"/vol-"+name, "vol-"+name)}
	case w.chance(10):
		spec["nfs"] = object{"server": "nfs", "path": "/"}
	default:
		spec["csi"] = object{"driver": pick(w.random, csiDrivers...), "volumeHandle": pick(w.random, "handle-"+name, "handle-"+name, "handle-common")}
	}
	if w.chance(65) && metadata["labels"] == nil {
		metadata["labels"] = w.zoneLabels(zone)
	}
	if w.chance(25) || class == "local" {
		key, value := zoneLabel, zone
		if class == "local" && w.chance(70) {
			key, value = hostnameLabel, w.nodeName()
		}
		spec["nodeAffinity"] = object{"required": object{"nodeSelectorTerms": []any{
			object{"matchExpressions": []any{object{"key": key, "operator": "In", "values": []any{value, "elsewhere"}}}}}}}
	}
	return object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
}

// zoneLabels returns labels of a volume: the current ones, the old ones, several zones in one.
func (w *world) zoneLabels(zone string) object {
	switch {
	case w.chance(40):
		return object{zoneLabel: zone}
	case w.chance(30):
		return object{betaZoneLabel: zone}
	case w.chance(40):
		return object{zoneLabel: zone + "__" + allZones[1]}
	case w.chance(30):
		return object{regionLabel: regionOf(zone)}
	case w.chance(20):
		// An empty name between two separators, so no zone at all.
		return object{zoneLabel: zone + "____" + allZones[1]}
	}
	return object{zoneLabel: zone, regionLabel: regionOf(zone), "speed": "fast"}
}

// availableVolume may be bound by the scheduler; some are not available.
func (w *world) availableVolume(nodes []map[string]any) object {
	volume := w.volume(pick(w.random, "local", "local", "local", "zonal", "anywhere"))
	spec := volume["spec"].(object)
	if spec["local"] == nil {
		// After its bind, a cloud disk is checked by labels that its CSI driver sets on nodes, and no node has them
		// here. PreBind would find that, but the oracle does not run PreBind.
		delete(spec, "gcePersistentDisk")
		delete(spec, "awsElasticBlockStore")
		if spec["nfs"] == nil && spec["csi"] == nil {
			spec["nfs"] = object{"server": "nfs", "path": "/"}
		}
	}
	volume["status"] = object{"phase": pick(w.random, "Available", "Available", "Available", "Available", "Available", "Released", "Failed", "Pending")}
	if w.chance(4) {
		volume["metadata"].(object)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	}
	if labels, _ := volume["metadata"].(object)["labels"].(object); labels == nil && w.chance(30) {
		volume["metadata"].(object)["labels"] = object{"speed": pick(w.random, "fast", "slow")}
	}
	return volume
}
