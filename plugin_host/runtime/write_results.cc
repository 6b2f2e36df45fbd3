#include "plugin_host/runtime/write_results.h"

#include <glog/logging.h>

#include "absl/strings/ascii.h"
#include "proto/short_names.h"

namespace outboard::runtime {
namespace {

using v1beta1::PushResult;

// A plugin may use any number of keys.
constexpr size_t kMaxWarned = 4096;

// A newer contract may have others; they mean that the write failed.
PushResult::Outcome Known(PushResult::Outcome outcome) {
  return PushResult::Outcome_IsValid(outcome) && outcome != PushResult::OUTCOME_UNSPECIFIED
             ? outcome
             : PushResult::OUTCOME_FAILED;
}

}  // namespace

uint64_t WriteResults::Push(const v1beta1::Effect& effect) {
  if (pending_.size() >= kMaxPending) pending_.erase(pending_.begin());
  pending_[++last_id_] = {effect.plugin(), effect.key()};
  return last_id_;
}

void WriteResults::Take(const v1beta1::SyncRequest& request) {
  for (const PushResult& result : request.push_results()) {
    const auto write = pending_.extract(result.push_id());
    if (write.empty()) continue;
    Count(write.mapped().first, Known(result.outcome()));
    Log(write.mapped(), result);
  }
}

void WriteResults::Count(const std::string& plugin, PushResult::Outcome outcome) {
  if (metrics_ == nullptr) return;
  std::shared_ptr<sdk::Counter>& counter = counters_[{plugin, outcome}];
  if (counter == nullptr) {
    counter =
        metrics_->NewCounter(WritesMetric(), {plugin, absl::AsciiStrToLower(ShortName(outcome))});
  }
  counter->Add();
}

void WriteResults::Log(const Write& write, const PushResult& result) {
  const PushResult::Outcome outcome = Known(result.outcome());
  if (outcome == PushResult::OUTCOME_SUPERSEDED) return;
  if (outcome == PushResult::OUTCOME_APPLIED) {
    warned_.erase(write);
    return;
  }
  if (warned_.size() >= kMaxWarned) warned_.clear();
  if (!warned_.insert(write).second) return;
  LOG(WARNING) << "Write of plugin " << write.first << " with key " << write.second
               << " failed: " << ShortName(outcome) << ": " << result.message();
}

}  // namespace outboard::runtime
