#include "shim/simulate/simulation.h"

#include <glog/logging.h>

#include <deque>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/cycle/scheduler.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_set.h"
#include "shim/hosts/plans.h"
#include "shim/kube/wire/custom_resource.h"
#include "shim/kube/wire/object_reader.h"
#include "shim/simulate/custom_objects.h"
#include "shim/simulate/volume_controller.h"

namespace outboard::simulate {
namespace {

constexpr absl::Duration kHostStartTimeout = absl::Seconds(10);
constexpr absl::Duration kHostReadyTimeout = absl::Seconds(30);

absl::StatusOr<kube::Manifests> ReadFile(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError(absl::StrCat(file, ": cannot be read"));
  std::stringstream text;
  text << stream.rdbuf();
  return kube::ReadManifests(file, text.str());
}

// The world of a simulation: binds and evictions succeed at once, nobody reads events.
class SimulatedEffects final : public cycle::Effects {
 public:
  explicit SimulatedEffects(const std::vector<kube::ClusterObjectPtr>& objects)
      : volumes_(objects), custom_objects_(objects) {}
  const std::vector<kube::ClusterObjectPtr>& objects() const { return volumes_.objects(); }

  void Bind(const cycle::BindOrder& order, absl::Time now) override { orders_.push_back(order); }
  void Write(const cycle::EffectOrder& order, absl::Time now) override { writes_.push_back(order); }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string&,
                    absl::Time) override {}
  void Evict(const cycle::EvictOrder& order, absl::Time now) override {
    evictions_.push_back(order);
  }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void PatchStatus(const kube::PodObject& pod, const std::optional<cycle::PodScheduledFalse>&,
                   const std::optional<std::string>& nominated_node, absl::Time) override {
    if (nominated_node.has_value()) nominations_.emplace_back(pod.uid(), *nominated_node);
  }

  // What the volume controller and provisioners do of their own accord.
  void ReconcileVolumes(cycle::Scheduler* scheduler, absl::Time now) {
    for (const kube::ClusterObjectPtr& object : volumes_.Reconcile()) {
      scheduler->OnObjectUpsert(object, now);
    }
  }

  // Confirms what was ordered, as the API server and its watch would.
  void CarryOut(cycle::Scheduler* scheduler, absl::Time now) {
    for (const auto& [uid, node] : std::exchange(nominations_, {})) {
      const kube::PodPtr pod = scheduler->cluster()->FindPod(uid);
      // While it waits at Permit the simulated status says nothing; its end does.
      if (pod == nullptr || scheduler->cluster()->IsAssumed(uid)) continue;
      auto nominated = std::make_shared<kube::PodObject>(*pod);
      nominated->pod.set_nominated_node_name(node);
      nominated->resource_version = absl::StrCat("nominated-", ++changes_);
      scheduler->OnPodUpsert(nominated, now);
    }
    while (!evictions_.empty()) {
      const cycle::EvictOrder order = std::move(evictions_.front());
      evictions_.pop_front();
      scheduler->OnPodDelete(order.victim->uid(), now);
      scheduler->OnEvictionEnded(order.preemption_id, order.victim, cycle::EvictEnd::kEvicted, "",
                                 now);
    }
    while (!writes_.empty()) {
      const cycle::EffectOrder order = std::move(writes_.front());
      writes_.pop_front();
      if (order.effect.has_put_object() || order.effect.has_delete_object()) {
        WriteObject(order, scheduler, now);
        continue;
      }
      std::vector<kube::ClusterObjectPtr> changed;
      absl::StatusOr<std::string> version = volumes_.Write(order.effect, &changed);
      for (const kube::ClusterObjectPtr& object : changed) scheduler->OnObjectUpsert(object, now);
      scheduler->OnEffectEnded(order.attempt_id, {version.status(), version.value_or("")}, now);
    }
    while (!orders_.empty()) {
      cycle::BindOrder order = std::move(orders_.front());
      orders_.pop_front();
      auto bound = std::make_shared<kube::PodObject>(*order.pod);
      bound->pod.set_node_name(order.node_name);
      bound->phase = "Running";
      bound->resource_version = absl::StrCat("bound-", order.attempt_id);
      scheduler->OnBindEnded(order.attempt_id, cycle::BindEnd::kBound, "", now);
      scheduler->OnPodUpsert(bound, now);
    }
  }

 private:
  void WriteObject(const cycle::EffectOrder& order, cycle::Scheduler* scheduler, absl::Time now) {
    absl::StatusOr<CustomObjects::Outcome> outcome = custom_objects_.Write(order.effect);
    if (outcome.ok() && outcome->written != nullptr)
      scheduler->OnObjectUpsert(outcome->written, now);
    if (outcome.ok() && outcome->deleted != nullptr)
      scheduler->OnObjectDelete(outcome->deleted, now);
    const cycle::EffectEnd end = {outcome.status(), outcome.ok() ? outcome->version : ""};
    if (order.attempt_id == 0) return scheduler->OnOwnEffectEnded(order.effect, end, now);
    scheduler->OnEffectEnded(order.attempt_id, end, now);
  }

  std::deque<cycle::BindOrder> orders_;
  std::deque<cycle::EvictOrder> evictions_;
  std::vector<std::pair<std::string, std::string>> nominations_;  // pod uid, node
  int changes_ = 0;
  std::deque<cycle::EffectOrder> writes_;
  VolumeController volumes_;
  CustomObjects custom_objects_;
};

// Brings all hosts of the configuration into use.
absl::Status Connect(const std::vector<config::HostSpec>& specs, hosts::HostLoop* loop,
                     hosts::HostSet* hosts, absl::Time now) {
  const absl::Time give_up = absl::Now() + kHostStartTimeout;
  for (const config::HostSpec& spec : specs) {
    absl::StatusOr<v1alpha1::GetHostInfoResponse> info;
    std::shared_ptr<grpc::Channel> channel;
    do {
      // A child needs a moment until it listens, and on a busy machine until it answers; a refused
      // connection fails at once.
      channel = hosts::NewHostChannel(spec.address);
      info = hosts::Handshake(channel, give_up - absl::Now());
      if (!info.ok()) absl::SleepFor(absl::Milliseconds(5));
    } while ((absl::IsUnavailable(info.status()) || absl::IsDeadlineExceeded(info.status())) &&
             absl::Now() < give_up);
    if (!info.ok()) {
      return absl::UnavailableError(
          absl::StrCat("host at ", spec.address, " does not answer: ", info.status().message()));
    }
    absl::Status taken = hosts->OnHandshake({spec.name, spec.address, std::nullopt, 0},
                                            std::move(channel), *std::move(info), now);
    if (!taken.ok()) return taken;
  }
  const absl::Time ready_by = absl::Now() + kHostReadyTimeout;
  while (!hosts->AllReady()) {
    loop->Wait(ready_by);
    hosts->Tick(now);
    if (absl::Now() >= ready_by) return absl::UnavailableError("not all plugin hosts become ready");
  }
  return absl::OkStatus();
}

// A pod that never came to an attempt: PreEnqueue keeps it out.
PodReport GatedReport(const kube::PodObject& pod, const cycle::Scheduler& scheduler) {
  PodReport report;
  report.pod = pod.key();
  report.result = "unschedulable";
  if (const queue::QueuedPod* info = scheduler.queue().Find(pod.uid()))
    report.message = info->gate_message;
  return report;
}

}  // namespace

absl::StatusOr<Scene> ReadScene(const std::vector<std::string>& cluster_files,
                                const std::vector<std::string>& pod_files,
                                const std::vector<config::CustomResourceRule>& custom_resources,
                                std::vector<std::string>* warnings) {
  Scene scene;
  std::set<std::string> pods_seen;
  std::set<std::string> nodes_seen;
  std::set<std::string> objects_seen;
  const auto add = [&](const std::string& file) -> absl::Status {
    absl::StatusOr<kube::Manifests> manifests = ReadFile(file);
    if (!manifests.ok()) return manifests.status();
    warnings->insert(warnings->end(), manifests->warnings.begin(), manifests->warnings.end());
    for (kube::NodePtr& node : manifests->nodes) {
      if (!nodes_seen.insert(node->key()).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(file, ": node ", node->key(), " is there twice"));
      }
      scene.nodes.push_back(std::move(node));
    }
    for (const kube::OtherObject& other : manifests->others) {
      for (const config::CustomResourceRule& rule : custom_resources) {
        if (!kube::IsOf(*kube::ParseCustomResourceName(rule.resource), other)) continue;
        absl::StatusOr<kube::ClusterObjectPtr> object = CustomObjectOf(rule.resource, other);
        if (!object.ok()) return object.status();
        manifests->objects.push_back(*std::move(object));
      }
    }
    for (kube::ClusterObjectPtr& object : manifests->objects) {
      const std::string name =
          absl::StrCat(kube::KindOf(object->object), " ", kube::NamespacedName(object->object));
      if (!objects_seen.insert(name).second) {
        return absl::InvalidArgumentError(absl::StrCat(file, ": ", name, " is there twice"));
      }
      scene.objects.push_back(std::move(object));
    }
    for (kube::NamespacePtr& ns : manifests->namespaces) scene.namespaces.push_back(std::move(ns));
    for (kube::PodPtr& pod : manifests->pods) {
      if (!pods_seen.insert(pod->key()).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(file, ": pod ", pod->key(), " is there twice"));
      }
      if (pod->phase == "Succeeded" || pod->phase == "Failed") continue;
      (pod->pod.node_name().empty() ? scene.pending : scene.running).push_back(std::move(pod));
    }
    return absl::OkStatus();
  };
  for (const auto* files : {&cluster_files, &pod_files}) {
    for (const std::string& file : *files) {
      if (absl::Status status = add(file); !status.ok()) return status;
    }
  }
  return scene;
}

absl::Status Simulate(const Scene& scene, const config::Config& config,
                      const std::vector<std::string>& addresses, const Reporter::Sink& sink) {
  absl::Time now =
      absl::FromUnixSeconds(1000000000);  // Any moment does: nothing may depend on which.
  cycle::SchedulerOptions options;
  options.single_attempt = true;
  options.cycle_deadline = std::max(config.shim.deadlines.cycle, absl::Seconds(10));
  options.host_grace = absl::InfiniteDuration();
  options.explain = true;
  options.custom_resources = hosts::AllowedResources(config.shim.custom_resources);
  queue::QueueOptions queue_options;
  queue_options.initial_backoff = config.scheduler.pod_initial_backoff;
  queue_options.max_backoff = config.scheduler.pod_max_backoff;

  hosts::HostLoop loop;
  SimulatedEffects effects(scene.objects);
  const cycle::ClusterState* cluster = nullptr;
  Reporter reporter(&cluster, sink);
  cycle::Scheduler scheduler(options, queue_options, &effects, &reporter, nullptr, now);
  cluster = scheduler.cluster();
  auto our_hosts = std::make_shared<config::Config>(config);
  our_hosts->shim.hosts.assign(addresses.size(), config::HostSpec());
  for (size_t i = 0; i < addresses.size(); ++i) {
    our_hosts->shim.hosts[i].name = i == 0 ? "simulate" : absl::StrCat("simulate-", i + 1);
    our_hosts->shim.hosts[i].address = addresses[i];
  }
  hosts::HostSet host_set(our_hosts, "simulate", &loop, &scheduler);
  bool lost = false;
  host_set.SetCallbacks({[&lost](const std::string&) { lost = true; }, [](const std::string&) {}});

  std::vector<std::string> names;
  std::set<std::string> handled;
  for (const config::ProfileSpec& profile : config.scheduler.profiles) {
    names.push_back(profile.scheduler_name);
    handled.insert(profile.scheduler_name);
  }
  scheduler.SetProfileNames(names);
  for (const kube::ClusterObjectPtr& object : effects.objects())
    scheduler.OnObjectUpsert(object, now);
  for (const kube::NodePtr& node : scene.nodes) scheduler.OnNodeUpsert(node, now);
  for (const kube::NamespacePtr& ns : scene.namespaces) scheduler.OnNamespaceUpsert(ns, now);
  for (const kube::PodPtr& pod : scene.running) scheduler.OnPodUpsert(pod, now);
  if (absl::Status status = Connect(our_hosts->shim.hosts, &loop, &host_set, now); !status.ok())
    return status;
  for (const kube::PodPtr& pod : scene.pending) scheduler.OnPodUpsert(pod, now);

  while (!lost) {
    const bool worked = scheduler.ScheduleOne(now);
    effects.CarryOut(&scheduler, now);
    loop.RunReady();
    scheduler.Tick(now);
    effects.CarryOut(&scheduler, now);
    host_set.Tick(now);
    if (worked) continue;
    // Only waits at Permit and for volumes can still end; virtual time jumps to the next one.
    if (scheduler.attempts_in_flight() == 0) break;
    effects.ReconcileVolumes(&scheduler, now);
    now = std::max(now, scheduler.NextWakeup(now));
  }
  if (lost) return absl::UnavailableError("a plugin host was lost in the middle of the simulation");
  for (const kube::PodPtr& pod : scene.pending) {
    if (reporter.HasReported(pod->uid())) continue;
    if (handled.contains(pod->pod.scheduler_name())) {
      sink(GatedReport(*pod, scheduler));
    } else {
      LOG(WARNING) << "Pod " << pod->key() << " asks for scheduler \"" << pod->pod.scheduler_name()
                   << "\", which no profile has; it is left alone";
    }
  }
  return absl::OkStatus();
}

}  // namespace outboard::simulate
