// Runs a PostFilter plugin behind Filter plugins on a small cluster, through the same runtime that
// the host uses.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_PREEMPTION_HARNESS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_PREEMPTION_HARNESS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/plugin.h"
#include "proto/outboard/v1alpha1/objects.pb.h"
#include "proto/outboard/v1alpha1/post_filter.pb.h"

namespace outboard::sdk::testing {

// A filter `Room`: a node takes pods while none of CPU, memory, extended resources and pods is
// short
// (`Insufficient cpu`). Nobody's leaving helps one with the label `closed`, and one with the label
// `broken` gives an error.
PluginDescriptor RoomFilter();

// A cluster, a plugin at postFilter, and plugins at filter. Add nodes, pods and budgets, then let a
// pod be tried.
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

  void AddNode(const v1alpha1::Node& node);
  // On the node that it names, or pending; one that is there already is updated.
  void AddPod(const v1alpha1::Pod& pod);
  // Keeps a node in mind for a pending pod.
  void Nominate(const std::string& uid, const std::string& node);
  void AddBudget(const v1alpha1::PodDisruptionBudget& budget);
  void AddObject(const v1alpha1::ClusterObject& object);
  void SetNow(absl::Time now);  // 1970-01-01T00:16:40Z unless called.
  // The pod's attempt: PreFilter, which must pass, Filter on every node, which must find none, and
  // PostFilter.
  v1alpha1::PostFilterResponse Attempt(const v1alpha1::Pod& pod);
  // OnTick at the time that SetNow said; the uids that the plugin has activated since the last
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

// A preemptor that tries the first node, which has to be the only one that helps: its candidates
// are the pods without each of which alone the pod would fit there. For plugins whose verdict
// depends on other pods.
PluginDescriptor TryEachPod();

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_PREEMPTION_HARNESS_H_
