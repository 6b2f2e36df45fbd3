// Why a call has no answer, before conversion to a gRPC status.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_CALL_STATUS_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_CALL_STATUS_H_

#include <string>

#include "outboard/v1beta1/call.pb.h"
#include "plugin_host/runtime/cut_text.h"

namespace outboard::runtime {

// Success, or a reason of call.proto with a message for people.
//
// Threading: a value.
// Lifetime: a value.
// Errors: is one.
class [[nodiscard]] CallStatus {
 public:
  using Reason = v1beta1::CallError::Reason;
  CallStatus() = default;
  // Truncates the message: it may quote a request of any size, and metadata is limited.
  CallStatus(Reason reason, const std::string& message)
      : reason_(reason), message_(CutText(message)) {}
  static CallStatus Ok() { return CallStatus(); }
  static CallStatus Stale(int64_t have_version) {
    CallStatus status(v1beta1::CallError::REASON_STALE, "the cache has not reached this version");
    status.have_version_ = have_version;
    return status;
  }

  bool ok() const { return reason_ == v1beta1::CallError::REASON_UNSPECIFIED; }
  Reason reason() const { return reason_; }
  const std::string& message() const { return message_; }
  v1beta1::CallError ToProto() const {
    v1beta1::CallError error;
    error.set_reason(reason_);
    error.set_message(message_);
    error.set_have_version(have_version_);
    return error;
  }

 private:
  Reason reason_ = v1beta1::CallError::REASON_UNSPECIFIED;
  std::string message_;
  int64_t have_version_ = 0;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_CALL_STATUS_H_
