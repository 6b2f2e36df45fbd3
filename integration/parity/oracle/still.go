package oracle

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// still is an informer that does not run, but passes added objects to its handlers at once, in the caller's
// goroutine: the caches for claims and device classes know only objects from events.
type still struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

// makeStill replaces the factory's informers for devices and claims; call it before any of them is requested.
func makeStill(factory informers.SharedInformerFactory) {
	for _, kind := range []struct {
		object runtime.Object
		create func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer
	}{
		{&resourcev1.ResourceClaim{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return resourceinformers.NewResourceClaimInformer(client, "", resync, cache.Indexers{})
		}},
		{&resourcev1.ResourceSlice{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return resourceinformers.NewResourceSliceInformer(client, resync, cache.Indexers{})
		}},
		{&resourcev1.DeviceClass{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return resourceinformers.NewDeviceClassInformer(client, resync, cache.Indexers{})
		}},
	} {
		factory.InformerFor(kind.object, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return &still{SharedIndexInformer: kind.create(client, resync)}
		})
	}
}

// AddEventHandler also registers with the informer, which never calls, to return a registration to callers.
func (s *still) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	s.handlers = append(s.handlers, handler)
	return s.SharedIndexInformer.AddEventHandler(handler)
}

// put adds an object or its new version.
func (s *still) put(object Object) error {
	before, existed, err := s.GetIndexer().Get(object)
	if err != nil {
		return err
	}
	if err := s.GetIndexer().Update(object); err != nil {
		return err
	}
	for _, handler := range s.handlers {
		if existed {
			handler.OnUpdate(before, object)
		} else {
			handler.OnAdd(object, false)
		}
	}
	return nil
}

func (s *still) remove(object Object) error {
	if err := s.GetIndexer().Delete(object); err != nil {
		return err
	}
	for _, handler := range s.handlers {
		handler.OnDelete(object)
	}
	return nil
}

// store adds an object of the cluster to its informer.
func store(informer cache.SharedIndexInformer, object Object) error {
	if informer, ok := informer.(*still); ok {
		return informer.put(object)
	}
	return informer.GetIndexer().Add(object)
}
