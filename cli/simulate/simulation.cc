#include "cli/simulate/simulation.h"

#include <glog/logging.h>

#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cli/manifests/custom_object.h"
#include "cli/manifests/object_reader.h"
#include "cli/simulate/custom_objects.h"
#include "cli/simulate/simulated_scheduler.h"
#include "shim/kube/wire/custom_resource.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::simulate {
namespace {

absl::StatusOr<manifests::Manifests> ReadFile(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError(absl::StrCat(file, ": cannot be read"));
  std::stringstream text;
  text << stream.rdbuf();
  return manifests::ReadManifests(file, text.str());
}

// A pod without an attempt: PreEnqueue gates it.
PodReport GatedReport(const kube::PodObject& pod, const scheduler::Scheduler& scheduler) {
  PodReport report;
  report.pod = pod.key();
  report.result = "unschedulable";
  if (const queue::QueuedPod* info = scheduler.queue().Find(pod.uid()))
    report.message = info->gate_message;
  return report;
}

}  // namespace

absl::StatusOr<SimulationInput> ReadScene(
    const std::vector<std::string>& cluster_files, const std::vector<std::string>& pod_files,
    const std::vector<config::CustomResourceRule>& custom_resources,
    std::vector<std::string>* warnings) {
  SimulationInput scene;
  std::set<std::string> pods_seen;
  std::set<std::string> nodes_seen;
  std::set<std::string> objects_seen;
  const auto add = [&](const std::string& file) -> absl::Status {
    absl::StatusOr<manifests::Manifests> manifests = ReadFile(file);
    if (!manifests.ok()) return manifests.status();
    warnings->insert(warnings->end(), manifests->warnings.begin(), manifests->warnings.end());
    for (kube::NodePtr& node : manifests->nodes) {
      if (!nodes_seen.insert(node->key()).second) {
        return absl::InvalidArgumentError(absl::StrCat(file, ": duplicate node ", node->key()));
      }
      scene.nodes.push_back(std::move(node));
    }
    for (const manifests::OtherObject& other : manifests->others) {
      for (const config::CustomResourceRule& rule : custom_resources) {
        if (!manifests::IsOf(*kube::ParseCustomResourceName(rule.resource), other)) continue;
        absl::StatusOr<kube::ClusterObjectPtr> object = CustomObjectOf(rule.resource, other);
        if (!object.ok()) return object.status();
        manifests->objects.push_back(*std::move(object));
      }
    }
    for (kube::ClusterObjectPtr& object : manifests->objects) {
      const std::string name =
          absl::StrCat(kube::KindOf(object->object), " ", kube::NamespacedName(object->object));
      if (!objects_seen.insert(name).second) {
        return absl::InvalidArgumentError(absl::StrCat(file, ": duplicate ", name));
      }
      scene.objects.push_back(std::move(object));
    }
    for (kube::NamespacePtr& ns : manifests->namespaces) scene.namespaces.push_back(std::move(ns));
    for (kube::PodPtr& pod : manifests->pods) {
      if (!pods_seen.insert(pod->key()).second) {
        return absl::InvalidArgumentError(absl::StrCat(file, ": duplicate pod ", pod->key()));
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

absl::Status Simulate(const SimulationInput& scene, const config::Config& config,
                      const std::vector<std::string>& addresses, const Reporter::Sink& sink) {
  absl::Time now = absl::FromUnixSeconds(1000000000);  // Arbitrary: no result may depend on it.
  scheduler::SchedulerOptions options = SimulatedOptions(config);
  options.single_attempt = true;
  options.explain = true;
  const cache::ClusterState* cluster = nullptr;
  Reporter reporter(&cluster, sink);
  SimulatedScheduler stage(config, options, scene.objects, &reporter, now);
  scheduler::Scheduler& scheduler = stage.scheduler();
  cluster = scheduler.cluster();
  stage.world().SetCallbacks(
      {.on_bound = {},
       .on_evicted = {},
       .on_write = [&reporter](const scheduler::EffectOrder& order) { reporter.OnWrite(order); }});
  if (absl::Status status = stage.Open(scene, addresses, now); !status.ok()) return status;
  for (const kube::PodPtr& pod : scene.pending) scheduler.events()->OnPodUpsert(pod, now);

  const bool writes_of_its_own = absl::c_any_of(
      stage.hosts().plans()->profiles,
      [](const framework::ProfilePlan& plan) { return !plan.object_writers.empty(); });
  if (writes_of_its_own) {
    // Hosts must have the complete snapshot before they can order anything.
    scheduler.Tick(now);
    if (absl::Status polled = stage.PollHosts(absl::Now()); !polled.ok()) return polled;
    scheduler.Tick(now);
  }
  while (!stage.host_lost()) {
    const bool worked = scheduler.ScheduleOne(now);
    stage.world().CarryOut(&scheduler, now);
    stage.loop().RunReady();
    scheduler.Tick(now);
    stage.world().CarryOut(&scheduler, now);
    stage.hosts().Tick(now);
    if (worked && writes_of_its_own) {
      // Execute the writes of an attempt before the next one.
      if (absl::Status polled = stage.PollHosts(absl::Now()); !polled.ok()) return polled;
      scheduler.Tick(now);
      stage.world().CarryOut(&scheduler, now);
    }
    if (worked) continue;
    // Only waits at Permit and for volumes are left; virtual time jumps to the end of the next one.
    if (scheduler.attempts_in_flight() == 0) break;
    stage.world().ReconcileVolumes(&scheduler, now);
    now = std::max(now, scheduler.NextWakeup(now));
  }
  if (stage.host_lost()) return absl::UnavailableError("lost a plugin host during the simulation");
  for (const kube::PodPtr& pod : scene.pending) {
    if (reporter.HasReported(pod->uid())) continue;
    if (stage.HandlesScheduler(pod->pod.scheduler_name())) {
      sink(GatedReport(*pod, scheduler));
    } else {
      LOG(WARNING) << "Pod " << pod->key() << " names scheduler \"" << pod->pod.scheduler_name()
                   << "\", which no profile has; not scheduling it";
    }
  }
  return absl::OkStatus();
}

}  // namespace outboard::simulate
