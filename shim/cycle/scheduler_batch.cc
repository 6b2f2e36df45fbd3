// Several pods in one answer: those that come next, and groups.
#include <glog/logging.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "shim/cycle/scheduler.h"
#include "shim/cycle/scheduler_attempt.h"

namespace outboard::cycle {
namespace {

using queue::QueuedPod;

// A cycle of which only the outcome is known.
const v1alpha1::CycleResponse& Answered() {
  static const v1alpha1::CycleResponse& answered = *[] {
    auto* const response = new v1alpha1::CycleResponse;
    response->mutable_pre_filter();
    response->mutable_filter();
    return response;
  }();
  return answered;
}

}  // namespace

std::vector<std::string> Scheduler::NextPods(const Attempt& attempt) const {
  std::vector<std::string> uids;
  if (options_.batch_size <= 1 || options_.explain || attempt.plan->num_algorithm_hosts() != 1)
    return uids;
  // What is being compared is compared pod by pod.
  if (witness_ != nullptr && witness_->WantsPoints(attempt.plan->host_names[0])) return uids;
  const auto goes_alone = [&](const kube::PodObject& object) {
    const v1alpha1::Pod& pod = object.pod;
    return PlanOf(object) != attempt.plan || pod.deletion_unix_seconds() != 0 ||
           !pod.nominated_node_name().empty() ||
           AnyConcerns(attempt.plan->reserve, pod, cluster_.device_class_resources()) ||
           AnyConcerns(attempt.plan->permit, pod, cluster_.device_class_resources());
  };
  if (goes_alone(*attempt.pod)) return uids;
  for (const QueuedPod* next : queue_.Next(options_.batch_size - 1)) {
    if (goes_alone(*next->pod)) break;
    uids.push_back(next->uid());
  }
  // Of few pods each is worth knowing why it went where it went.
  if (uids.size() + 1 < options_.min_batch_size) uids.clear();
  return uids;
}

std::unique_ptr<Scheduler::Attempt> Scheduler::TakeWithOthers(const std::string& uid,
                                                              const ProfilePlan& plan,
                                                              absl::Time now) {
  const QueuedPod* const known = queue_.Find(uid);
  if (known == nullptr || PlanOf(*known->pod) != &plan ||
      known->pod->pod.deletion_unix_seconds() != 0 ||
      (known->place != queue::Place::kActive && known->place != queue::Place::kBackoff)) {
    return nullptr;
  }
  auto attempt = std::make_unique<Attempt>();
  attempt->id = ++last_attempt_id_;
  attempt->plan = &plan;
  attempt->began = now;
  attempt->info = queue_.Take(uid, now);
  attempt->pod = attempt->info->pod;
  return attempt;
}

void Scheduler::PlaceOthers(const ProfilePlan& plan, uint64_t first_id, bool first_placed,
                            const PlacedTogether& others, absl::Time now) {
  bool goes_on = first_placed;
  for (size_t i = 0; i < others.placements.size(); ++i) {
    const v1alpha1::PlannedPlacement& placement = others.placements[i];
    auto attempt = std::make_unique<Attempt>();
    attempt->id = first_id + 1 + i;
    attempt->plan = &plan;
    attempt->began = now;
    const QueuedPod* const known = queue_.Find(placement.pod_uid());
    if (known != nullptr && PlanOf(*known->pod) == &plan &&
        known->pod->pod.deletion_unix_seconds() == 0) {
      if (others.is_group) {
        attempt->info = queue_.Take(placement.pod_uid(), now);
      } else if (goes_on && absl::c_linear_search(queue_.Next(1), known)) {
        // Only while it is its turn still: what those before it did may have let others in.
        attempt->info = queue_.Pop(now);
      }
    }
    if (attempt->info == nullptr) {
      goes_on = false;
      for (const std::string& name : plan.host_names) {
        if (const Host& host = hosts_[name]; host.client != nullptr)
          cluster_.EndAttempt(host.cursor, attempt->id);
      }
      continue;
    }
    attempt->pod = attempt->info->pod;
    VLOG(3) << "Attempting to schedule pod " << attempt->pod->key() << " together with others";
    AlgorithmResult result;
    result.outcome = AlgorithmResult::Outcome::kPlaced;
    result.placed_together = true;
    result.slot = placement.slot();
    result.snapshot_version = others.snapshot_version;
    result.feasible_nodes = placement.feasible();
    result.evaluated_nodes = result.processed_nodes = placement.processed();
    observer_->OnAlgorithm(*attempt->pod, plan.algorithm, result, Answered(), others.elapsed_each);
    next_start_ =
        (next_start_ + placement.processed()) % static_cast<uint32_t>(cluster_.node_order().size());
    goes_on = AssumeAndReserve(std::move(attempt), placement.slot(), now);
  }
}

}  // namespace outboard::cycle
