// Runs one plugin on a small cluster, with the host's runtime.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_PLUGIN_HARNESS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_PLUGIN_HARNESS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/queueing_hint.h"

namespace outboard::sdk::testing {

// A cluster and one plugin. Add nodes and pods, then call about a pod, in the order PreFilter,
// Filter, PreScore, Score; each call runs missing earlier ones.
//
// Threading: one thread.
// Lifetime:  owns the cluster and the plugin.
// Errors:    Create reports problems of args as `path: message` lines; wrong use of the cluster
//            fails the test.
class PluginHarness {
 public:
  static absl::StatusOr<std::unique_ptr<PluginHarness>> Create(const PluginDescriptor& descriptor,
                                                               absl::string_view args_json = "");
  ~PluginHarness();

  void AddNode(const v1beta1::Node& node);
  void RemoveNode(const std::string& name);
  // On the node that the pod names, or pending.
  void AddPod(const v1beta1::Pod& pod);
  void RemovePod(const std::string& uid);
  // As if the shim had assumed the pod there; `state` as in PodPlacement.
  void Place(const std::string& uid, v1beta1::PlacementState state, const std::string& node,
             const std::vector<v1beta1::Effect>& effects = {});
  void AddNamespace(const std::string& name, const std::map<std::string, std::string>& labels);
  void RemoveNamespace(const std::string& name);
  // A service, a workload, a volume …; RemoveObject needs only the naming fields.
  void AddObject(const v1beta1::ClusterObject& object);
  void RemoveObject(const v1beta1::ClusterObject& object);
  void SetNow(absl::Time now);
  ClusterView cluster() const;
  Plugin& plugin();

  struct PreFilterOutcome {
    Verdict verdict;  // SKIP if the plugin has nothing to do.
    std::optional<std::vector<std::string>> node_names;
  };
  // Begins an attempt for a pod; adds an unknown pod as pending.
  PreFilterOutcome PreFilter(const v1beta1::Pod& pod);
  // Verdict on each node, by name; without nodes outside a PreFilter restriction.
  std::map<std::string, Verdict> Filter(const v1beta1::Pod& pod);
  // Scores of these nodes (all nodes if empty) after normalisation, or before it; empty if PreScore
  // skipped.
  // A failure of PreScore, Score or Normalize is an error.
  absl::StatusOr<std::map<std::string, int64_t>> Score(const v1beta1::Pod& pod,
                                                       std::vector<std::string> nodes = {});
  absl::StatusOr<std::map<std::string, int64_t>> RawScore(const v1beta1::Pod& pod,
                                                          std::vector<std::string> nodes = {});
  // Terms of raw scores, by node and name; empty if the plugin does not report them.
  std::map<std::string, std::map<std::string, double>> Terms(const v1beta1::Pod& pod);
  // The plugin's verdict after the calls so far; without any, PreFilter did not reach it.
  Verdict PostFilter(const v1beta1::Pod& pod);
  // The whole answer, with every node UNSCHEDULABLE, so that preemption may help.
  v1beta1::PostFilterResponse PostFilterOfRejected(const v1beta1::Pod& pod);
  Verdict PreEnqueue(const v1beta1::Pod& pod);
  std::string SortKey(const v1beta1::Pod& pod);
  Verdict Reserve(const v1beta1::Pod& pod, const std::string& node,
                  ReserveAnswer* answer = nullptr);
  Verdict PreBind(const v1beta1::Pod& pod, const std::string& node,
                  const std::vector<v1beta1::Effect>& effects,
                  const std::vector<v1beta1::EffectResult>& results,
                  absl::Duration elapsed = absl::ZeroDuration(),
                  std::vector<v1beta1::Effect>* further = nullptr);
  Verdict Bind(const v1beta1::Pod& pod, const std::string& node, BindAnswer* answer);
  void PostBind(const v1beta1::Pod& pod, const std::string& node);
  std::vector<WaitDecision> Unreserve(const v1beta1::Pod& pod, const std::string& node);
  Verdict Permit(const v1beta1::Pod& pod, const std::string& node, PermitAnswer* answer);
  // The plugin's pushes since the last call.
  std::vector<WaitDecision> TakeDecisions();
  std::vector<std::string> TakeSortKeyChanges();
  std::vector<std::string> TakeGateChanges();
  std::vector<std::string> TakeActivated();
  std::vector<v1beta1::Effect> TakeWritten();
  // The hint of an event for a waiting pod that the plugin rejected: `queue`, `skip`, or `not
  // registered`.
  std::string Hint(const v1beta1::Pod& pod, const ObjectChange& change);
  // Calls the observer's OnTick at the current time.
  void Tick();
  // The value of a metric of the plugin: a counter's sum, a gauge's value, a histogram's number of
  // observations. None: not bound with these label values.
  std::optional<double> Metric(const std::string& name,
                               const std::vector<std::string>& label_values) const;

 private:
  struct Impl;
  explicit PluginHarness(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_PLUGIN_HARNESS_H_
