#include "plugin_host/sdk/filter_block.h"

#include "absl/hash/hash.h"

namespace outboard::sdk {

void VerdictTable::Clear() {
  entries_.clear();
  by_address_.clear();
  by_hash_.clear();
}

uint32_t VerdictTable::Intern(uint32_t plugin, const Verdict& verdict) {
  const size_t hash = absl::HashOf(plugin, static_cast<int>(verdict.code()), verdict.reasons());
  for (const auto& [known, id] : by_hash_) {
    if (known == hash && entries_[id].plugin == plugin && entries_[id].verdict == verdict)
      return id;
  }
  const uint32_t id = static_cast<uint32_t>(entries_.size());
  entries_.push_back({plugin, verdict});
  by_hash_.emplace_back(hash, id);
  return id;
}

uint32_t VerdictTable::InternStable(uint32_t plugin, const Verdict& verdict) {
  for (const auto& [address, id] : by_address_) {
    if (address == &verdict) return id;
  }
  const uint32_t id = Intern(plugin, verdict);
  by_address_.emplace_back(&verdict, id);
  return id;
}

void FilterSink::Set(uint64_t mask, uint32_t id, Code code) {
  // As in kube-scheduler, any other code is a failure of the plugin.
  const bool rejection = code == v1beta1::CODE_UNSCHEDULABLE ||
                         code == v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE ||
                         code == v1beta1::CODE_PENDING;
  (rejection ? rejected_ : failed_) |= mask;
  verdicts_->Add(mask, id);
}

}  // namespace outboard::sdk
