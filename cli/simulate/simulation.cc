#include "cli/simulate/simulation.h"

#include <glog/logging.h>

#include <iostream>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cli/manifests/custom_object.h"
#include "cli/manifests/manifest_files.h"
#include "cli/simulate/custom_objects.h"
#include "cli/simulate/simulated_scheduler.h"
#include "shim/kube/wire/custom_resource.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::simulate {
namespace {

// Takes the objects that belong to a custom resource of the configuration. Counts the others, which
// nobody reads.
absl::Status TakeCustomObjects(const std::vector<manifests::OtherObject>& others,
                               const std::vector<config::CustomResourceRule>& custom_resources,
                               SimulationInput* scene, std::vector<std::string>* warnings) {
  std::map<std::string, std::vector<std::string>> unused;  // places
  for (const manifests::OtherObject& other : others) {
    bool used = other.kind == "DeviceClass";  // It is also among the objects that are always read.
    for (const config::CustomResourceRule& rule : custom_resources) {
      if (!manifests::IsOf(*kube::ParseCustomResourceName(rule.resource), other)) continue;
      absl::StatusOr<kube::ClusterObjectPtr> object = CustomObjectOf(rule.resource, other);
      if (!object.ok()) return object.status();
      scene->objects.push_back(*std::move(object));
      used = true;
    }
    if (!used) unused[absl::StrCat(other.kind, " of ", other.api_version)].push_back(other.place);
  }
  for (const auto& [kind, places] : unused) {
    warnings->push_back(absl::StrCat(
        places[0], ": skipped, because customResources of the configuration do not name it: ", kind,
        " (", places.size(), ")"));
  }
  return absl::OkStatus();
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
    const std::vector<config::CustomResourceRule>& custom_resources, bool strict,
    std::vector<std::string>* warnings) {
  manifests::Manifests read =
      manifests::ReadManifestFiles({cluster_files, pod_files}, strict, &std::cin);
  warnings->insert(warnings->end(), read.warnings.begin(), read.warnings.end());
  if (absl::Status status = manifests::ToStatus(read.errors); !status.ok()) return status;
  SimulationInput scene;
  scene.nodes = std::move(read.nodes);
  scene.namespaces = std::move(read.namespaces);
  scene.objects = std::move(read.objects);
  scene.priority_classes = std::move(read.priority_classes);
  if (absl::Status status = TakeCustomObjects(read.others, custom_resources, &scene, warnings);
      !status.ok()) {
    return status;
  }
  for (auto* pods : {&read.pods, &read.pods_to_schedule}) {
    for (kube::PodPtr& pod : *pods) {
      if (pod->phase == "Succeeded" || pod->phase == "Failed") continue;
      (pod->pod.node_name().empty() ? scene.pending : scene.running).push_back(std::move(pod));
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
