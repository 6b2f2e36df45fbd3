// Carries out decisions on a real API server.
#ifndef OUTBOARD_SHIM_API_EFFECTS_H_
#define OUTBOARD_SHIM_API_EFFECTS_H_

#include <optional>
#include <string>

#include "shim/bind/api_writer.h"
#include "shim/bind/event_recorder.h"
#include "shim/bind/pod_evictor.h"
#include "shim/cycle/effects.h"
#include "shim/cycle/foreign_pods.h"
#include "shim/cycle/scheduler.h"
#include "shim/metrics/metrics.h"

namespace outboard::shim {

// Threading: scheduling thread. Lifetime: everything it is given outlives it.
class ApiEffects final : public cycle::Effects {
 public:
  ApiEffects(bind::ApiWriter* writer, bind::PodEvictor* evictor, bind::EventRecorder* events,
             metrics::Metrics* metrics)
      : writer_(writer), evictor_(evictor), events_(events), metrics_(metrics) {}
  // Where outcomes of binds and evictions go; set before the first.
  void SetScheduler(cycle::Scheduler* scheduler, cycle::ForeignPods* foreign_pods) {
    scheduler_ = scheduler;
    foreign_pods_ = foreign_pods;
  }

  void Bind(const cycle::BindOrder& order, absl::Time now) override;
  void Evict(const cycle::EvictOrder& order, absl::Time now) override;
  void RecordPreempted(const kube::PodObject& victim, const std::string& profile,
                       const std::string& preemptor_uid, const std::string& node_name,
                       bool in_memory, absl::Time now) override;
  void Write(const cycle::EffectOrder& order, absl::Time now) override;
  void RecordScheduled(const kube::PodObject& pod, const std::string& profile,
                       const std::string& node_name, absl::Time now) override;
  void RecordFailed(const kube::PodObject& pod, const std::string& profile,
                    const std::string& message, absl::Time now) override;
  void PatchStatus(const kube::PodObject& pod,
                   const std::optional<cycle::PodScheduledFalse>& condition,
                   const std::optional<std::string>& nominated_node_name, absl::Time now) override;

 private:
  bind::ApiWriter* const writer_;
  bind::PodEvictor* const evictor_;
  bind::EventRecorder* const events_;
  metrics::Metrics* const metrics_;
  cycle::Scheduler* scheduler_ = nullptr;
  cycle::ForeignPods* foreign_pods_ = nullptr;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_API_EFFECTS_H_
