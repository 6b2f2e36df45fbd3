// Operations in flight on the server's completion queue.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_COMPLETION_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_COMPLETION_H_

namespace outboard::services {

// One operation. The object must live until OnDone or OnAbandoned was called.
//
// Threading: the engine's thread.
// Errors: `ok` as gRPC defines it for the operation.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual void OnDone(bool ok) = 0;
  // The queue has been shut down: do not start further operations.
  virtual void OnAbandoned() = 0;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_COMPLETION_H_
