// A stream's operation as a method.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_STREAM_STEP_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_STREAM_STEP_H_

#include "plugin_host/services/completion.h"

namespace outboard::services {

// Calls a method of a stream when an operation is done, and OperationEnds when it is abandoned. One
// for each kind of operation that a stream can have in flight at the same time.
template <typename Stream, void (Stream::*method)(bool)>
class StreamStep final : public Completion {
 public:
  explicit StreamStep(Stream* stream) : stream_(stream) {}
  void OnDone(bool ok) override { (stream_->*method)(ok); }
  void OnAbandoned() override { stream_->OperationEnds(); }
  void* tag() { return static_cast<Completion*>(this); }

 private:
  Stream* const stream_;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_STREAM_STEP_H_
