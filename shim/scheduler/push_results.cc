#include "shim/scheduler/push_results.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/framework/answer_check.h"

namespace outboard::scheduler {
namespace {

using v1beta1::PushResult;

// Half of what a Sync message may have.
constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxNameBytes = 100;  // of a plugin's name in an error

}  // namespace

PushEnd PushEnd::NotServed(absl::string_view plugin) {
  return Refused(absl::InternalError(absl::StrCat("a host pushes for plugin \"",
                                                  framework::CutText(plugin, kMaxNameBytes),
                                                  "\", which it does not serve")));
}

PushEnd PushEnd::AboutPods(bool any_concerned, bool any_known) {
  if (any_concerned) return Applied();
  if (any_known)
    return NotApplied(PushResult::OUTCOME_SUPERSEDED, "none of its pods waits for it any more");
  return NotApplied(PushResult::OUTCOME_UNKNOWN, "none of its pods is known");
}

void PushResultBuffer::Add(uint64_t push_id, PushEnd::Outcome outcome, absl::string_view message) {
  if (push_id == 0 || results_.size() >= kMaxResults) return;
  PushResult& result = results_.emplace_back();
  result.set_push_id(push_id);
  result.set_outcome(outcome);
  result.set_message(framework::CutText(message));
}

void PushResultBuffer::TakeInto(v1beta1::SyncRequest* request) {
  for (size_t bytes = 0; !results_.empty() && bytes < kMaxBytes; results_.pop_front()) {
    bytes += results_.front().ByteSizeLong();
    *request->add_push_results() = std::move(results_.front());
  }
}

}  // namespace outboard::scheduler
