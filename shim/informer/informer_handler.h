// What an informer tells about one kind of object.
#ifndef OUTBOARD_SHIM_INFORMER_INFORMER_HANDLER_H_
#define OUTBOARD_SHIM_INFORMER_INFORMER_HANDLER_H_

#include <memory>

namespace outboard::informer {

// Receives the changes of one resource, in the order in which the informer's store changed. T is
// kube::PodObject, kube::NodeObject, ….
//
// The calls form a consistent story: OnAdd of a UID that is not present, OnUpdate and OnDelete only
// of one that is; a name that was recreated is OnDelete of the old UID and then OnAdd of the new
// one. After a relist the differences to the last known state are told the same way, deletes first.
// OnSynced comes once, after every object of the first list was delivered.
//
// Threading: all calls come on the informer's own thread; implementations post to the scheduling
// thread's inbox and return.
// Lifetime: the handler outlives the informer. Errors: none; a handler that cannot take an event
// has to deal with that itself.
template <typename T>
class InformerHandler {
 public:
  using Ptr = std::shared_ptr<const T>;

  virtual ~InformerHandler() = default;
  virtual void OnAdd(const Ptr& object) = 0;
  virtual void OnUpdate(const Ptr& old_object, const Ptr& new_object) = 0;
  // `object` is the last state known: from the DELETED event where there was one, else what the
  // store had.
  virtual void OnDelete(const Ptr& object) = 0;
  virtual void OnSynced() = 0;
};

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_INFORMER_HANDLER_H_
