#include "cli/simulate/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/simulate/why.h"
#include "proto/short_names.h"
#include "shim/framework/fit_error.h"

namespace outboard::simulate {

nlohmann::ordered_json ToJson(const AttemptReport& report) {
  nlohmann::ordered_json json = diagnostics::ToJson(report);
  json["priority"] = report.priority;
  json["scheduler"] = report.scheduler;
  json["attempt"] = report.attempt;
  json["time"] = absl::ToDoubleSeconds(report.time);
  json["reasons"] = report.reasons;
  if (report.group_pods > 0) json["group"] = {{"name", report.group}, {"pods", report.group_pods}};
  json["why"] = report.why;
  return json;
}

std::string ToJsonLine(const AttemptReport& report) { return diagnostics::Dump(ToJson(report)); }

AttemptReport ReportOf(const kube::PodObject& pod, const std::string& result,
                       const std::string& message) {
  AttemptReport report;
  report.pod = pod.key();
  report.priority = pod.pod.priority();
  report.scheduler = pod.pod.scheduler_name();
  report.result = result;
  report.message = message;
  report.why = message;
  return report;
}

void Reporter::OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                           const framework::AlgorithmResult& result,
                           const v1beta1::PlanResponse& response, absl::Duration elapsed) {
  if (!every_attempt_ && attempts_.contains(pod.uid())) return;
  AttemptReport report;
  // Omits nodes after PreFilter that were not examined: a plugin failed there.
  const auto& left = framework::PreFilterOf(response).node_names().names();
  std::vector<uint32_t> slots = (*cluster_)->node_order();
  report.nodes = static_cast<uint32_t>(slots.size());
  std::erase_if(slots, [&](uint32_t slot) {
    return std::binary_search(left.begin(), left.end(), (*cluster_)->NodeAt(slot)->node.name());
  });
  diagnostics::FillNodes(
      {result.examined_slots, result.feasible_positions, result.totals,
       result.diagnosis.absent_nodes_reason, result.tried_slot, result.tried_status,
       response.evaluation().filter(),
       result.placed_together ? result.explained : response.evaluation().score(),
       profile.score_plugins, profile.skipped_score_plugins},
      slots,
      [this](uint32_t slot) -> const std::string& {
        return (*cluster_)->NodeAt(slot)->node.name();
      },
      &report);
  for (const framework::WeightedPlugin& plugin : profile.score_plugins)
    report.weights[plugin.name] = plugin.weight;
  report.evaluated_nodes = result.evaluated_nodes;
  report.feasible_nodes = result.feasible_nodes;
  report.pre_filter_message = result.diagnosis.pre_filter_message;
  if (result.outcome == framework::AlgorithmResult::Outcome::kPlaced) {
    report.lost_node = (*cluster_)->NodeAt(result.slot)->node.name();
    report.was_nominated = pod.pod.nominated_node_name() == report.lost_node;
  } else {
    report.reasons = framework::NodesByReason(result.diagnosis);
  }
  if (result.is_group) {
    const Group group = {response.plan().group().name(), result.others.size() + 1};
    for (const v1beta1::PlannedPlacement& other : result.others) groups_[other.pod_uid()] = group;
    groups_[pod.uid()] = group;
  }
  if (result.placed_together) {
    const auto group = groups_.extract(pod.uid());
    if (!group.empty()) {
      report.group = group.mapped().name;
      report.group_pods = group.mapped().pods;
    }
  }
  open_[pod.uid()] = {std::move(report), framework::FitErrorMessage(result.diagnosis),
                      result.rejected_with};
}

void Reporter::OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                            const std::vector<kube::PodPtr>& victims, size_t to_evict) {
  const auto open = open_.find(pod.uid());
  if (open == open_.end()) return;
  open->second.report.nominated_node = node_name;
  for (const std::string& uid : open->second.rejected_with) leaders_[uid] = pod.key();
  for (const kube::PodPtr& victim : victims) {
    open->second.report.victims.push_back(victim->key());
    preemptors_[victim->uid()] = absl::StrCat(pod.key(), " on node ", node_name);
  }
}

void Reporter::OnEvicted(const kube::PodObject& pod) {
  const auto by = preemptors_.find(pod.uid());
  if (!every_attempt_ || attempts(pod.uid()) == 0 || by == preemptors_.end()) return;
  AttemptReport report = ReportOf(pod, kPreempted, absl::StrCat("preempted by ", by->second));
  report.attempt = attempts(pod.uid());
  Report(std::move(report));
}

void Reporter::Report(AttemptReport report) {
  report.time = time_;
  report.why = Why(report);
  sink_(std::move(report));
}

namespace {

template <typename Write>
nlohmann::ordered_json Named(const Write& write) {
  return {
      {"resource", write.resource()}, {"namespace", write.namespace_()}, {"name", write.name()}};
}

template <typename Write>
nlohmann::ordered_json WithBody(const Write& write) {
  nlohmann::ordered_json json = Named(write);
  json["status"] = write.status();
  json["body"] = nlohmann::ordered_json::parse(write.json(), nullptr, /*allow_exceptions=*/false);
  return json;
}

// As Kubernetes writes the value: `True` for CONDITION_STATUS_TRUE.
template <typename Enum>
std::string KubernetesName(Enum value) {
  std::string name = absl::AsciiStrToLower(ShortName(value));
  name[0] = absl::ascii_toupper(static_cast<unsigned char>(name[0]));
  return name;
}

std::vector<std::string> ListOf(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// Sorted, so that equal effects are listed equally.
nlohmann::ordered_json Sorted(const google::protobuf::Map<std::string, std::string>& map) {
  return std::map<std::string, std::string>(map.begin(), map.end());
}

nlohmann::ordered_json PodPatch(const v1beta1::PatchPod& patch) {
  return {{"setAnnotations", Sorted(patch.set_annotations())},
          {"removeAnnotations", ListOf(patch.remove_annotations())},
          {"setLabels", Sorted(patch.set_labels())},
          {"removeLabels", ListOf(patch.remove_labels())}};
}

nlohmann::ordered_json Condition(const v1beta1::SetPodCondition& condition) {
  return {{"type", condition.type()},
          {"status", KubernetesName(condition.status())},
          {"reason", condition.reason()},
          {"message", condition.message()}};
}

nlohmann::ordered_json Event(const v1beta1::RecordEvent& event) {
  nlohmann::ordered_json json = Named(event);
  json["type"] = KubernetesName(event.type());
  json["reason"] = event.reason();
  json["action"] = event.action();
  json["note"] = event.note();
  return json;
}

}  // namespace

std::string DescribeEffect(const v1beta1::Effect& effect) {
  nlohmann::ordered_json json;
  if (effect.has_put_object()) json["put"] = WithBody(effect.put_object());
  if (effect.has_patch_object()) json["patch"] = WithBody(effect.patch_object());
  if (effect.has_delete_object()) json["delete"] = Named(effect.delete_object());
  if (effect.has_patch_pod()) json["patchPod"] = PodPatch(effect.patch_pod());
  if (effect.has_set_pod_condition()) json["condition"] = Condition(effect.set_pod_condition());
  if (effect.has_record_event()) json["event"] = Event(effect.record_event());
  return json.is_null() ? "" : diagnostics::Dump(json);
}

void Reporter::OnWrite(const scheduler::EffectOrder& order) {
  if (order.pod == nullptr) return;
  const auto open = open_.find(order.pod->uid());
  if (open == open_.end()) return;
  std::string described = DescribeEffect(order.effect);
  if (!described.empty()) open->second.report.effects.push_back(std::move(described));
}

void Reporter::OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                            scheduler::AttemptResult result, const std::string& node_name,
                            const std::string& message, absl::Duration since_attempt_began) {
  int& attempts = attempts_[pod.uid()];
  if (!every_attempt_ && attempts > 0) return;
  AttemptReport report = ReportOf(pod, diagnostics::ResultName(result), message);
  if (auto open = open_.extract(pod.uid()); !open.empty()) {
    AttemptReport& seen = open.mapped().report;
    absl::string_view post_filter = message;
    if (absl::ConsumePrefix(&post_filter, open.mapped().nodes_message))
      seen.post_filter_message = std::string(absl::StripAsciiWhitespace(post_filter));
    seen.pod = std::move(report.pod);
    seen.priority = report.priority;
    seen.scheduler = std::move(report.scheduler);
    seen.result = std::move(report.result);
    seen.message = std::move(report.message);
    report = std::move(seen);
  }
  report.attempt = ++attempts;
  ++all_attempts_;
  report.node = node_name;
  if (result == scheduler::AttemptResult::kScheduled) report.lost_node.clear();
  if (auto leader = leaders_.extract(pod.uid()); !leader.empty())
    report.leader = std::move(leader.mapped());
  if (!(report.nominated_node.empty() && report.leader.empty()) &&
      result == scheduler::AttemptResult::kUnschedulable)
    report.result = kPreempting;
  Report(std::move(report));
}

}  // namespace outboard::simulate
