package oracle

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// informerOf returns the informer in which plugins look for objects of this kind. It does not run, so plugins get no
// events. None of the plugins whose verdicts are compared needs events for the kinds below (the caches of
// VolumeBinding read through to the informer's store, and use events only to forget assumptions).
func (r *run) informerOf(object Object) (cache.SharedIndexInformer, error) {
	core, apps, storage := r.informers.Core().V1(), r.informers.Apps().V1(), r.informers.Storage().V1()
	switch object.(type) {
	case *v1.Namespace:
		return core.Namespaces().Informer(), nil
	case *v1.Service:
		return core.Services().Informer(), nil
	case *v1.ReplicationController:
		return core.ReplicationControllers().Informer(), nil
	case *v1.PersistentVolume:
		return core.PersistentVolumes().Informer(), nil
	case *v1.PersistentVolumeClaim:
		return core.PersistentVolumeClaims().Informer(), nil
	case *appsv1.ReplicaSet:
		return apps.ReplicaSets().Informer(), nil
	case *appsv1.StatefulSet:
		return apps.StatefulSets().Informer(), nil
	case *policyv1.PodDisruptionBudget:
		return r.informers.Policy().V1().PodDisruptionBudgets().Informer(), nil
	case *storagev1.StorageClass:
		return storage.StorageClasses().Informer(), nil
	case *storagev1.CSINode:
		return storage.CSINodes().Informer(), nil
	case *storagev1.CSIDriver:
		return storage.CSIDrivers().Informer(), nil
	case *storagev1.CSIStorageCapacity:
		return storage.CSIStorageCapacities().Informer(), nil
	case *storagev1.VolumeAttachment:
		return storage.VolumeAttachments().Informer(), nil
	case *resourcev1.DeviceClass:
		return r.informers.Resource().V1().DeviceClasses().Informer(), nil
	case *resourcev1.ResourceSlice:
		return r.informers.Resource().V1().ResourceSlices().Informer(), nil
	case *resourcev1.ResourceClaim:
		return r.informers.Resource().V1().ResourceClaims().Informer(), nil
	}
	return nil, fmt.Errorf("no informer for %T", object)
}
