#include "shim/api_cluster_actions.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::shim {
namespace {

scheduler::BindEnd EndOf(bind::BindOutcome outcome) {
  switch (outcome) {
    case bind::BindOutcome::kBound:
      return scheduler::BindEnd::kBound;
    case bind::BindOutcome::kNotBound:
    case bind::BindOutcome::kFenced:
    case bind::BindOutcome::kNoRoom:
      return scheduler::BindEnd::kNotBound;
    case bind::BindOutcome::kGone:
      return scheduler::BindEnd::kGone;
    case bind::BindOutcome::kUnknown:
      return scheduler::BindEnd::kUnknown;
  }
  return scheduler::BindEnd::kUnknown;
}

scheduler::EvictEnd EndOf(bind::EvictionOutcome outcome) {
  switch (outcome) {
    case bind::EvictionOutcome::kEvicted:
      return scheduler::EvictEnd::kEvicted;
    case bind::EvictionOutcome::kGone:
      return scheduler::EvictEnd::kGone;
    case bind::EvictionOutcome::kFailed:
      return scheduler::EvictEnd::kFailed;
  }
  return scheduler::EvictEnd::kFailed;
}

const char* OutcomeName(bind::BindOutcome outcome) {
  switch (outcome) {
    case bind::BindOutcome::kBound:
      return "bound";
    case bind::BindOutcome::kNotBound:
      return "not_bound";
    case bind::BindOutcome::kGone:
      return "gone";
    case bind::BindOutcome::kFenced:
      return "fenced";
    case bind::BindOutcome::kNoRoom:
      return "no_room";
    case bind::BindOutcome::kUnknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace

void ApiClusterActions::Bind(const scheduler::BindOrder& order, absl::Time now) {
  bind::BindRequest request;
  request.pod_namespace = order.pod->pod.namespace_();
  request.pod_name = order.pod->pod.name();
  request.pod_uid = order.pod->uid();
  request.node_name = order.node_name;
  request.profile = order.profile;
  request.bound_by_other_scheduler = order.bound_by_other_scheduler || order.bound_by_plugin;
  request.annotations.insert(order.annotations.begin(), order.annotations.end());
  writer_->Bind(std::move(request), now,
                [this, ordered_by = order.ordered_by, attempt_id = order.attempt_id, began = now](
                    const bind::BindResult& result, absl::Time ended) {
                  metrics_->binds.With({OutcomeName(result.outcome)}).Increment();
                  if (result.settled_by_read) metrics_->binds_settled_by_read.Increment();
                  metrics::Observe(metrics_->bind_duration, ended - began);
                  ordered_by->OnBindEnded(attempt_id, EndOf(result.outcome), result.message, ended);
                });
}

void ApiClusterActions::Evict(const scheduler::EvictOrder& order, absl::Time now) {
  bind::EvictRequest request;
  request.pod_namespace = order.victim->pod.namespace_();
  request.pod_name = order.victim->pod.name();
  request.pod_uid = order.victim->uid();
  request.generation = order.victim->pod.generation();
  request.condition_is_set = order.victim->pod.preempted_by_scheduler();
  request.message =
      absl::StrCat(order.profile, ": preempting to accommodate a higher priority pod");
  evictor_->Evict(std::move(request), now,
                  [ordered_by = order.ordered_by, id = order.preemption_id, victim = order.victim](
                      const bind::EvictionResult& result, absl::Time ended) {
                    ordered_by->OnEvictionEnded(id, victim, EndOf(result.outcome), result.message,
                                                ended);
                  });
}

void ApiClusterActions::RecordPreempted(const kube::PodObject& victim, const std::string& profile,
                                        const std::string& preemptor_uid,
                                        const std::string& node_name, bool in_memory,
                                        absl::Time now) {
  events_->Record(bind::PreemptedEvent(victim, profile, preemptor_uid, node_name, in_memory), now);
}

void ApiClusterActions::RecordEvent(const scheduler::EffectOrder& order, absl::Time now) {
  const std::string& profile =
      order.pod == nullptr ? order.profile : order.pod->pod.scheduler_name();
  absl::StatusOr<bind::ObjectEvent> event =
      bind::PluginEvent(order.effect, order.pod.get(), profile);
  absl::Status status = event.status();
  const bool is_allowed = status.ok() && event_rate_limit_.Take(order.effect.plugin(), now);
  if (is_allowed) {
    events_->Record(*std::move(event), now);
  } else if (status.ok() && order.attempt_id == 0) {
    // In an attempt, a lost event must not cost the pod its node.
    status = absl::ResourceExhaustedError("the plugin records too many events");
  }
  metrics_->effects.With({order.effect.plugin(), is_allowed ? "applied" : "failed"}).Increment();
  executor_([order, status](absl::Time ended) {
    order.ordered_by->OnEffectEnded(order, {status, ""}, ended);
  });
}

void ApiClusterActions::Write(const scheduler::EffectOrder& order, absl::Time now) {
  if (order.effect.has_record_event()) return RecordEvent(order, now);
  const v1beta1::Pod* pod = order.pod == nullptr ? nullptr : &order.pod->pod;
  writer_->Write(
      order.effect, pod, now, [this, order](const bind::WriteResult& result, absl::Time ended) {
        metrics_->effects.With({order.effect.plugin(), result.status.ok() ? "applied" : "failed"})
            .Increment();
        const scheduler::EffectEnd end = {result.status, result.resource_version, result.uid,
                                          result.object};
        order.ordered_by->OnEffectEnded(order, end, ended);
      });
}

void ApiClusterActions::RecordScheduled(const kube::PodObject& pod, const std::string& profile,
                                        const std::string& node_name, absl::Time now) {
  events_->Record(bind::ScheduledEvent(pod, profile, node_name), now);
}

void ApiClusterActions::RecordFailed(const kube::PodObject& pod, const std::string& profile,
                                     const std::string& message, absl::Time now) {
  events_->Record(bind::FailedSchedulingEvent(pod, profile, message), now);
}

void ApiClusterActions::PatchStatus(const kube::PodObject& pod,
                                    const std::optional<scheduler::PodScheduledFalse>& condition,
                                    const std::optional<std::string>& nominated_node_name,
                                    absl::Time now) {
  bind::StatusChange change;
  if (condition.has_value()) {
    change.reason = condition->reason;
    change.message = condition->message;
  }
  change.nominated_node_name = nominated_node_name;
  writer_->PatchStatus(pod, change, now);
}

}  // namespace outboard::shim
