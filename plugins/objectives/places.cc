#include "plugins/objectives/places.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::objectives {
namespace {

// No label value contains it, so joined values stay distinct.
constexpr char kSeparator[] = "\n";

}  // namespace

Places::Places(std::vector<std::string> levels)
    : levels_(std::move(levels)), domain_(levels_.size()) {
  const size_t beyond = levels_.size() + 1;
  for (size_t level = 0; level <= beyond; ++level)
    closeness_.push_back(1 - static_cast<double>(level) / static_cast<double>(beyond));
}

void Places::Reset() {
  domains_.Clear();
  ++version_;
  for (std::vector<uint32_t>& column : domain_) column.clear();
  data_.clear();
  holders_.clear();
}

void Places::Set(sdk::Slot slot, const sdk::StringMap& labels, const std::string& object,
                 sdk::MalformedValues* malformed) {
  std::vector<uint32_t> domains(levels_.size(), sdk::StringTable::kNone);
  std::string path;
  for (size_t i = levels_.size(); i-- > 0;) {
    const std::string* value = sdk::FindValue(labels, levels_[i]);
    absl::StrAppend(&path, kSeparator, value == nullptr ? "" : *value);
    if (value != nullptr && !value->empty()) domains[i] = domains_.Intern(absl::StrCat(i, path));
  }
  std::vector<std::string> data;
  for (const auto& [key, value] : labels) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, kDataPrefix) || name.empty()) continue;
    const std::optional<bool> holds = sdk::ParseBool(value);
    if (!holds) malformed->Warn(object, key, value, "true or false");
    if (holds.value_or(false)) data.emplace_back(name);
  }
  std::sort(data.begin(), data.end());
  if (IsAt(slot, domains) && data == data_[slot]) return;
  Clear(slot);
  for (size_t i = 0; i < levels_.size(); ++i) domain_[i][slot] = domains[i];
  for (const std::string& name : data) Add(slot, HoldersToChange(name));
  data_[slot] = std::move(data);
}

bool Places::IsAt(sdk::Slot slot, const std::vector<uint32_t>& domains) const {
  if (slot >= data_.size()) return false;
  for (size_t i = 0; i < levels_.size(); ++i) {
    if (domain_[i][slot] != domains[i]) return false;
  }
  return true;
}

void Places::Clear(sdk::Slot slot) {
  ++version_;
  if (slot >= data_.size()) {
    data_.resize(slot + 1);
    for (std::vector<uint32_t>& column : domain_) column.resize(slot + 1, sdk::StringTable::kNone);
  }
  // Before the node's old domains are overwritten.
  for (const std::string& name : data_[slot]) {
    Targets* holders = HoldersToChange(name);
    Remove(slot, holders);
    if (holders->total == 0) holders_.erase(name);
  }
  data_[slot].clear();
  for (std::vector<uint32_t>& column : domain_) column[slot] = sdk::StringTable::kNone;
}

Targets* Places::HoldersToChange(const std::string& data) {
  std::shared_ptr<Targets>& holders = holders_[data];
  if (holders == nullptr) {
    holders = std::make_shared<Targets>();
  } else if (holders.use_count() > 1) {
    holders = std::make_shared<Targets>(*holders);
  }
  return holders.get();
}

Holders Places::HoldersOf(const std::string& data) const {
  static const Holders& none = *new Holders(std::make_shared<Targets>());
  const auto found = holders_.find(data);
  if (found == holders_.end()) return none;
  Targets& holders = *found->second;
  if (holders.version != version_) {
    // Precomputed: every attempt needs it for every node, and it rarely changes.
    holders.nearest.resize(data_.size());
    for (sdk::Slot slot = 0; slot < data_.size(); ++slot)
      holders.nearest[slot] = static_cast<uint8_t>(FindNearestLevel(holders, slot));
    holders.version = version_;
  }
  return found->second;
}

void Places::Count(sdk::Slot slot, int64_t sign, Targets* targets) const {
  targets->counts.resize(levels_.size() + 1);
  targets->total += sign;
  for (size_t level = 0; level <= levels_.size(); ++level) {
    const uint32_t domain = level == 0 ? slot : domain_[level - 1][slot];
    if (domain == sdk::StringTable::kNone) continue;
    std::vector<int64_t>& counts = targets->counts[level];
    if (domain >= counts.size()) counts.resize(domain + 1, 0);
    counts[domain] += sign;
  }
}

int64_t Places::CountAt(const Targets& targets, size_t level, sdk::Slot slot) const {
  const uint32_t domain = level == 0 ? slot : domain_[level - 1][slot];
  const std::vector<int64_t>& counts = targets.counts[level];
  return domain < counts.size() ? counts[domain] : 0;  // Also for kNone.
}

size_t Places::FindNearestLevel(const Targets& targets, sdk::Slot slot) const {
  const size_t beyond = levels_.size() + 1;
  if (targets.total == 0) return beyond;
  for (size_t level = 0; level < beyond; ++level) {
    if (CountAt(targets, level, slot) > 0) return level;
  }
  return beyond;
}

double Places::MeanCloseness(const Targets& targets, sdk::Slot slot) const {
  if (targets.total == 0) return 0;
  double sum = 0;
  int64_t counted = 0;
  for (size_t level = 0; level <= levels_.size(); ++level) {
    // The count of this level includes the nodes that share a nearer level.
    const int64_t count = CountAt(targets, level, slot);
    if (count <= counted) continue;
    sum += static_cast<double>(count - counted) * closeness_[level];
    counted = count;
  }
  return sum / static_cast<double>(targets.total);
}

}  // namespace outboard::objectives
