// A plugin's verdict on a pod, or on a pod on a node.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_VERDICT_H_
#define OUTBOARD_PLUGIN_HOST_SDK_VERDICT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/call.pb.h"

namespace outboard::sdk {

// Kubernetes' codes.
using Code = v1beta1::Code;
// Two of them have no number in the contract, because answers say the same in another way. Permit
// and PreBind: hold the pod.
inline constexpr Code kWait = static_cast<Code>(100);
// PreFilter and PreScore: the plugin has nothing to do for this pod.
inline constexpr Code kSkip = static_cast<Code>(101);

// A code with reasons for people.
//
// A plugin whose Filter rejects many nodes should keep its verdicts as members: the sink identifies
// them by address and copies them once.
//
// Threading: a value.
// Lifetime:  a value; see FilterSink for verdicts passed by reference.
// Errors:    none.
class Verdict {
 public:
  Verdict() = default;  // Success.
  Verdict(Code code, std::vector<std::string> reasons)
      : code_(code), reasons_(std::move(reasons)) {}
  Verdict(Code code, std::string reason) : code_(code) { reasons_.push_back(std::move(reason)); }

  static Verdict Success() { return Verdict(); }
  // PreFilter and PreScore only: the plugin has nothing to do for this pod.
  static Verdict Skip() { return Verdict(kSkip, std::vector<std::string>{}); }
  static Verdict Error(std::string message) {
    return Verdict(v1beta1::CODE_ERROR, std::move(message));
  }
  static Verdict Unschedulable(std::string reason) {
    return Verdict(v1beta1::CODE_UNSCHEDULABLE, std::move(reason));
  }
  static Verdict Unresolvable(std::string reason) {
    return Verdict(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, std::move(reason));
  }

  Code code() const { return code_; }
  const std::vector<std::string>& reasons() const { return reasons_; }
  bool ok() const { return code_ == v1beta1::CODE_SUCCESS; }
  bool skip() const { return code_ == kSkip; }
  bool rejected() const {
    return code_ == v1beta1::CODE_UNSCHEDULABLE ||
           code_ == v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE || code_ == v1beta1::CODE_PENDING;
  }
  friend bool operator==(const Verdict& a, const Verdict& b) {
    return a.code_ == b.code_ && a.reasons_ == b.reasons_;
  }

 private:
  Code code_ = v1beta1::CODE_SUCCESS;
  std::vector<std::string> reasons_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_VERDICT_H_
