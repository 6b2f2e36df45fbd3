#include "integration/simulator/storm_cluster.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace outboard::storms {
namespace {

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

std::string ConfigText(Plugin plugin) {
  return absl::StrCat(R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: outboard-scheduler}
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: AtomicReplicaCoordinator})",
                      plugin == Plugin::kCostAware
                          ? ", {name: CostAwarePreemptor}]\n      disabled: [{name: "
                            "DefaultPreemption}]\n"
                          : "]\n");
}

StormPod RandomPod(const std::string& name, int64_t node_gpus, absl::Time now, Dice* dice) {
  StormPod pod;
  pod.name = name;
  const int64_t kind = dice->Below(100);
  if (kind < 45) {
    pod.work = Work::kTraining;
    pod.priority = dice->OneOf<int32_t>({0, 0, 100, 100, 500, 1000});
    pod.gpus = dice->OneOf<int64_t>({1, 2, 4, 8});
    pod.checkpointing = dice->Percent(80);
    if (pod.checkpointing && dice->Percent(90))
      pod.checkpoint = now - absl::Minutes(dice->Below(50));
    if (dice->Percent(20)) pod.end = now + absl::Minutes(dice->Between(-180, 600));
  } else if (kind < 80) {
    pod.work = Work::kInference;
    pod.priority = dice->OneOf<int32_t>({100, 500, 900});
    pod.gpus = dice->Between(1, 2);
  } else {
    pod.priority = dice->OneOf<int32_t>({0, 100, 2000});
    pod.gpus = dice->Percent(50) ? 0 : dice->Between(1, 4);
  }
  pod.gpus = std::min(pod.gpus, node_gpus);
  pod.cpus = pod.gpus > 0 ? pod.gpus : dice->Between(1, 16);
  pod.never_preempts = dice->Percent(5);
  pod.comes_back = dice->Percent(70);
  return pod;
}

kube::PodPtr ObjectOf(const StormPod& pod, const std::string& uid, const std::string& node,
                      absl::Time now) {
  auto object = std::make_shared<kube::PodObject>();
  v1beta1::Pod& proto = object->pod;
  proto.set_uid(uid);
  proto.set_namespace_("default");
  proto.set_name(pod.name);
  proto.set_scheduler_name("default-scheduler");
  proto.set_priority(pod.priority);
  proto.set_creation_unix_seconds(absl::ToUnixSeconds(now));
  if (pod.never_preempts) proto.set_preemption_policy(v1beta1::PREEMPTION_POLICY_NEVER);
  v1beta1::Container* container = proto.add_containers();
  container->set_name("main");
  container->set_image("example.com/app:1");
  v1beta1::ResourceList* requests = container->mutable_requests();
  requests->set_cpu_millis(pod.cpus * 1000);
  requests->set_memory_bytes(int64_t{1} << 30);
  if (pod.gpus > 0) (*requests->mutable_scalar())["nvidia.com/gpu"] = pod.gpus;
  auto& labels = *proto.mutable_labels();
  auto& annotations = *proto.mutable_annotations();
  if (pod.work != Work::kOther)
    labels["workload-type"] = pod.work == Work::kTraining ? "training" : "inference";
  if (pod.checkpointing) annotations["outboard/checkpointing"] = "true";
  if (pod.checkpoint) annotations["outboard/last-checkpoint-time"] = Rfc3339(*pod.checkpoint);
  if (pod.end) annotations["outboard/estimated-end"] = Rfc3339(*pod.end);
  if (pod.gang >= 0 && pod.gang_is_job) {
    labels["job-name"] = absl::StrCat("gang-", pod.gang);
    annotations["outboard/min-replicas"] = absl::StrCat(pod.gang_min);
  } else if (pod.gang >= 0) {
    annotations["gang.scheduling.koordinator.sh/name"] = absl::StrCat("gang-", pod.gang);
    annotations["gang.scheduling.koordinator.sh/min-available"] = absl::StrCat(pod.gang_min);
  }
  object->phase = "Pending";
  if (!node.empty()) {
    proto.set_node_name(node);
    proto.set_start_unix_seconds(absl::ToUnixSeconds(now));
    object->phase = "Running";
  }
  return object;
}

scheduler::SchedulerOptions Patient(scheduler::SchedulerOptions options) {
  options.cycle_deadline = options.reserve_deadline = options.permit_deadline = absl::Seconds(30);
  options.pre_bind_deadline = options.bind_deadline = options.queue_deadline = absl::Seconds(30);
  return options;
}

void StormCluster::At(absl::Time when, Action action) {
  actions_.emplace(std::pair(when, ++last_action_), std::move(action));
}

absl::Time StormCluster::Next() const {
  return actions_.empty() ? absl::InfiniteFuture() : actions_.begin()->first.first;
}

void StormCluster::Run(absl::Time now) {
  while (!actions_.empty() && actions_.begin()->first.first <= now) {
    const Action action = std::move(actions_.extract(actions_.begin()).mapped());
    action(now);
  }
}

void StormCluster::Tell(Action news, absl::Time now) {
  last_news_ = std::max(last_news_, now + Moment());
  At(last_news_, std::move(news));
}

StormPod* StormCluster::Find(const std::string& uid) {
  const auto it = pods_.find(uid);
  return it == pods_.end() || it->second.gone ? nullptr : &it->second;
}

void StormCluster::Update(StormPod* pod, const std::function<void(kube::PodObject*)>& change,
                          absl::Time now) {
  auto next = std::make_shared<kube::PodObject>(*pod->object);
  change(next.get());
  next->resource_version = absl::StrCat(++last_version_);
  pod->object = next;
  Tell([this, next](absl::Time when) { scheduler_->events()->OnPodUpsert(next, when); }, now);
}

std::string StormCluster::Create(StormPod pod, const std::string& node, absl::Time now) {
  const std::string uid = absl::StrCat(pod.name, "/", pod.incarnation);
  pod.object = ObjectOf(pod, uid, node, now);
  pod.gone = false;
  StormPod& kept = pods_[uid] = std::move(pod);
  Update(
      &kept, [](kube::PodObject*) {}, now);
  return uid;
}

void StormCluster::WriteCheckpoint(const std::string& uid, absl::Time now) {
  StormPod* pod = Find(uid);
  if (pod == nullptr || pod->node().empty() || pod->leaving()) return;
  pod->checkpoint = now;
  Update(
      pod,
      [&](kube::PodObject* object) {
        (*object->pod.mutable_annotations())["outboard/last-checkpoint-time"] = Rfc3339(now);
      },
      now);
}

void StormCluster::Delete(const std::string& uid, absl::Time now) {
  if (StormPod* pod = Find(uid); pod != nullptr && !pod->leaving())
    BeginDeletion(pod, /*preempted=*/false, now);
}

void StormCluster::BeginDeletion(StormPod* pod, bool preempted, absl::Time now) {
  const std::string uid = pod->uid();
  // A pod without a node, or without a grace period, is deleted at once.
  const int64_t grace = pod->node().empty() || dice_.Percent(30) ? 0 : dice_.Between(1, 60);
  Update(
      pod,
      [&](kube::PodObject* object) {
        object->pod.set_deletion_unix_seconds(absl::ToUnixSeconds(now) + grace);
        object->pod.set_preempted_by_scheduler(preempted);
        object->vanishes = grace == 0;
      },
      now);
  if (grace == 0) return Vanish(uid, now);
  At(now + absl::Seconds(grace), [this, uid](absl::Time when) { Vanish(uid, when); });
}

void StormCluster::Vanish(const std::string& uid, absl::Time now) {
  StormPod* pod = Find(uid);
  if (pod == nullptr) return;
  pod->gone = true;
  Tell(
      [this, uid](absl::Time when) {
        scheduler_->events()->OnPodDelete(uid, when);
        callbacks.on_gone(uid);
      },
      now);
  if (!pod->comes_back) return;
  StormPod recreated = *pod;
  ++recreated.incarnation;
  At(now + absl::Milliseconds(dice_.Between(10, 5000)),
     [this, recreated](absl::Time when) { Create(recreated, "", when); });
}

void StormCluster::Bind(const scheduler::BindOrder& order, absl::Time now) {
  At(now + Moment(), [this, order](absl::Time when) {
    StormPod* pod = Find(order.pod->uid());
    if (pod == nullptr || pod->leaving())
      return order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kGone, "gone",
                                           when);
    if (!pod->node().empty()) callbacks.on_wrong(absl::StrCat(pod->name, " is bound twice"));
    if (fails_ && dice_.Percent(2)) {
      ++failed_binds;
      callbacks.on_bind_refused(pod->uid());
      return order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kNotBound,
                                           "refused", when);
    }
    Update(
        pod,
        [&](kube::PodObject* object) {
          object->pod.set_node_name(order.node_name);
          object->pod.set_start_unix_seconds(absl::ToUnixSeconds(when));
          object->phase = "Running";
        },
        when);
    callbacks.on_bound(*pod, order.node_name, when);
    order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kBound, "", when);
  });
}

void StormCluster::Evict(const scheduler::EvictOrder& order, absl::Time now) {
  callbacks.on_evict_ordered(order.preemption_id, order.victim->uid());
  At(now + Moment(), [this, order](absl::Time when) {
    const scheduler::EvictEnd end = EndEviction(order.victim->uid(), when);
    callbacks.on_evict_ended(order.preemption_id, order.victim->uid(), end);
    order.ordered_by->OnEvictionEnded(order.preemption_id, order.victim, end, "refused", when);
  });
}

scheduler::EvictEnd StormCluster::EndEviction(const std::string& uid, absl::Time now) {
  StormPod* pod = Find(uid);
  if (pod == nullptr) return scheduler::EvictEnd::kGone;
  if (fails_ && dice_.Percent(2)) {
    ++failed_evictions;
    return scheduler::EvictEnd::kFailed;
  }
  if (!pod->leaving()) BeginDeletion(pod, /*preempted=*/true, now);
  return scheduler::EvictEnd::kEvicted;
}

void StormCluster::Write(const scheduler::EffectOrder& order, absl::Time) {
  callbacks.on_wrong(absl::StrCat("unexpected write ", order.effect.ShortDebugString()));
}

void StormCluster::PatchStatus(const kube::PodObject& object,
                               const std::optional<scheduler::PodScheduledFalse>&,
                               const std::optional<std::string>& nominated_node, absl::Time now) {
  if (!nominated_node) return;
  const std::string uid = object.uid(), node = *nominated_node;
  if (!node.empty()) callbacks.on_nominated(uid, node);
  // The shim has one write to a pod's status in flight at a time.
  absl::Time& written = status_written_[uid];
  written = std::max(now + Moment(), written + absl::Milliseconds(1));
  At(written, [this, uid, node](absl::Time when) {
    StormPod* pod = Find(uid);
    if (pod == nullptr || pod->object->pod.nominated_node_name() == node) return;
    Update(
        pod, [&](kube::PodObject* next) { next->pod.set_nominated_node_name(node); }, when);
  });
}

}  // namespace outboard::storms
