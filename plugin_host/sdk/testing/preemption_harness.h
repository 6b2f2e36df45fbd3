// Runs a PostFilter plugin after Filter plugins on a small cluster, with the host's runtime.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_PREEMPTION_HARNESS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_PREEMPTION_HARNESS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::sdk::testing {

// A filter `Room`: a pod fits while CPU, memory, extended resources and pods suffice (`Insufficient
// cpu`). Preemption does not help on nodes with the label `closed`; nodes with the label `broken`
// return an error.
PluginDescriptor RoomFilter();

// A cluster, a plugin at postFilter, and plugins at filter. Add nodes, pods and budgets, then
// schedule a pod.
//
// Threading: one thread.
// Lifetime:  owns the cluster and the plugins.
// Errors:    Create reports problems of args as `path: message` lines; wrong use of the cluster
//            fails the test.
class PreemptionHarness {
 public:
  static absl::StatusOr<std::unique_ptr<PreemptionHarness>> Create(
      const PluginDescriptor& plugin, const std::vector<PluginDescriptor>& filters,
      absl::string_view args_json = "");
  ~PreemptionHarness();

  void AddNode(const v1beta1::Node& node);
  // On the node that the pod names, or pending; updates a known pod.
  void AddPod(const v1beta1::Pod& pod);
  // Nominates a node for a pending pod.
  void Nominate(const std::string& uid, const std::string& node);
  void AddBudget(const v1beta1::PodDisruptionBudget& budget);
  void AddObject(const v1beta1::ClusterObject& object);
  void SetNow(absl::Time now);  // Default: 1970-01-01T00:16:40Z.
  // The pod's attempt: PreFilter, which must pass, Filter on every node, which must find none, and
  // PostFilter.
  v1beta1::PostFilterResponse Attempt(const v1beta1::Pod& pod);
  // Calls OnTick at the time of SetNow; returns the uids that the plugin activated since the last
  // call.
  std::vector<std::string> Tick();
  ClusterView cluster() const;
  // As PluginHarness's.
  std::optional<double> Metric(const std::string& name,
                               const std::vector<std::string>& label_values) const;

 private:
  struct Impl;
  explicit PreemptionHarness(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A preemptor that tries the first node, which must be the only one where preemption helps. Its
// candidates are all single pods whose removal makes the pod fit. For plugins whose verdict depends
// on other pods.
PluginDescriptor TryEachPod();

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_PREEMPTION_HARNESS_H_
