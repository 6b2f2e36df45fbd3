// A plugin's verdict on a pod, or on a pod on a node.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_VERDICT_H_
#define OUTBOARD_PLUGIN_HOST_SDK_VERDICT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/outboard/v1alpha1/call.pb.h"

namespace outboard::sdk {

// Kubernetes' codes: SUCCESS, ERROR, UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE, WAIT, SKIP,
// PENDING.
using Code = v1alpha1::Code;

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
  static Verdict Skip() { return Verdict(v1alpha1::SKIP, std::vector<std::string>{}); }
  static Verdict Error(std::string message) { return Verdict(v1alpha1::ERROR, std::move(message)); }
  static Verdict Unschedulable(std::string reason) {
    return Verdict(v1alpha1::UNSCHEDULABLE, std::move(reason));
  }
  static Verdict Unresolvable(std::string reason) {
    return Verdict(v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE, std::move(reason));
  }

  Code code() const { return code_; }
  const std::vector<std::string>& reasons() const { return reasons_; }
  bool ok() const { return code_ == v1alpha1::SUCCESS; }
  bool skip() const { return code_ == v1alpha1::SKIP; }
  bool rejected() const {
    return code_ == v1alpha1::UNSCHEDULABLE || code_ == v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE ||
           code_ == v1alpha1::PENDING;
  }
  friend bool operator==(const Verdict& a, const Verdict& b) {
    return a.code_ == b.code_ && a.reasons_ == b.reasons_;
  }

 private:
  Code code_ = v1alpha1::SUCCESS;
  std::vector<std::string> reasons_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_VERDICT_H_
