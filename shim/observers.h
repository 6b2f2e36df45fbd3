// Combines several observers of one scheduler.
#ifndef OUTBOARD_SHIM_OBSERVERS_H_
#define OUTBOARD_SHIM_OBSERVERS_H_

#include <string>
#include <utility>
#include <vector>

#include "shim/scheduler/cluster_actions.h"

namespace outboard::shim {

// Notifies each observer, in order.
// Threading: as the observers.
// Lifetime: the observers outlive this object.
class Observers final : public scheduler::Observer {
 public:
  explicit Observers(std::vector<scheduler::Observer*> observers)
      : observers_(std::move(observers)) {}

  void OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                   const framework::AlgorithmResult& result, const v1beta1::PlanResponse& response,
                   absl::Duration elapsed) override {
    for (auto* o : observers_) o->OnAlgorithm(pod, profile, result, response, elapsed);
  }
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    scheduler::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override {
    for (auto* o : observers_)
      o->OnAttemptEnd(pod, profile, result, node_name, message, since_attempt_began);
  }
  void OnAttemptSkipped(const kube::PodObject& pod) override {
    for (auto* o : observers_) o->OnAttemptSkipped(pod);
  }
  void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override {
    for (auto* o : observers_) o->OnPreemption(pod, node_name, victims, to_evict);
  }
  void OnBudgetViolations(size_t evictions) override {
    for (auto* o : observers_) o->OnBudgetViolations(evictions);
  }
  void OnPreemptionLimited(const kube::PodObject& pod, absl::string_view limit) override {
    for (auto* o : observers_) o->OnPreemptionLimited(pod, limit);
  }
  void OnBound(const kube::PodObject& pod, const std::string& profile, int attempts,
               absl::Duration since_first_attempt, bool was_flushed) override {
    for (auto* o : observers_) o->OnBound(pod, profile, attempts, since_first_attempt, was_flushed);
  }
  void OnBoundElsewhere(const kube::PodObject& pod) override {
    for (auto* o : observers_) o->OnBoundElsewhere(pod);
  }
  void OnPermitWaitEnd(const kube::PodObject& pod, absl::Duration waited,
                       v1beta1::Code code) override {
    for (auto* o : observers_) o->OnPermitWaitEnd(pod, waited, code);
  }
  void OnHostCallFailed(const std::string& host_instance, const absl::Status& status) override {
    for (auto* o : observers_) o->OnHostCallFailed(host_instance, status);
  }
  void OnFailurePolicy(const std::string& host, v1beta1::ExtensionPoint point,
                       absl::string_view policy) override {
    for (auto* o : observers_) o->OnFailurePolicy(host, point, policy);
  }
  void OnProtocolError(const std::string& host, const std::string& host_instance,
                       const absl::Status& status) override {
    for (auto* o : observers_) o->OnProtocolError(host, host_instance, status);
  }
  void OnGuardRefusal(absl::string_view shortage) override {
    for (auto* o : observers_) o->OnGuardRefusal(shortage);
  }
  void OnEventHandled(absl::string_view event, absl::Duration elapsed) override {
    for (auto* o : observers_) o->OnEventHandled(event, elapsed);
  }
  void OnCall(v1beta1::ExtensionPoint point, const std::string& profile, v1beta1::Code code,
              absl::Duration elapsed) override {
    for (auto* o : observers_) o->OnCall(point, profile, code, elapsed);
  }

 private:
  const std::vector<scheduler::Observer*> observers_;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_OBSERVERS_H_
