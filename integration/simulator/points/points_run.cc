#include "integration/simulator/points/points_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/simulate/simulated_cluster.h"
#include "integration/simulator/points/in_process_host.h"
#include "proto/short_names.h"
#include "shim/config/config.h"
#include "shim/hosts/needed_fields.h"
#include "shim/hosts/plans.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::points {
namespace {

constexpr char kHost[] = "main";
constexpr char kProfile[] = "p";
// Longer than all waits for a gang.
constexpr absl::Duration kLongest = absl::Minutes(4);
// Hosts tick every second, and some of what they push there is only said after a tick.
constexpr absl::Duration kTick = absl::Seconds(1);
constexpr absl::Duration kTicksAtLeast = absl::Seconds(5);
constexpr int kMaxAttempts = 2000;

class OnePlay final : public scheduler::Observer {
 public:
  OnePlay(const sdk::PluginRegistry& registry, const Cluster& cluster)
      : cluster_(cluster),
        host_(&registry),
        world_({}),
        rules_(OptionsOf(registry).custom_resources),
        scheduler_(OptionsOf(registry), queue::QueueOptions(), &world_, this, nullptr, now_) {
    world_.SetCallbacks({.on_bound = [this](const kube::PodPtr& pod,
                                            absl::Time) { outcome_.bound.insert(pod->uid()); },
                         .on_evicted = [](const kube::PodPtr&, absl::Time) {}});
    scheduler_.SetProfileNames({kProfile});
  }

  Outcome Play(const std::vector<PluginAtPoints>& plugins) {
    if (Configure(ConfigText(plugins))) {
      Fill();
      Loop();
      Judge();
    }
    return std::move(outcome_);
  }

  // scheduler::Observer:
  void OnAttemptEnd(const kube::PodObject& pod, const std::string&, scheduler::AttemptResult result,
                    const std::string&, const std::string& message, absl::Duration) override {
    outcome_.messages[pod.uid()] = message;
    if (result == scheduler::AttemptResult::kError)
      Fault(absl::StrCat("error: ", pod.key(), ": ", message));
    if (result == scheduler::AttemptResult::kHostUnavailable)
      Fault(absl::StrCat("no answer: ", pod.key(), ": ", message));
  }
  void OnHostCallFailed(const std::string&, const absl::Status& status) override {
    Fault(absl::StrCat("a call failed: ", status.message()));
  }
  void OnProtocolError(const std::string&, const std::string&,
                       const absl::Status& status) override {
    Fault(absl::StrCat("refused answer: ", status.message()));
  }

 private:
  // Plugins may write every object that they declare.
  static scheduler::SchedulerOptions OptionsOf(const sdk::PluginRegistry& registry) {
    scheduler::SchedulerOptions options;
    options.cycle_deadline = options.reserve_deadline = options.permit_deadline =
        options.pre_bind_deadline = options.bind_deadline = options.queue_deadline =
            absl::Minutes(1);
    for (const auto& [name, descriptor] : registry.descriptors()) {
      for (const v1beta1::DeclaredResource& declared : descriptor.declared_resources) {
        framework::CustomResourceRule& rule = options.custom_resources.emplace_back();
        rule.resource = declared.resource();
        for (const int verb : declared.verbs())
          rule.verbs.push_back(static_cast<v1beta1::DeclaredResource::Verb>(verb));
      }
    }
    return options;
  }

  void Fault(std::string text) {
    if (!absl::c_linear_search(outcome_.faults, text)) outcome_.faults.push_back(std::move(text));
  }

  // False: refused.
  bool Configure(const std::string& text) {
    absl::StatusOr<config::Config> config = config::ParseConfig(text, "config.yaml");
    if (!config.ok()) {
      Fault(absl::StrCat("the shim refuses the configuration: ", config.status().message()));
      return false;
    }
    for (const framework::CustomResourceRule& rule : rules_)
      config->shim.custom_resources.push_back({rule.resource, rule.verbs, {}, {}});
    absl::StatusOr<hosts::Plans> plans =
        hosts::MakePlans(*config, {kHost}, {{kHost, host_.info()}});
    if (!plans.ok()) {
      Fault(absl::StrCat("the shim refuses the profile: ", plans.status().message()));
      return false;
    }
    const absl::Status refused = hosts::ConfigureError(*config, plans->resolved,
                                                       host_.Configure(plans->configure.at(kHost)));
    outcome_.refused = std::string(refused.message());
    if (!refused.ok()) return false;
    for (framework::ProfilePlan& plan : plans->profiles) scheduler_.SetPlan(std::move(plan));
    return true;
  }

  void Fill() {
    const auto add = [](auto object, auto message, auto field) {
      object.get()->*field = std::move(message);
      object->resource_version = "1";
      return object;
    };
    for (const v1beta1::Node& node : cluster_.nodes) {
      scheduler_.events()->OnNodeUpsert(
          add(std::make_shared<kube::NodeObject>(), node, &kube::NodeObject::node), now_);
    }
    host_.SetTime(now_);
    cache::HostFields fields = hosts::NeededFields(host_.info());
    fields.host_name = kHost;
    const cache::ClusterState::Cursor cursor = scheduler_.cluster()->AddHost(std::move(fields));
    for (const v1beta1::SyncRequest& snapshot : scheduler_.cluster()->TakeChanges(cursor, now_))
      host_.SendChanges(snapshot);
    scheduler_.SetHost(kHost, &host_, cursor, now_);
    for (const auto* pods : {&cluster_.running, &cluster_.pending}) {
      for (v1beta1::Pod pod : *pods) {
        pod.set_scheduler_name(kProfile);
        scheduler_.events()->OnPodUpsert(
            add(std::make_shared<kube::PodObject>(), std::move(pod), &kube::PodObject::pod), now_);
      }
    }
  }

  void Settle() {
    world_.CarryOut(&scheduler_, now_);
    scheduler_.Tick(now_);
    world_.CarryOut(&scheduler_, now_);
  }

  void Loop() {
    const absl::Time begin = now_;
    int attempts = 0;
    while (now_ - begin < kLongest && attempts < kMaxAttempts) {
      host_.SetTime(now_);
      Settle();
      while (attempts < kMaxAttempts && scheduler_.ScheduleOne(now_)) {
        ++attempts;
        Settle();
      }
      absl::Time next = std::max(scheduler_.NextWakeup(now_), now_ + absl::Milliseconds(1));
      if (now_ - begin < kTicksAtLeast) next = std::min(next, now_ + kTick);
      if (next == absl::InfiniteFuture()) break;
      now_ = next;
    }
    if (attempts == kMaxAttempts) Fault(absl::StrCat("no rest after ", attempts, " attempts"));
  }

  void Judge() {
    if (!host_.sync_error().ok()) Fault(absl::StrCat("Sync: ", host_.sync_error().message()));
    if (scheduler_.IsHeldBack(kHost)) Fault("the host is not called any more");
    for (const v1beta1::Pod& pod : cluster_.pending) {
      const queue::QueuedPod* const queued = scheduler_.queue().Find(pod.uid());
      if (queued != nullptr && queued->place == queue::Place::kParked)
        Fault(absl::StrCat(pod.name(), " is parked"));
    }
  }

  const Cluster& cluster_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  Outcome outcome_;
  InProcessHost host_;
  simulate::SimulatedCluster world_;
  const std::vector<framework::CustomResourceRule> rules_;
  scheduler::Scheduler scheduler_;
};

}  // namespace

std::string ConfigName(v1beta1::ExtensionPoint point) {
  std::string name;
  for (const absl::string_view word : absl::StrSplit(ShortName(point), '_')) {
    std::string lower = absl::AsciiStrToLower(word);
    if (!name.empty()) lower[0] = absl::ascii_toupper(lower[0]);
    name += lower;
  }
  return name;
}

std::string ConfigText(const std::vector<PluginAtPoints>& plugins) {
  std::map<v1beta1::ExtensionPoint, std::vector<std::string>> enabled;
  for (const PluginAtPoints& plugin : plugins) {
    for (const v1beta1::ExtensionPoint point : plugin.points)
      enabled[point].push_back(absl::StrCat("{name: ", plugin.plugin, "}"));
  }
  auto& sort = enabled[v1beta1::EXTENSION_POINT_QUEUE_SORT];
  if (sort.empty()) sort = {"{name: PrioritySort}"};
  auto& bind = enabled[v1beta1::EXTENSION_POINT_BIND];
  if (bind.empty()) bind = {"{name: DefaultBinder}"};
  std::string text = absl::StrCat(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
      "- schedulerName: ",
      kProfile, "\n");
  // No Prometheus answers there, which is neutral.
  const bool has_load = absl::c_any_of(
      plugins, [](const PluginAtPoints& plugin) { return plugin.plugin == "GPULoad"; });
  if (has_load) {
    absl::StrAppend(&text, "  pluginConfig: [{name: GPULoad, args: {prometheus: {address: ",
                    "\"http://127.0.0.1:1\"}}}]\n");
  }
  text += "  plugins:\n    multiPoint: {disabled: [{name: \"*\"}]}\n";
  enabled.try_emplace(v1beta1::EXTENSION_POINT_PRE_FILTER);
  for (const auto& [point, names] : enabled) {
    absl::StrAppend(&text, "    ", ConfigName(point), ": {enabled: [", absl::StrJoin(names, ", "),
                    "], disabled: [{name: \"*\"}]}\n");
  }
  return text;
}

Outcome Run(const sdk::PluginRegistry& registry, const std::vector<PluginAtPoints>& plugins,
            const Cluster& cluster) {
  Outcome outcome = OnePlay(registry, cluster).Play(plugins);
  if (!outcome.refused.empty()) return outcome;
  std::map<std::string, int> bound;
  for (const std::string& uid : outcome.bound) {
    if (const auto gang = cluster.gang_of.find(uid); gang != cluster.gang_of.end())
      ++bound[gang->second];
  }
  const bool keeps_gangs = absl::c_any_of(plugins, [](const PluginAtPoints& plugin) {
    return plugin.plugin == "AtomicReplicaCoordinator" &&
           plugin.points.contains(v1beta1::EXTENSION_POINT_PERMIT);
  });
  for (const auto& [name, gang] : cluster.gangs) {
    const int its = bound[name];
    if (keeps_gangs && its > 0 && its < gang.min)
      outcome.faults.push_back(
          absl::StrCat(its, " of ", gang.min, " of gang ", name, " are bound"));
    if (keeps_gangs && gang.can_be_placed && its < gang.min) {
      outcome.faults.push_back(
          absl::StrCat("gang ", name, " fits, and ", its, " of ", gang.min, " are bound"));
    }
  }
  return outcome;
}

}  // namespace outboard::points
