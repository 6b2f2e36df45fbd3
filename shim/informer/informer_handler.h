// The interface between an informer and the receiver of its changes.
#ifndef OUTBOARD_SHIM_INFORMER_INFORMER_HANDLER_H_
#define OUTBOARD_SHIM_INFORMER_INFORMER_HANDLER_H_

#include <memory>

namespace outboard::informer {

// Receives the changes of one resource, in the order in which the informer's store changed. T is
// kube::PodObject, kube::NodeObject, ….
//
// Guarantees:
// - OnAdd is called only for a UID that is absent; OnUpdate and OnDelete only for a UID that is
//   present.
// - A recreated name is OnDelete of the old UID, then OnAdd of the new one.
// - After a relist the differences to the last known state are reported the same way, deletes
//   first.
// - OnSynced is called once, after all objects of the first list.
//
// Threading: all calls are on the informer's own thread. Implementations post to the scheduling
// thread's task_queue and return.
// Lifetime: the handler outlives the informer.
// Errors: none; the handler must handle its own failures.
template <typename T>
class InformerHandler {
 public:
  using Ptr = std::shared_ptr<const T>;

  virtual ~InformerHandler() = default;
  virtual void OnAdd(const Ptr& object) = 0;
  virtual void OnUpdate(const Ptr& old_object, const Ptr& new_object) = 0;
  // `object` is the last known state: from the DELETED event if there was one, otherwise from the
  // store.
  virtual void OnDelete(const Ptr& object) = 0;
  virtual void OnSynced() = 0;
};

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_INFORMER_HANDLER_H_
