// Executes the scheduler's decisions on a real API server.
#ifndef OUTBOARD_SHIM_API_CLUSTER_ACTIONS_H_
#define OUTBOARD_SHIM_API_CLUSTER_ACTIONS_H_

#include <optional>
#include <string>
#include <utility>

#include "shim/bind/api_writer.h"
#include "shim/bind/event_rate_limit.h"
#include "shim/bind/event_recorder.h"
#include "shim/bind/executor.h"
#include "shim/bind/pod_evictor.h"
#include "shim/metrics/metrics.h"
#include "shim/scheduler/cluster_actions.h"

namespace outboard::shim {

// Threading: scheduling thread.
// Lifetime: the arguments of the constructor outlive this object.
class ApiClusterActions final : public scheduler::ClusterActions {
 public:
  // `executor` posts to the scheduling thread.
  ApiClusterActions(bind::ApiWriter* writer, bind::PodEvictor* evictor, bind::EventRecorder* events,
                    metrics::Metrics* metrics, bind::Executor executor)
      : writer_(writer),
        evictor_(evictor),
        events_(events),
        metrics_(metrics),
        executor_(std::move(executor)) {}

  void Bind(const scheduler::BindOrder& order, absl::Time now) override;
  void Evict(const scheduler::EvictOrder& order, absl::Time now) override;
  void RecordPreempted(const kube::PodObject& victim, const std::string& profile,
                       const std::string& preemptor_uid, const std::string& node_name,
                       bool in_memory, absl::Time now) override;
  void Write(const scheduler::EffectOrder& order, absl::Time now) override;
  void RecordScheduled(const kube::PodObject& pod, const std::string& profile,
                       const std::string& node_name, absl::Time now) override;
  void RecordFailed(const kube::PodObject& pod, const std::string& profile,
                    const std::string& message, absl::Time now) override;
  void PatchStatus(const kube::PodObject& pod,
                   const std::optional<scheduler::PodScheduledFalse>& condition,
                   const std::optional<std::string>& nominated_node_name, absl::Time now) override;

 private:
  // Queues a plugin's event. The order ends as soon as the scheduling thread is free.
  void RecordEvent(const scheduler::EffectOrder& order, absl::Time now);

  bind::ApiWriter* const writer_;
  bind::PodEvictor* const evictor_;
  bind::EventRecorder* const events_;
  metrics::Metrics* const metrics_;
  const bind::Executor executor_;
  bind::EventRateLimit event_rate_limit_;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_API_CLUSTER_ACTIONS_H_
