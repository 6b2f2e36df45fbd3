package generate

import "fmt"

// claim returns a claim without a volume; sizes are unique like those of volumes.
func (w *world) claim(namespace, name, class string) object {
	w.storage.claims++
	spec := object{"accessModes": []any{pick(w.random, "ReadWriteOnce", "ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany")}}
	spec["resources"] = object{"requests": object{"storage": fmt.Sprintf("%dMi", 512*w.between(1, 30)+w.storage.claims)}}
	metadata := object{"name": name, "namespace": namespace, "uid": "uid-" + namespace + "-" + name}
	switch {
	case class != "" && w.chance(5):
		metadata["annotations"] = object{annBetaClass: class}
	default:
		spec["storageClassName"] = class
	}
	claim := object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": object{"phase": "Pending"}}
	w.objects = append(w.objects, claim)
	return claim
}

func annotate(of object, key, value string) {
	metadata := of["metadata"].(object)
	annotations, _ := metadata["annotations"].(object)
	if annotations == nil {
		annotations = object{}
	}
	annotations[key] = value
	metadata["annotations"] = annotations
}

// boundClaim adds a claim with its volume and returns the claim's name.
func (w *world) boundClaim(namespace, name, class string, exclusive bool) string {
	claim := w.claim(namespace, name, class)
	spec := claim["spec"].(object)
	if exclusive {
		spec["accessModes"] = []any{"ReadWriteOncePod"}
	}
	claim["status"] = object{"phase": "Bound"}
	annotate(claim, annBindCompleted, "yes")
	if w.chance(50) {
		annotate(claim, annBoundBy, "yes")
	}
	if w.chance(6) {
		spec["volumeName"] = "no-such-volume"
		return name
	}
	volume := w.volume(class)
	volume["status"] = object{"phase": "Bound"}
	volume["spec"].(object)["claimRef"] = object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name,
		"uid": claim["metadata"].(object)["uid"]}
	spec["volumeName"] = volume["metadata"].(object)["name"]
	w.objects = append(w.objects, volume)
	return name
}

// claimFor adds a claim for a pod's own use and returns its name, which may be the name of a claim that does not
// exist.
func (w *world) claimFor(namespace, name string, running bool) string {
	if running {
		return w.boundClaim(namespace, name, pick(w.random, "zonal", "anywhere", "local", ""), w.chance(20))
	}
	switch choice := w.IntN(100); {
	case choice < 30:
		return w.boundClaim(namespace, name, pick(w.random, "zonal", "anywhere", "local", "immediate", ""), w.chance(25))
	case choice < 55:
		// Matches an existing volume, or none.
		claim := w.claim(namespace, name, "local")
		if w.chance(20) {
			claim["spec"].(object)["selector"] = object{"matchLabels": object{"speed": "fast"}}
		}
		w.preBind(claim, namespace, name)
	case choice < 85:
		claim := w.claim(namespace, name, pick(w.random, "zonal", "zonal", "anywhere", "lvm", "lvm", "in-tree"))
		if w.chance(12) {
			annotate(claim, annSelectedNode, w.nodeName())
		}
		if w.chance(15) {
			claim["spec"].(object)["accessModes"] = []any{"ReadWriteOncePod"}
		}
	case choice < 88:
		w.claim(namespace, name, "immediate")
	case choice < 90:
		w.claim(namespace, name, "no-such-class")
	case choice < 91:
		w.claim(namespace, name, "")
	case choice < 93:
		claim := w.claim(namespace, name, "zonal")
		claim["metadata"].(object)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	case choice < 95:
		claim := w.claim(namespace, name, "zonal")
		claim["spec"].(object)["volumeName"], claim["status"] = "lost-volume", object{"phase": "Lost"}
	case choice < 97:
		// Bound by a user, and the controller has not confirmed it yet.
		w.claim(namespace, name, "zonal")["spec"].(object)["volumeName"] = "pv-0"
	default:
		return "no-such-claim"
	}
	return name
}

// preBind sometimes creates a volume for the claim that names it.
func (w *world) preBind(claim object, namespace, name string) {
	if !w.chance(15) {
		return
	}
	volume := w.volume("local")
	volume["status"] = object{"phase": "Available"}
	reference := object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
	if w.chance(50) {
		reference["uid"] = claim["metadata"].(object)["uid"]
	}
	volume["spec"].(object)["claimRef"] = reference
	w.objects = append(w.objects, volume)
}

// addPodVolumes adds one or two volumes: own or shared claims, ephemeral claims, inline disks.
func (w *world) addPodVolumes(pod object, name string, running bool) {
	metadata, spec := pod["metadata"].(object), pod["spec"].(object)
	if !running {
		// kube-scheduler assumes volumes for each profile separately until they are bound; Outboard's profiles know
		// each other's.
		delete(spec, "schedulerName")
	}
	namespace, _ := metadata["namespace"].(string)
	if namespace == "" {
		namespace = "default"
	}
	volumes, _ := spec["volumes"].([]any)
	for i := range pick(w.random, 1, 1, 1, 2, 3) {
		volume := object{"name": fmt.Sprintf("data-%d", i)}
		shared := w.storage.shared[namespace]
		choice := w.IntN(100)
		if running && choice < 55 {
			// Disks of running pods cause conflicts.
			choice += pick(w.random, 0, 45, 45)
		}
		switch {
		case choice < 50:
			volume["persistentVolumeClaim"] = object{"claimName": w.claimFor(namespace, fmt.Sprintf("claim-%s-%d", name, i), running)}
		case choice < 63 && len(shared) > 0:
			volume["persistentVolumeClaim"] = object{"claimName": pick(w.random, shared...)}
		case choice < 70:
			w.ephemeral(pod, volume, namespace, running)
		default:
			w.disk(volume)
		}
		volumes = append(volumes, volume)
	}
	spec["volumes"] = volumes
}

// ephemeral makes a volume whose claim a controller creates: existing, not yet existing, or owned by another pod.
func (w *world) ephemeral(pod, volume object, namespace string, running bool) {
	metadata := pod["metadata"].(object)
	volume["ephemeral"] = object{"volumeClaimTemplate": object{"spec": object{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "zonal",
		"resources": object{"requests": object{"storage": "1Gi"}}}}}
	name := fmt.Sprint(metadata["name"], "-", volume["name"])
	if !running && w.chance(15) {
		return
	}
	// A claim identifies its pod by the UID, so the manifest must contain it.
	uid := metadata["uid"]
	if uid == nil {
		uid = fmt.Sprint("uid-of-", metadata["name"])
		metadata["uid"] = uid
	}
	if !running && w.chance(10) {
		uid = "uid-of-another"
	}
	var claim object
	if w.chance(40) || running {
		before := len(w.objects)
		w.boundClaim(namespace, name, "zonal", false)
		claim = w.objects[before]
	} else {
		claim = w.claim(namespace, name, pick(w.random, "zonal", "anywhere"))
	}
	claim["metadata"].(object)["ownerReferences"] = []any{object{"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": uid, "controller": true}}
}

// disk returns a source that pods cannot share freely, or that translates to a CSI volume.
func (w *world) disk(volume object) {
	readOnly := w.chance(35)
	id := fmt.Sprint("disk-", w.between(1, 2))
	switch w.IntN(6) {
	case 0, 1:
		volume["gcePersistentDisk"] = object{"pdName": id, "readOnly": readOnly}
	case 2:
		volume["awsElasticBlockStore"] = object{"volumeID": id, "readOnly": readOnly}
	case 3:
		volume["iscsi"] = object{"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-01.com.example:" + id, "lun": w.IntN(2), "readOnly": readOnly}
	case 4:
		monitors := []any{}
		for _, monitor := range some(w.random, w.between(1, 2), []string{"m1", "m2", "m3"}) {
			monitors = append(monitors, monitor)
		}
		rbd := object{"monitors": monitors, "image": pick(w.random, "image-1", "image-1", "image-2"), "readOnly": readOnly}
		if w.chance(40) {
			rbd["pool"] = "other"
		}
		volume["rbd"] = rbd
	default:
		volume["csi"] = object{"driver": pick(w.random, csiDrivers...)}
	}
}
