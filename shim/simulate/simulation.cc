#include "shim/simulate/simulation.h"

#include <glog/logging.h>

#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shim/cycle/scheduler.h"
#include "shim/kube/wire/custom_resource.h"
#include "shim/kube/wire/object_reader.h"
#include "shim/simulate/custom_objects.h"
#include "shim/simulate/stage.h"

namespace outboard::simulate {
namespace {

absl::StatusOr<kube::Manifests> ReadFile(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError(absl::StrCat(file, ": cannot be read"));
  std::stringstream text;
  text << stream.rdbuf();
  return kube::ReadManifests(file, text.str());
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
  cycle::SchedulerOptions options = SimulatedOptions(config);
  options.single_attempt = true;
  options.explain = true;
  const cycle::ClusterState* cluster = nullptr;
  Reporter reporter(&cluster, sink);
  Stage stage(config, options, scene.objects, &reporter, now);
  cycle::Scheduler& scheduler = stage.scheduler();
  cluster = scheduler.cluster();
  stage.world().SetCallbacks(
      {.on_bound = {}, .on_evicted = {}, .on_write = [&reporter](const cycle::EffectOrder& order) {
         reporter.OnWrite(order);
       }});
  if (absl::Status status = stage.Open(scene, addresses, now); !status.ok()) return status;
  for (const kube::PodPtr& pod : scene.pending) scheduler.OnPodUpsert(pod, now);

  const bool writes_of_its_own =
      absl::c_any_of(stage.hosts().plans()->profiles,
                     [](const cycle::ProfilePlan& plan) { return !plan.object_keepers.empty(); });
  if (writes_of_its_own) {
    // Hosts have to know that this is all there is before they may want anything.
    scheduler.Tick(now);
    if (absl::Status heard = stage.HearHosts(absl::Now()); !heard.ok()) return heard;
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
      // What an attempt leaves to be written comes before the next one.
      if (absl::Status heard = stage.HearHosts(absl::Now()); !heard.ok()) return heard;
      scheduler.Tick(now);
      stage.world().CarryOut(&scheduler, now);
    }
    if (worked) continue;
    // Only waits at Permit and for volumes can still end; virtual time jumps to the next one.
    if (scheduler.attempts_in_flight() == 0) break;
    stage.world().ReconcileVolumes(&scheduler, now);
    now = std::max(now, scheduler.NextWakeup(now));
  }
  if (stage.host_lost())
    return absl::UnavailableError("a plugin host was lost in the middle of the simulation");
  for (const kube::PodPtr& pod : scene.pending) {
    if (reporter.HasReported(pod->uid())) continue;
    if (stage.HandlesScheduler(pod->pod.scheduler_name())) {
      sink(GatedReport(*pod, scheduler));
    } else {
      LOG(WARNING) << "Pod " << pod->key() << " asks for scheduler \"" << pod->pod.scheduler_name()
                   << "\", which no profile has; it is left alone";
    }
  }
  return absl::OkStatus();
}

}  // namespace outboard::simulate
