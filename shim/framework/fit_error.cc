#include "shim/framework/fit_error.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::framework {
void Diagnosis::AddRejection(const v1beta1::PluginStatus& status, uint32_t nodes) {
  for (const std::string& reason : status.reasons()) reasons[reason] += nodes;
  num_rejected_nodes += nodes;
  AddPlugin(status);
}

void Diagnosis::AddPlugin(const v1beta1::PluginStatus& status) {
  if (status.plugin().empty()) return;
  unschedulable_plugins.insert(status.plugin());
  if (status.code() == v1beta1::CODE_PENDING) pending_plugins.insert(status.plugin());
}

std::map<std::string, uint32_t> NodesByReason(const Diagnosis& diagnosis) {
  if (!diagnosis.pre_filter_message.empty()) return {};
  std::map<std::string, uint32_t> reasons = diagnosis.reasons;
  if (!diagnosis.absent_nodes_reason.empty() &&
      diagnosis.num_rejected_nodes < diagnosis.num_all_nodes) {
    reasons[diagnosis.absent_nodes_reason] +=
        diagnosis.num_all_nodes - diagnosis.num_rejected_nodes;
  }
  return reasons;
}

namespace {

// Why the nodes cannot take the pod.
std::string NodesMessage(const Diagnosis& diagnosis) {
  if (!diagnosis.pre_filter_message.empty()) {
    return absl::StrCat(" ", diagnosis.pre_filter_message, ".");
  }
  const std::map<std::string, uint32_t> reasons = NodesByReason(diagnosis);
  std::vector<std::string> parts;
  parts.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) parts.push_back(absl::StrCat(count, " ", reason));
  // Sorted as strings, so that "10 …" precedes "2 …".
  std::sort(parts.begin(), parts.end());
  return parts.empty() ? "" : absl::StrCat(" ", absl::StrJoin(parts, ", "), ".");
}

}  // namespace

std::string FitErrorMessage(const Diagnosis& diagnosis) {
  std::string message =
      absl::StrCat("0/", diagnosis.num_all_nodes, " nodes are available:", NodesMessage(diagnosis));
  if (!diagnosis.post_filter_message.empty()) {
    absl::StrAppend(&message, " ", diagnosis.post_filter_message);
  }
  return message;
}

Diagnosis DiagnosisOfRejectedNode(const v1beta1::PluginStatus& status) {
  Diagnosis diagnosis;
  diagnosis.num_all_nodes = 1;
  diagnosis.AddRejection(status, 1);
  return diagnosis;
}

}  // namespace outboard::framework
