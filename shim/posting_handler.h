// Posts what an informer reports to the scheduling thread.
#ifndef OUTBOARD_SHIM_POSTING_HANDLER_H_
#define OUTBOARD_SHIM_POSTING_HANDLER_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "shim/informer/informer_handler.h"
#include "shim/task_queue.h"

namespace outboard::shim {

// Posts the changes of one resource to the scheduling thread.
template <typename T>
class PostingHandler final : public informer::InformerHandler<T> {
 public:
  using Ptr = std::shared_ptr<const T>;
  struct Functions {
    std::function<void(const Ptr&, absl::Time)> upsert;
    std::function<void(const Ptr&, absl::Time)> remove;
    std::function<void()> synced;
  };
  PostingHandler(TaskQueue* task_queue, Functions functions)
      : task_queue_(task_queue), functions_(std::move(functions)) {}

  void OnAdd(const Ptr& object) override { Upsert(object); }
  void OnUpdate(const Ptr& old_object, const Ptr& new_object) override { Upsert(new_object); }
  void OnDelete(const Ptr& object) override {
    task_queue_->Post([this, object](absl::Time now) { functions_.remove(object, now); });
  }
  void OnSynced() override {
    task_queue_->Post([this](absl::Time) { functions_.synced(); });
  }

 private:
  void Upsert(const Ptr& object) {
    task_queue_->Post([this, object](absl::Time now) { functions_.upsert(object, now); });
  }
  TaskQueue* const task_queue_;
  const Functions functions_;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_POSTING_HANDLER_H_
