// A session with all placing plugins, for tests that place several pods at once.
#ifndef OUTBOARD_PLUGINS_PLANS_HARNESS_H_
#define OUTBOARD_PLUGINS_PLANS_HARNESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::plans {

// A pod's node, and the extent of the search for it.
struct Place {
  std::string pod;
  std::string node;
  uint32_t processed = 0;
  uint32_t feasible = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// Threading: one thread.
// Lifetime: no constraints.
// Errors: the test fails.
class PlansHarness {
 public:
  // The profile enables these plugins at every point from PreFilter to Permit that they implement,
  // and at PostFilter; the weight at Score is 1 + position modulo 3.
  explicit PlansHarness(std::vector<std::string> plugins);

  // Replaces the cluster: node i has slot i.
  void SetCluster(const std::vector<v1beta1::Node>& nodes, const std::vector<v1beta1::Pod>& pods,
                  const std::vector<v1beta1::ClusterObject>& objects = {});
  // Updates single pods and keeps all other state; on the pod's named node, or pending.
  void UpsertPod(const v1beta1::Pod& pod);
  void RemovePod(const std::string& uid);
  void Assume(const std::string& uid, const std::string& node);
  // Replaces the node in its slot.
  void SetNode(size_t slot, const v1beta1::Node& node);
  void Nominate(const std::string& uid, const std::string& node);

  v1beta1::PlanResponse Plan(const std::string& uid, uint32_t start_offset,
                             const std::vector<std::string>& next, bool place_group);
  // After a Plan that found no node.
  v1beta1::PostFilterResponse PostFilter();
  // Advances a second; returns the effects that plugins requested outside of calls.
  std::vector<v1beta1::Effect> Tick();
  // What the shim makes of an answer about one pod, by the contract and by kube-scheduler's choice
  // among equals; an empty node: none.
  Place Choose(const std::string& uid, uint32_t start_offset,
               const v1beta1::PlanResponse& response) const;
  Place PlaceOf(const v1beta1::PlannedPlacement& placement) const;
  // The node that the scores of an explained placement select.
  std::string BestScored(const v1beta1::PlannedPlacement& placement) const;
  uint32_t percentage = 0;  // percentageOfNodesToScore
  bool explain = false;
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);

 private:
  v1beta1::SyncRequest Next(v1beta1::SyncRequest::Phase phase);
  void Apply(const v1beta1::SyncRequest& request);
  // The index of the selected one of `num_nodes` scored nodes.
  size_t Select(const v1beta1::ScoreResponse& response, size_t num_nodes) const;

  sdk::PluginRegistry registry_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<v1beta1::Node> nodes_;
  std::vector<std::pair<std::string, int64_t>> weights_;
  int64_t version_ = 0;
  uint64_t attempt_ = 0;
  int64_t ticks_ = 0;
  std::vector<v1beta1::Effect> written_;
};

}  // namespace outboard::plans

#endif  // OUTBOARD_PLUGINS_PLANS_HARNESS_H_
