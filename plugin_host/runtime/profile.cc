#include "plugin_host/runtime/profile.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/shim_problems.h"
#include "plugin_host/runtime/wake_up_events.h"
#include "proto/short_names.h"

namespace outboard::runtime {
namespace {

using v1beta1::ConfigProblem;
using Problems = google::protobuf::RepeatedPtrField<ConfigProblem>;

void AddProblem(Problems* problems, const std::string& profile, const std::string& plugin,
                const std::string& field, const std::string& message,
                ConfigProblem::Severity severity = ConfigProblem::SEVERITY_ERROR) {
  ConfigProblem* problem = problems->Add();
  problem->set_profile(profile);
  problem->set_plugin(plugin);
  problem->set_field(field);
  problem->set_message(message);
  problem->set_severity(severity);
}

bool Implements(const ProfilePlugin& plugin, sdk::ExtensionPoint point) {
  switch (point) {
    case v1beta1::EXTENSION_POINT_PRE_ENQUEUE:
      return plugin.pre_enqueue != nullptr;
    case v1beta1::EXTENSION_POINT_QUEUE_SORT:
      return plugin.queue_sort != nullptr;
    case v1beta1::EXTENSION_POINT_PRE_FILTER:
      return plugin.pre_filter != nullptr;
    case v1beta1::EXTENSION_POINT_FILTER:
      return plugin.filter != nullptr;
    case v1beta1::EXTENSION_POINT_POST_FILTER:
      return plugin.post_filter != nullptr;
    case v1beta1::EXTENSION_POINT_PRE_SCORE:
      return plugin.pre_score != nullptr;
    case v1beta1::EXTENSION_POINT_SCORE:
      return plugin.score != nullptr;
    case v1beta1::EXTENSION_POINT_RESERVE:
      return plugin.reserve != nullptr;
    case v1beta1::EXTENSION_POINT_PERMIT:
      return plugin.permit != nullptr;
    case v1beta1::EXTENSION_POINT_PRE_BIND:
      return plugin.pre_bind != nullptr;
    case v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE:
      return plugin.placement_generate != nullptr;
    case v1beta1::EXTENSION_POINT_PLACEMENT_SCORE:
      return plugin.placement_score != nullptr;
    case v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER:
      return plugin.group_post_filter != nullptr;
    // Without the interface the plugin is only a name in the profile: the shim binds.
    case v1beta1::EXTENSION_POINT_BIND:
    case v1beta1::EXTENSION_POINT_POST_BIND:
      return true;
    default:
      return false;
  }
}

// Where the profile enables the plugin.
std::set<sdk::ExtensionPoint> PointsOf(const std::string& plugin,
                                       const v1beta1::ProfileConfig& config) {
  std::set<sdk::ExtensionPoint> points;
  for (const v1beta1::PointConfig& point : config.points()) {
    if (absl::c_linear_search(point.plugins(), plugin)) points.insert(point.extension_point());
  }
  return points;
}

}  // namespace

// Adds the plugin's name to its pushes.
class Profile::PluginNotifier : public sdk::ShimNotifier {
 public:
  PluginNotifier(std::string plugin, const std::set<sdk::ExtensionPoint>& points,
                 PushTarget* target)
      : plugin_(std::move(plugin)),
        sorts_(points.count(v1beta1::EXTENSION_POINT_QUEUE_SORT) != 0),
        gates_(points.count(v1beta1::EXTENSION_POINT_PRE_ENQUEUE) != 0),
        target_(target) {}
  void Decide(const sdk::WaitDecision& decision) override { target_->Decide(plugin_, decision); }
  void SortKeysChanged(absl::Span<const std::string> pod_uids) override {
    if (sorts_) target_->SortKeysChanged(pod_uids);
  }
  void GateChanged(absl::Span<const std::string> pod_uids) override {
    if (gates_) target_->GateChanged(pod_uids);
  }
  void Activate(absl::Span<const std::string> pod_uids) override {
    target_->Activate(plugin_, pod_uids);
  }
  void Write(v1beta1::Effect effect) override { target_->Write(plugin_, std::move(effect)); }

 private:
  const std::string plugin_;
  // A plugin may push the same wherever the profile has it; the shim refuses what is not about one
  // of the profile's points.
  const bool sorts_, gates_;
  PushTarget* target_;
};

std::unique_ptr<Profile> Profile::Create(const v1beta1::ProfileConfig& config,
                                         const sdk::PluginRegistry& registry,
                                         host_cache::ClusterCache* cache, PushTarget* target,
                                         Problems* problems, MetricSink* metrics) {
  std::unique_ptr<Profile> profile(new Profile(cache, metrics));
  const int before = CountErrors(*problems);
  profile->name_ = config.name();
  if (config.name().empty()) AddProblem(problems, "", "", "", "a profile has no name");
  for (const v1beta1::PointConfig& point : config.points()) {
    const size_t number = static_cast<size_t>(point.extension_point());
    if (!point.weights().empty() && point.weights_size() != point.plugins_size())
      AddProblem(problems, config.name(), "", "", "not every plugin has a weight");
    for (int i = 0; i < point.plugins_size(); ++i) {
      const std::string& name = point.plugins(i);
      const int index = profile->Make(name, config, registry, target, problems, metrics);
      if (index < 0) continue;
      const auto& points = registry.Find(name)->extension_points;
      if (number >= kPoints || !Implements(profile->plugins_[index], point.extension_point()) ||
          std::find(points.begin(), points.end(), point.extension_point()) == points.end()) {
        AddProblem(problems, config.name(), name, "",
                   absl::StrCat("plugin does not implement extension point ",
                                ShortName(point.extension_point())));
        continue;
      }
      std::vector<uint32_t>& enabled = profile->points_[number];
      if (std::find(enabled.begin(), enabled.end(), index) != enabled.end()) {
        AddProblem(problems, config.name(), name, "", "plugin is enabled twice at one point");
        continue;
      }
      enabled.push_back(static_cast<uint32_t>(index));
      if (point.extension_point() != v1beta1::EXTENSION_POINT_SCORE) continue;
      const int32_t otherwise = std::max(1, registry.Find(name)->default_weight);
      profile->score_weights_.push_back(i < point.weights_size() ? point.weights(i) : otherwise);
    }
  }
  for (const v1beta1::PluginArgs& args : config.args()) {
    if (registry.Find(args.plugin()) == nullptr) {
      AddProblem(problems, config.name(), args.plugin(), "", "args for an unknown plugin");
    }
  }
  if (CountErrors(*problems) > before) return nullptr;
  profile->CollectSignedParts(registry);
  for (const uint32_t index : profile->at(v1beta1::EXTENSION_POINT_PRE_FILTER)) {
    if (profile->plugins_[index].group != nullptr) profile->group_plugins_.push_back(index);
    if (absl::c_linear_search(profile->at(v1beta1::EXTENSION_POINT_FILTER), index))
      profile->filters_with_state_.push_back(index);
  }
  for (const ProfilePlugin& plugin : profile->plugins_) {
    if (plugin.observer != nullptr) cache->AddObserver(plugin.observer);
  }
  profile->observing_ = true;
  return profile;
}

void Profile::CollectSignedParts(const sdk::PluginRegistry& registry) {
  signed_parts_.emplace();
  for (const sdk::ExtensionPoint point :
       {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
        v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE}) {
    for (const uint32_t index : at(point)) {
      const sdk::PluginDescriptor& descriptor = *registry.Find(plugins_[index].name);
      if (!descriptor.signature) return signed_parts_.reset();
      // The registry validated the descriptor, so these are valid.
      signed_parts_->Add(*sdk::PodParts::Parse(*descriptor.signature));
    }
  }
}

Profile::Profile(host_cache::ClusterCache* cache, MetricSink* metrics)
    : cache_(cache), times_(std::make_unique<PluginTimes>(metrics)) {}

const ProfilePlugin* Profile::Find(const std::string& plugin) const {
  const auto it = std::find_if(plugins_.begin(), plugins_.end(),
                               [&](const ProfilePlugin& p) { return p.name == plugin; });
  return it == plugins_.end() ? nullptr : &*it;
}

Profile::~Profile() {
  if (!observing_) return;
  for (const ProfilePlugin& plugin : plugins_) {
    if (plugin.observer != nullptr) cache_->RemoveObserver(plugin.observer);
  }
}

int Profile::Make(const std::string& name, const v1beta1::ProfileConfig& config,
                  const sdk::PluginRegistry& registry, PushTarget* target, Problems* problems,
                  MetricSink* metrics) {
  for (size_t i = 0; i < plugins_.size(); ++i) {
    if (plugins_[i].name == name) return static_cast<int>(i);
  }
  if (std::find(failed_.begin(), failed_.end(), name) != failed_.end()) return -1;
  const sdk::PluginDescriptor* descriptor = registry.Find(name);
  if (descriptor == nullptr) {
    failed_.push_back(name);
    AddProblem(problems, config.name(), name, "", "this host has no such plugin");
    return -1;
  }
  std::string json;
  for (const v1beta1::PluginArgs& args : config.args()) {
    if (args.plugin() == name) json = args.args_json();
  }
  const int before = CountErrors(*problems);
  sdk::ArgsReader reader(json);
  const std::set<sdk::ExtensionPoint> points = PointsOf(name, config);
  pushes_.push_back(std::make_unique<PluginNotifier>(name, points, target));
  metrics_.push_back(std::make_unique<PluginMetrics>(name, &descriptor->metrics, metrics));
  sdk::PluginContext context{config.name(),         &reader, pushes_.back().get(), cache_->view(),
                             metrics_.back().get(), points};
  absl::StatusOr<std::unique_ptr<sdk::Plugin>> plugin = descriptor->create(context);
  for (const sdk::ArgsProblem& problem : reader.Finish()) {
    AddProblem(
        problems, config.name(), name, problem.field, problem.message,
        problem.is_warning ? ConfigProblem::SEVERITY_WARNING : ConfigProblem::SEVERITY_ERROR);
  }
  if (!plugin.ok()) {
    AddProblem(problems, config.name(), name, "", std::string(plugin.status().message()));
  } else if (*plugin == nullptr) {
    AddProblem(problems, config.name(), name, "", "plugin could not be created");
  }
  if (CountErrors(*problems) > before) {
    failed_.push_back(name);
    return -1;
  }
  ProfilePlugin entry;
  entry.name = name;
  sdk::Plugin* p = plugin->get();
  entry.queue_sort = dynamic_cast<sdk::QueueSortPlugin*>(p);
  entry.pre_enqueue = dynamic_cast<sdk::PreEnqueuePlugin*>(p);
  entry.pre_filter = dynamic_cast<sdk::PreFilterPlugin*>(p);
  entry.filter = dynamic_cast<sdk::FilterPlugin*>(p);
  entry.post_filter = dynamic_cast<sdk::PostFilterPlugin*>(p);
  entry.pre_score = dynamic_cast<sdk::PreScorePlugin*>(p);
  entry.score = dynamic_cast<sdk::ScorePlugin*>(p);
  entry.reserve = dynamic_cast<sdk::ReservePlugin*>(p);
  entry.permit = dynamic_cast<sdk::PermitPlugin*>(p);
  entry.pre_bind = dynamic_cast<sdk::PreBindPlugin*>(p);
  entry.pre_bind_without_effects = absl::c_any_of(descriptor->interests, [](const auto& interest) {
    return interest.extension_point() == v1beta1::EXTENSION_POINT_PRE_BIND;
  });
  entry.bind = dynamic_cast<sdk::BindPlugin*>(p);
  entry.post_bind = dynamic_cast<sdk::PostBindPlugin*>(p);
  entry.observer = dynamic_cast<sdk::ClusterObserver*>(p);
  entry.queueing_hint = dynamic_cast<sdk::QueueingHintPlugin*>(p);
  entry.group = dynamic_cast<sdk::GroupPlugin*>(p);
  entry.group_post_filter = dynamic_cast<sdk::GroupPostFilterPlugin*>(p);
  entry.placement_generate = dynamic_cast<sdk::PlacementGeneratePlugin*>(p);
  entry.placement_score = dynamic_cast<sdk::PlacementScorePlugin*>(p);
  entry.room = dynamic_cast<sdk::CapacityPlugin*>(p);
  entry.node_local = dynamic_cast<sdk::NodeLocalPlugin*>(p) != nullptr;
  entry.wake_up_events = WakeUpEventsOf(*descriptor);
  entry.hinted_events = descriptor->wake_up_events;
  entry.plugin = *std::move(plugin);
  times_->Add(static_cast<uint32_t>(plugins_.size()), name);
  plugins_.push_back(std::move(entry));
  return static_cast<int>(plugins_.size() - 1);
}

}  // namespace outboard::runtime
