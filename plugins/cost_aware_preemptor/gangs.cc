#include "plugins/cost_aware_preemptor/gangs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::cost_aware_preemptor {
namespace {

// Evictions become visible within moments.
constexpr absl::Duration kPromiseHolds = absl::Minutes(1);

// The record on its node, which a dry run may have removed.
sdk::PodRecord* OnItsNode(const sdk::PodRecord& pod, const sdk::ClusterView& cluster) {
  const std::vector<sdk::PodRecord*>& pods = cluster.node(pod.slot).pods();
  const auto it = std::find(pods.begin(), pods.end(), &pod);
  return it == pods.end() ? nullptr : *it;
}

// The gang's size is unknown.
bool IsUnknown(const sdk::GroupSpec& spec) { return spec.not_found || !spec.fault.empty(); }

}  // namespace

int64_t Gangs::SizeOf(const sdk::GroupRef& ref, const sdk::GroupSpec& spec) const {
  if (const int64_t number = sdk::NumberOf(spec); number > 0) return number;
  return ref.key.dialect == sdk::GroupDialect::kJobName ? default_size_ : 1;
}

void Gangs::Clear() {
  index_.Clear();
  promised_.clear();
}

void Gangs::SetPod(const sdk::PodRecord& pod) {
  index_.SetPod(pod);
  if (!promised_.empty() && (pod.pod.deletion_unix_seconds() != 0 || !pod.on_node()))
    promised_.erase(pod.pod.uid());
}

void Gangs::RemovePod(const sdk::PodRecord& pod) {
  index_.RemovePod(pod);
  promised_.erase(pod.pod.uid());
}

std::optional<RunningGang> Gangs::GangOf(const sdk::PodRecord& pod,
                                         const std::string& preemptor_uid,
                                         const sdk::ClusterView& cluster, absl::Time now) const {
  if (pod.pod.deletion_unix_seconds() != 0) return std::nullopt;
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod.pod);
  if (!ref) return std::nullopt;
  const sdk::GroupSpec& spec = index_.SpecFor(*ref);
  const bool has_object = !sdk::GroupResource(ref->key.dialect).empty();
  // Which members are surplus depends on their parts.
  bool as_whole = IsUnknown(spec) || !sdk::PartsOf(spec).empty() ||
                  (spec.disrupted_as_whole && spec.disrupted_as_whole->value);
  int64_t size = SizeOf(*ref, spec);
  if (has_object && size <= 1 && !as_whole) return std::nullopt;
  RunningGang gang;
  const sdk::Group* group = index_.Find(ref->key);
  if (group == nullptr) return std::nullopt;
  int64_t staying = 0;
  for (const auto& [uid, member] : group->members) {
    if (member.state == sdk::MemberState::kTerminating) continue;
    const sdk::PodRecord* record = cluster.FindPod(uid);
    if (record == nullptr || !record->on_node()) continue;
    sdk::PodRecord* const placed = OnItsNode(*record, cluster);
    if (placed == nullptr) continue;
    gang.members.push_back(placed);
    if (!has_object) {
      // Members declare the size themselves; the largest counts.
      const std::optional<sdk::GroupRef> its = sdk::GroupOf(record->pod);
      size = std::max(size, SizeOf(*its, its->own));
      as_whole |= IsUnknown(its->own);
    }
    const auto promise = promised_.find(uid);
    staying += promise == promised_.end() || promise->second.preemptor_uid == preemptor_uid ||
                       now - promise->second.since > kPromiseHolds
                   ? 1
                   : 0;
  }
  if (size <= 1 && !as_whole) return std::nullopt;
  std::sort(gang.members.begin(), gang.members.end(),
            [](const auto* a, const auto* b) { return a->pod.uid() < b->pod.uid(); });
  if (!as_whole) gang.surplus = static_cast<size_t>(std::max<int64_t>(0, staying - size));
  return gang;
}

std::string Gangs::WhyNotAlone(const sdk::PodRecord& pod) const {
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod.pod);
  if (!ref) return "";
  const std::string name = absl::StrCat("gang ", sdk::Quote(ref->key.name));
  const sdk::GroupSpec& spec = index_.SpecFor(*ref);
  if (IsUnknown(spec)) return absl::StrCat(name, " has an unknown number of members.");
  if (index_.HasStarted(*ref, spec)) return "";
  const sdk::Group* group = index_.Find(ref->key);
  const int64_t running = group == nullptr ? 0
                                           : group->count(sdk::MemberState::kAssumed) +
                                                 group->count(sdk::MemberState::kBound);
  const int64_t size = SizeOf(*ref, spec);
  if (running + 1 >= size) return "";
  return absl::StrCat(name, " would not be complete: ", running, " of ", size, " members run.");
}

void Gangs::Promise(const sdk::PreemptionCandidate& candidate, const std::string& preemptor_uid,
                    absl::Time now) {
  absl::erase_if(promised_, [&](const auto& entry) {
    return now - entry.second.since > kPromiseHolds || entry.second.preemptor_uid == preemptor_uid;
  });
  for (const auto* pods : {&candidate.victims, &candidate.companions}) {
    for (const sdk::PodRecord* pod : *pods) {
      if (sdk::GroupOf(pod->pod)) promised_[pod->pod.uid()] = {preemptor_uid, now};
    }
  }
}

}  // namespace outboard::cost_aware_preemptor
