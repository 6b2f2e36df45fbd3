// Why a pod fits on no node, in kube-scheduler's words.
#ifndef OUTBOARD_SHIM_FRAMEWORK_FIT_ERROR_H_
#define OUTBOARD_SHIM_FRAMEWORK_FIT_ERROR_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "outboard/v1beta1/call.pb.h"

namespace outboard::framework {

inline constexpr char kNoNodesAvailable[] = "no nodes available to schedule pods";

// What an attempt learned about nodes that cannot take the pod. Value type; not thread-safe.
struct Diagnosis {
  uint32_t num_all_nodes = 0;
  // Set if PreFilter rejected the pod; then no node was evaluated.
  std::string pre_filter_message;
  // PostFilter's message.
  std::string post_filter_message;
  // How often each reason was given, over all evaluated nodes.
  std::map<std::string, uint32_t> reasons;
  // Nodes that were evaluated and rejected.
  uint32_t num_rejected_nodes = 0;
  // The reason for nodes that PreFilter excluded; empty: it excluded none.
  std::string absent_nodes_reason;
  // Plugins whose events may help the pod.
  std::set<std::string> unschedulable_plugins;
  std::set<std::string> pending_plugins;
  // Plugins that could not help at PostFilter; their events are ignored.
  std::set<std::string> post_filter_plugins;

  // Counts `status` as the verdict on `nodes` more nodes.
  void AddRejection(const v1beta1::PluginStatus& status, uint32_t nodes);
  // Records the rejecting plugin without a node.
  void AddPlugin(const v1beta1::PluginStatus& status);
};

// How many nodes each reason excluded; empty if PreFilter rejected the pod.
std::map<std::string, uint32_t> NodesByReason(const Diagnosis& diagnosis);

// `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s).`
std::string FitErrorMessage(const Diagnosis& diagnosis);

// The diagnosis of a pod that had a node and was rejected there by Reserve or Permit.
Diagnosis DiagnosisOfRejectedNode(const v1beta1::PluginStatus& status);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_FIT_ERROR_H_
