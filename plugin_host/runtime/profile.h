// A configured profile: its plugins, in order.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_PROFILE_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_PROFILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outboard/v1beta1/plugin_host.pb.h"
#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/runtime/metric_sink.h"
#include "plugin_host/runtime/plugin_times.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/group_preemption.h"
#include "plugin_host/sdk/node_local_plugin.h"
#include "plugin_host/sdk/placement_points.h"
#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/plugin_registry.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/queueing_hint.h"

namespace outboard::runtime {

// A plugin of a profile. Its index in Profile::plugins() identifies its state and verdicts.
struct ProfilePlugin {
  std::string name;
  std::unique_ptr<sdk::Plugin> plugin;
  // The points that it implements; null: not implemented.
  sdk::QueueSortPlugin* queue_sort = nullptr;
  sdk::PreEnqueuePlugin* pre_enqueue = nullptr;
  sdk::PreFilterPlugin* pre_filter = nullptr;
  sdk::FilterPlugin* filter = nullptr;
  sdk::PostFilterPlugin* post_filter = nullptr;
  sdk::PreScorePlugin* pre_score = nullptr;
  sdk::ScorePlugin* score = nullptr;
  sdk::ReservePlugin* reserve = nullptr;
  sdk::PermitPlugin* permit = nullptr;
  sdk::PreBindPlugin* pre_bind = nullptr;
  bool pre_bind_without_effects = false;  // it has an interest for PRE_BIND
  sdk::BindPlugin* bind = nullptr;
  sdk::PostBindPlugin* post_bind = nullptr;
  sdk::ClusterObserver* observer = nullptr;
  sdk::QueueingHintPlugin* queueing_hint = nullptr;
  sdk::GroupPlugin* group = nullptr;
  sdk::CapacityPlugin* room = nullptr;
  sdk::GroupPostFilterPlugin* group_post_filter = nullptr;
  sdk::PlacementGeneratePlugin* placement_generate = nullptr;
  sdk::PlacementScorePlugin* placement_score = nullptr;
  bool node_local = false;  // sdk::NodeLocalPlugin
  // Events that requeue pods that it rejected, and the subset with a hint.
  std::vector<v1beta1::ClusterEvent> wake_up_events;
  std::vector<v1beta1::ClusterEvent> hinted_events;
};

// Receives plugins' pushes; the profile adds their names.
class PushTarget {
 public:
  virtual ~PushTarget() = default;
  virtual void Decide(const std::string& plugin, const sdk::WaitDecision& decision) = 0;
  virtual void SortKeysChanged(absl::Span<const std::string> pod_uids) = 0;
  virtual void GateChanged(absl::Span<const std::string> pod_uids) = 0;
  virtual void Activate(const std::string& plugin, absl::Span<const std::string> pod_uids) = 0;
  virtual void Write(const std::string& plugin, v1beta1::Effect effect) = 0;
};

// The plugins of a profile, in the order of each point.
//
// Threading: thread-compatible; plugins are called on the thread that owns the profile.
// Lifetime: registry, cache, target and metrics (may be null) must outlive it. Attempts keep the
//           profile that they began with alive.
// Errors: Create collects problems, as Configure reports them; if one is an error, it returns null.
class Profile {
 public:
  static std::unique_ptr<Profile> Create(
      const v1beta1::ProfileConfig& config, const sdk::PluginRegistry& registry,
      host_cache::ClusterCache* cache, PushTarget* target,
      google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem>* problems,
      MetricSink* metrics = nullptr);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<ProfilePlugin>& plugins() const { return plugins_; }
  // Null if the profile has no plugin of that name.
  const ProfilePlugin* Find(const std::string& plugin) const;
  // Weights of the plugins at Score, in their order.
  const std::vector<int64_t>& score_weights() const { return score_weights_; }
  // Plugins that know groups of pods, in the order of PreFilter. A group that does not fit is a
  // rejection at PreFilter, so plugins that the profile does not have there place no groups.
  const std::vector<uint32_t>& group_plugins() const { return group_plugins_; }
  // Plugins at both PreFilter and Filter, in the order of PreFilter: only their states change with
  // pods on a node (AddPod, RemovePod). Nothing reads the state of a plugin without Filter.
  const std::vector<uint32_t>& filters_with_state() const { return filters_with_state_; }
  // The parts of a pod that its plugins from PreFilter to Score read; absent if one of them does
  // not declare them.
  const std::optional<sdk::PodParts>& signed_parts() const { return signed_parts_; }
  // Of the thread that owns the profile; attempts, which only read the profile, record there.
  PluginTimes& times() const { return *times_; }
  // Indices of plugins enabled at a point, in order.
  const std::vector<uint32_t>& at(sdk::ExtensionPoint point) const {
    return points_[static_cast<size_t>(point)];
  }

 private:
  class PluginNotifier;
  static constexpr size_t kPoints = 16;
  Profile(host_cache::ClusterCache* cache, MetricSink* metrics);
  void CollectSignedParts(const sdk::PluginRegistry& registry);
  // The index of a plugin, created if necessary; -1 after a problem.
  int Make(const std::string& name, const v1beta1::ProfileConfig& config,
           const sdk::PluginRegistry& registry, PushTarget* target,
           google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem>* problems,
           MetricSink* metrics);

  std::string name_;
  host_cache::ClusterCache* cache_;
  // Before plugins_: plugins point to them.
  std::vector<std::unique_ptr<PluginNotifier>> pushes_;
  std::vector<std::unique_ptr<PluginMetrics>> metrics_;
  std::vector<ProfilePlugin> plugins_;
  const std::unique_ptr<PluginTimes> times_;
  std::vector<std::string> failed_;
  std::vector<uint32_t> points_[kPoints];
  std::vector<int64_t> score_weights_;
  std::vector<uint32_t> group_plugins_;
  std::vector<uint32_t> filters_with_state_;
  std::optional<sdk::PodParts> signed_parts_;
  bool observing_ = false;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_PROFILE_H_
