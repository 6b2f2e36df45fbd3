#include "plugins/atomic_replica_coordinator/group_status.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/cluster_objects.h"

namespace outboard::atomic_replica_coordinator {
namespace {

using nlohmann::json;
using sdk::GroupDialect;
using sdk::GroupKey;
using sdk::MemberState;

// The condition of Kubernetes' own PodGroup (scheduling.k8s.io).
constexpr char kCondition[] = "PodGroupScheduled";
// Phases of scheduler-plugins' PodGroup.
constexpr char kPending[] = "Pending";
constexpr char kScheduling[] = "Scheduling";

constexpr absl::string_view kMembersExist = " members exist";
constexpr absl::string_view kMembersPlaced = " members placed";

// How often a text alone is updated, and how long an incomplete group is not reported.
constexpr absl::Duration kTextInterval = absl::Seconds(10);
// The API server accepts 32 KiB; people read the first lines.
constexpr size_t kMaxTextBytes = 4096;
// Limits the groups of one tick, so that a tick stays short.
constexpr size_t kMaxGroupsPerTick = 500;

bool IsWritten(GroupDialect dialect) {
  return dialect == GroupDialect::kKubernetes || dialect == GroupDialect::kSchedulerPlugins;
}

std::string Cut(absl::string_view text) {
  if (text.size() <= kMaxTextBytes) return std::string(text);
  size_t end = kMaxTextBytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;  // inside a character
  return absl::StrCat(text.substr(0, end), "…");
}

json StatusOf(const json& whole) {
  const json* status = sdk::JsonAt(whole, {"status"});
  return status != nullptr && status->is_object() ? *status : json::object();
}

// True is final, as with kube-scheduler: it means that the group has started.
std::optional<json> WithCondition(const json& whole, const Finding& finding, absl::Time now) {
  json status = StatusOf(whole);
  const json before = status;
  const json* present = sdk::FindCondition(status, kCondition);
  if (present != nullptr && sdk::IsConditionTrue(status, kCondition)) return std::nullopt;
  const std::string text =
      present == nullptr ? "" : sdk::TextAt(*present, {"message"}).value_or("");
  if (finding.is_vague && present != nullptr && !absl::EndsWith(text, kMembersExist) &&
      !absl::EndsWith(text, kMembersPlaced)) {
    return std::nullopt;
  }
  const bool is_scheduled = finding.kind == Finding::kScheduled;
  const char* reason = is_scheduled                      ? "Scheduled"
                       : finding.kind == Finding::kError ? "SchedulerError"
                                                         : "Unschedulable";
  sdk::SetCondition({kCondition, is_scheduled, reason, Cut(finding.message)}, now, &status);
  if (const json* generation = sdk::JsonAt(whole, {"metadata", "generation"});
      generation != nullptr && generation->is_number_integer()) {
    for (json& condition : status["conditions"]) {
      if (sdk::TextAt(condition, {"type"}) == kCondition)
        condition["observedGeneration"] = *generation;
    }
  }
  if (status == before) return std::nullopt;
  return status;
}

// Moves the phase only forward, as scheduler-plugins' controller does; later phases are the
// controller's.
std::optional<json> WithPhase(const json& whole, const Finding& finding, const std::string& owner) {
  json status = StatusOf(whole);
  const std::string phase = sdk::TextAt(status, {"phase"}).value_or("");
  const bool is_scheduled = finding.kind == Finding::kScheduled;
  if (!phase.empty() && (phase != kPending || !is_scheduled)) return std::nullopt;
  status["phase"] = is_scheduled ? kScheduling : kPending;
  if (is_scheduled && !owner.empty() && sdk::TextAt(status, {"occupiedBy"}).value_or("").empty())
    status["occupiedBy"] = owner;
  return status;
}

// The state that the object already reports, without the text.
Finding::Kind KindIn(GroupDialect dialect, const json& whole) {
  const json status = StatusOf(whole);
  if (dialect == GroupDialect::kSchedulerPlugins) {
    const std::string phase = sdk::TextAt(status, {"phase"}).value_or("");
    if (phase.empty()) return Finding::kNothing;
    return phase == kPending ? Finding::kUnschedulable : Finding::kScheduled;
  }
  const json* condition = sdk::FindCondition(status, kCondition);
  if (condition == nullptr) return Finding::kNothing;
  if (sdk::IsConditionTrue(status, kCondition)) return Finding::kScheduled;
  return sdk::TextAt(*condition, {"reason"}) == "SchedulerError" ? Finding::kError
                                                                 : Finding::kUnschedulable;
}

std::string ObjectKeyOf(const GroupKey& key) {
  return sdk::CustomKey(sdk::GroupResource(key.dialect), key.ns, key.name);
}

}  // namespace

bool KeepsStatusOf(absl::string_view resource) {
  const std::optional<GroupDialect> dialect = sdk::DialectOfResource(resource);
  return dialect && IsWritten(*dialect);
}

Finding FindingOf(const sdk::Group& group, const LastWord& last) {
  if (!group.object) return {};
  if (!group.object->fault.empty()) return {Finding::kUnschedulable, group.object->fault};
  if (!group.object->min) return {};
  const int64_t size = group.object->min->value;
  if (group.count(MemberState::kBound) >= size) return {Finding::kScheduled, ""};
  const auto of_all = [&](int64_t number, absl::string_view what) {
    return absl::StrCat(number, " of ", size, what);
  };
  if (group.existing() < size) {
    return {Finding::kUnschedulable, of_all(group.existing(), kMembersExist), /*may_pass=*/true};
  }
  if (group.placed() >= size) return {};  // Their binding is in progress.
  if (!last.text.empty())
    return {last.is_error ? Finding::kError : Finding::kUnschedulable, last.text};
  return {Finding::kUnschedulable, of_all(group.placed(), kMembersPlaced), /*may_pass=*/true,
          /*is_vague=*/true};
}

std::optional<json> NextStatus(GroupDialect dialect, const json& whole, const Finding& finding,
                               const std::string& owner, absl::Time now) {
  if (finding.kind == Finding::kNothing) return std::nullopt;
  if (dialect == GroupDialect::kKubernetes) return WithCondition(whole, finding, now);
  if (dialect == GroupDialect::kSchedulerPlugins) return WithPhase(whole, finding, owner);
  return std::nullopt;
}

void GroupStatusKeeper::Clear() {
  entries_.clear();
  changed_.clear();
  pace_.Clear();
}

void GroupStatusKeeper::Touch(const GroupKey& key) {
  if (IsWritten(key.dialect)) changed_.insert(key);
}

void GroupStatusKeeper::ObjectChanged(const GroupKey& key) {
  Touch(key);
  pace_.Changed(ObjectKeyOf(key));
}

void GroupStatusKeeper::Say(const GroupKey& key, absl::string_view text, bool is_error) {
  if (!IsWritten(key.dialect)) return;
  LastWord& last = entries_[key].last;
  if (last.text == text && last.is_error == is_error) return;
  last = {std::string(text), is_error};
  Touch(key);
}

void GroupStatusKeeper::Tick(absl::Time now) {
  std::vector<GroupKey> keys(changed_.begin(), changed_.end());
  if (keys.size() > kMaxGroupsPerTick) {
    std::rotate(keys.begin(), keys.begin() + turn_++ * kMaxGroupsPerTick % keys.size(), keys.end());
    keys.resize(kMaxGroupsPerTick);
  }
  for (const GroupKey& key : keys) {
    if (Keep(key, now)) changed_.erase(key);
  }
}

bool GroupStatusKeeper::Keep(const GroupKey& key, absl::Time now) {
  const sdk::Group* group = groups_->Find(key);
  const sdk::PodRecord* writer = group == nullptr ? nullptr : WriterOf(*group);
  if (writer == nullptr) {
    entries_.erase(key);
    pace_.Forget(ObjectKeyOf(key));
    return true;
  }
  Entry& entry = entries_[key];
  const Finding finding = FindingOf(*group, entry.last);
  if (finding.kind == Finding::kNothing) return true;
  if (!finding.may_pass) {
    entry.passes_until = absl::InfinitePast();
  } else if (entry.passes_until == absl::InfinitePast()) {
    entry.passes_until = now + kTextInterval;
  }
  if (now < entry.passes_until) return false;
  if (finding.kind == entry.written && now < entry.next_text) return false;
  const std::string name = ObjectKeyOf(key);
  if (!pace_.MayBeDue(name, now)) return false;
  const auto* stored = cluster_.objects().Find<v1beta1::GenericObject>(name);
  if (stored == nullptr || stored->deleting()) return true;
  json whole = sdk::ParseCustomObject(*stored);
  const std::string owner =
      writer->pod.has_controller()
          ? absl::StrCat(writer->pod.namespace_(), "/", writer->pod.controller().name())
          : "";
  std::optional<json> status = NextStatus(key.dialect, whole, finding, owner, now);
  if (!status) {
    entry.written = finding.kind;
    pace_.Forget(name);
    return true;
  }
  entry.written = KindIn(key.dialect, whole);
  if (finding.kind == entry.written && now < entry.next_text) return false;
  if (!pace_.IsDue(name, now)) return false;
  whole["status"] = *std::move(status);
  pushes_->Write(sdk::ReplaceStatus(*stored, whole));
  entry.next_text = now + kTextInterval;
  return false;
}

const sdk::PodRecord* GroupStatusKeeper::WriterOf(const sdk::Group& group) const {
  const std::string* first = nullptr;
  for (const auto& [uid, member] : group.members) {
    if (member.state == MemberState::kTerminating) continue;
    if (first == nullptr || uid < *first) first = &uid;
  }
  const sdk::PodRecord* record = first == nullptr ? nullptr : cluster_.FindPod(*first);
  return record != nullptr && record->pod.scheduler_name() == profile_ ? record : nullptr;
}

}  // namespace outboard::atomic_replica_coordinator
