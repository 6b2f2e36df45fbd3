// A replay's pods on the real queue, cycle and plugin hosts.
#ifndef OUTBOARD_SHIM_SIMULATE_TRACE_SCHEDULER_CLUSTER_H_
#define OUTBOARD_SHIM_SIMULATE_TRACE_SCHEDULER_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/simulate/simulation.h"
#include "shim/simulate/stage.h"
#include "shim/simulate/trace/replay.h"

namespace outboard::simulate::trace {

// The scheduler decides in no time. Only a pod that is tried in vain twice at one instant leaves
// the rest for a later one: two pods could otherwise take turns for ever in helping one another and
// failing, for a queue that is otherwise empty gives pods that back off their turn at once.
//
// Hosts are told the time and heard out before anything is decided at an instant, and again until
// nothing comes of it: what they push is taken at fixed points, so that the same trace gives the
// same answers however fast they are.
class SchedulerCluster final : public Cluster, private cycle::Observer {
 public:
  // `spare_attempts`: none that can only fail, see cycle::VainAttempts.
  SchedulerCluster(const config::Config& config, const Scene& scene, absl::Time begin,
                   bool spare_attempts = false);

  // Errors: as Stage::Open.
  absl::Status Open(const Scene& scene, const std::vector<std::string>& addresses,
                    absl::Time begin) {
    return stage_.Open(scene, addresses, begin);
  }
  bool HandlesScheduler(const std::string& name) const { return stage_.HandlesScheduler(name); }

  absl::Status Begin(absl::Time now) override;
  void Create(const kube::PodPtr& pod, absl::Time now) override;
  void Delete(const std::string& uid, absl::Time now) override;
  // Errors: UNAVAILABLE when a host is lost, gives no answer that is of use, or does not say that
  // it has heard the time: what becomes of the jobs would depend on the machine.
  absl::Status Settle(absl::Time now, std::vector<News>* news) override;
  absl::Time NextWakeup(absl::Time now) override;

 private:
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    cycle::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;
  void OnNoAnswer(const std::string& host_instance, const absl::Status& status) override;
  void OnAttemptSpared(const kube::PodObject& pod) override { NoteTriedInVain(pod.uid()); }
  void NoteTriedInVain(const std::string& uid);
  // Whether anything was done.
  bool ScheduleAll(absl::Time now);
  bool NobodyWaits();

  Stage stage_;
  std::vector<News> news_;
  absl::Time now_;
  absl::Time heard_at_ = absl::InfinitePast();  // at an instant, before a pod was created
  absl::Status failed_;                         // OK, or why the replay cannot go on
  // By uid: when it was tried in vain last.
  absl::flat_hash_map<std::string, absl::Time> tried_;
  bool tried_again_ = false;
};

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_SHIM_SIMULATE_TRACE_SCHEDULER_CLUSTER_H_
