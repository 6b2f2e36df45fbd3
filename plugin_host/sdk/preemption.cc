#include "plugin_host/sdk/preemption.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::sdk {
namespace {

bool AwaitsVictims(const Attempt& attempt, const DryRun& dry_run) {
  const std::string& name = attempt.pod().proto().nominated_node_name();
  if (name.empty()) return false;
  const std::optional<NodeView> node = attempt.cluster().FindNode(name);
  if (!node || dry_run.CodeOf(node->slot()) == v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE) {
    return false;
  }
  return std::any_of(node->pods().begin(), node->pods().end(), [&](const PodRecord* pod) {
    return pod->pod.priority() < attempt.pod().priority() && IsLeavingForAnother(pod->pod);
  });
}

// A pod that has not started counts as younger than started ones.
int64_t StartOf(const PodRecord& pod) {
  const int64_t start = pod.pod.start_unix_seconds();
  return start == 0 ? std::numeric_limits<int64_t>::max() : start;
}

}  // namespace

bool IsLeavingForAnother(const v1beta1::Pod& pod) {
  return pod.deletion_unix_seconds() != 0 && pod.preempted_by_scheduler();
}

void DeclarePreemptionGate(PluginDescriptor* descriptor) {
  descriptor->extension_points.push_back(v1beta1::EXTENSION_POINT_PRE_ENQUEUE);
  // A gated preemptor is re-evaluated when a pod is removed.
  descriptor->wake_up_events.push_back(WakeOn("Pod", {v1beta1::ClusterEvent::ACTION_DELETE}));
  // The shim keeps the gate in this plugin's name.
  descriptor->interests.push_back(InterestIn(v1beta1::EXTENSION_POINT_PRE_ENQUEUE, {}));
}

Verdict SayPreemption(v1beta1::Code code, absl::string_view message) {
  return Verdict(code, absl::StrCat("preemption: ", message));
}

Verdict MayPreempt(const Attempt& attempt, const DryRun& dry_run) {
  if (attempt.pod().proto().preemption_policy() == v1beta1::PREEMPTION_POLICY_NEVER) {
    return SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                         "not eligible due to preemptionPolicy=Never.");
  }
  if (AwaitsVictims(attempt, dry_run)) {
    return SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                         "not eligible due to a terminating pod on the nominated node.");
  }
  return Verdict::Success();
}

std::vector<Slot> NodesToPreemptOn(const Attempt& attempt, const DryRun& dry_run) {
  std::vector<Slot> nodes;
  for (Slot slot : attempt.cluster().node_order()) {
    if (dry_run.CodeOf(slot) == v1beta1::CODE_UNSCHEDULABLE) nodes.push_back(slot);
  }
  return nodes;
}

void SortByImportance(std::vector<PodRecord*>* pods) {
  std::vector<std::pair<PodRecord*, size_t>> numbered;
  numbered.reserve(pods->size());
  for (PodRecord* pod : *pods) numbered.emplace_back(pod, numbered.size());
  std::sort(numbered.begin(), numbered.end(), [](const auto& a, const auto& b) {
    const int32_t priority_a = a.first->pod.priority();
    const int32_t priority_b = b.first->pod.priority();
    if (priority_a != priority_b) return priority_a > priority_b;
    const int64_t start_a = StartOf(*a.first);
    const int64_t start_b = StartOf(*b.first);
    if (start_a != start_b) return start_a < start_b;
    const bool neither_started = a.first->pod.start_unix_seconds() == 0;
    return neither_started ? a.second > b.second : a.second < b.second;
  });
  for (size_t i = 0; i < pods->size(); ++i) (*pods)[i] = numbered[i].first;
}

void PreemptionSummary::Add(const Verdict& verdict) {
  ++nodes_;
  for (const std::string& reason : verdict.reasons()) ++reasons_[reason];
}

std::string PreemptionSummary::Text(size_t all_nodes) const {
  std::map<std::string, size_t> reasons = reasons_;
  if (nodes_ < all_nodes) {
    reasons["Preemption is not helpful for scheduling"] += all_nodes - nodes_;
  }
  std::vector<std::string> parts;
  for (const auto& [reason, count] : reasons) parts.push_back(absl::StrCat(count, " ", reason));
  // Sorted as strings, so that "10 …" precedes "2 …".
  std::sort(parts.begin(), parts.end());
  std::string text = absl::StrCat("0/", all_nodes, " nodes are available:");
  if (!parts.empty()) absl::StrAppend(&text, " ", absl::StrJoin(parts, ", "), ".");
  return text;
}

std::string JoinErrors(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  std::set<std::string> seen;
  for (const std::string& error : errors) {
    if (seen.insert(error).second) distinct.push_back(error);
  }
  if (distinct.size() == 1) return distinct[0];
  return absl::StrCat("[", absl::StrJoin(distinct, ", "), "]");
}

}  // namespace outboard::sdk
