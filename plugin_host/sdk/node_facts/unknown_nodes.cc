#include "plugin_host/sdk/node_facts/unknown_nodes.h"

#include "glog/logging.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {

OnUnknown ReadOnUnknown(const ArgsObject& root, OnUnknown default_value, bool may_score) {
  const char* const by_default = default_value == OnUnknown::kPass ? "pass" : "reject";
  const std::string text = root.String("unknown", by_default);
  if (text == "pass") return OnUnknown::kPass;
  if (text == "reject") return OnUnknown::kReject;
  if (text == "score-last" && may_score) return OnUnknown::kScoreLast;
  std::vector<std::string> supported = {"pass", "reject"};
  if (may_score) supported.push_back("score-last");
  root.Problem("unknown", NotSupported(text, supported));
  return default_value;
}

void UnknownNodes::Set(Slot slot, absl::string_view node, bool unknown) {
  if (slot >= unknown_.size()) {
    if (!unknown) return;
    unknown_.resize(slot + 1, 0);
  }
  const uint8_t now = unknown ? 1 : 0;
  if (unknown_[slot] == now) return;
  unknown_[slot] = now;
  count_ += unknown ? 1 : -1;
  gauge_->Set(static_cast<double>(count_));
  if (!unknown || warned_) return;
  warned_ = true;
  LOG(WARNING) << plugin_ << ": node " << node << ": " << fact_ << " is unknown; " << then_
               << ". docs/node-facts.md names the components that publish it. No further node is "
                  "reported; see the metrics";
}

void UnknownNodes::Clear() {
  unknown_.clear();
  count_ = 0;
  gauge_->Set(0);
}

}  // namespace outboard::sdk
