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

// still is an informer that is not running either, but tells its handlers, at once and in the caller's goroutine, what is put into
// it: the caches for claims and for device classes know only what events told them.
type still struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

// makeStill replaces the factory's informers for what devices are claimed with; to be called before anybody asks for one of them.
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

// AddEventHandler registers with the informer too, which never calls, for the registration that callers want.
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

// store puts an object of the cluster into its informer.
func store(informer cache.SharedIndexInformer, object Object) error {
	if informer, ok := informer.(*still); ok {
		return informer.put(object)
	}
	return informer.GetIndexer().Add(object)
}
