// The instances of all hosts, and which instance of each host serves.
#ifndef OUTBOARD_SHIM_HOSTS_HOST_REGISTRY_H_
#define OUTBOARD_SHIM_HOSTS_HOST_REGISTRY_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/hosts/accepted_pods.h"
#include "shim/hosts/config_check.h"
#include "shim/hosts/endpoint.h"
#include "shim/hosts/host_limits.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/instance.h"
#include "shim/hosts/instance_view.h"
#include "shim/hosts/plans.h"
#include "shim/hosts/single_sessions.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::hosts {

// Takes instances into service: handshake → Configure → snapshot → serving. Replaces an older
// instance by a newer one without a gap: the newer one is prepared while the older serves, and the
// older stays ready for a while afterwards.
//
// waiting → syncing → shadow → serving ⇄ standby → its session ends, forgotten (called again where
// no other instance is left)
//
// In the shadow the new instance gets the same calls as the serving instance, in one message or
// point by point, and no pod waits for it. ShadowReport has the differences. An unusable or missing
// answer there quarantines its build. If the host shares a profile with others, its verdicts and
// scores are compared, but not the placements, because several answers determine a placement. A
// host without a plugin from PreFilter to Score has nothing to compare and serves once it is ready.
//
// The usable instance that started last serves, unless an administrator selected another one, or
// it is in a pod that no leader has accepted yet. If the serving instance is lost, the newest ready
// one takes over at once. If several of its answers are unusable soon after it took over, its
// predecessor replaces it, and its build is quarantined if that of the predecessor is another one.
//
// Everything happens between cycles: one instance answers a cycle from PreFilter to Score. Later
// calls of an attempt go to the instance that serves then; its snapshot has all attempts with a
// node.
//
// Threading: scheduling thread.
// Lifetime: loop and scheduler outlive it.
// Errors: a method that fails has changed nothing, unless it says so.
class HostRegistry final : public framework::ShadowObserver {
 public:
  // `session_id`: of this process, at most 31 bytes; the ids of its sessions begin with it.
  HostRegistry(std::shared_ptr<const config::Config> config, std::string session_id, HostLoop* loop,
               scheduler::Scheduler* scheduler);
  ~HostRegistry() override;

  struct Callbacks {
    // The connection to this address is gone, or its retired instance is wanted again: a new
    // handshake is needed.
    std::function<void(const std::string& address)> on_lost = [](const std::string&) {};
    // The instance at this address is no longer needed.
    std::function<void(const std::string& address)> on_retired = [](const std::string&) {};
    // Observes the calls of a host's serving instance; may be null. An instance in the shadow is
    // not observed: no pod waits for it.
    std::function<CallObserver*(const std::string& host)> call_observer =
        [](const std::string&) -> CallObserver* { return nullptr; };
  };
  void SetCallbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }
  // For instances that begin from now on.
  void SetLimits(const HostLimits& limits) { limits_ = limits; }

  // Which hosts with SINGLE_SESSION this shim may configure.
  SingleSessions* single_sessions() { return &single_sessions_; }
  // What leaders say about instances in pods.
  AcceptedPods* accepted_pods() { return &accepted_pods_; }
  // Until the cluster is complete, no instance receives it. Complete unless set.
  void SetClusterComplete(bool complete) { cluster_is_complete_ = complete; }

  // An instance answered the handshake. Profiles are resolved and instances configured once every
  // host of the configuration has answered, or others have waited long enough and serve all
  // plugins. INVALID_ARGUMENT: the first resolution failed although all hosts have answered.
  absl::Status OnHandshake(const Endpoint& endpoint, HostConnection connection, absl::Time now);
  // A probe reports that the instance is draining.
  void OnDraining(const std::string& host, const std::string& instance, absl::Time now);
  // A probe reports that the instance is ready.
  void OnProbedReady(const std::string& host, const std::string& instance,
                     const v1beta1::ProbeResponse& probe, absl::Time now);
  // The instance has not answered probes for this long.
  void OnSilent(const std::string& host, const std::string& instance, absl::Duration silence,
                absl::Time now);
  void OnCycle(const framework::AnsweredCycle& cycle, absl::Time now) override;
  bool RecordsCalls(const std::string& host_name) const override;
  void OnCallsRecorded(const framework::AnsweredPoints& points, absl::Time now) override;
  // No process answers at the instance's address any more, or another instance does.
  void OnGone(const std::string& host, const std::string& instance, absl::Time now);
  // An instance returned no usable answer.
  void OnHostCallFailed(const std::string& instance, const absl::Status& status);
  // Handles instances that became ready, were lost, or failed.
  void Tick(absl::Time now);

  // Asks the hosts whether they would accept another configuration. INVALID_ARGUMENT: it
  // cannot be applied with their plugins.
  absl::StatusOr<ConfigCheck> CheckReload(std::shared_ptr<const config::Config> config) const;
  // Applies another configuration as a whole, or returns INVALID_ARGUMENT and changes nothing.
  absl::Status Reload(std::shared_ptr<const config::Config> config, absl::Time now);

  // Commands. Empty `instance`: the newest on standby. FAILED_PRECONDITION and NOT_FOUND with a
  // message for the administrator.
  absl::Status Swap(const std::string& host, const std::string& instance, absl::Time now);
  absl::Status Rollback(const std::string& host, absl::Time now);
  // Allows quarantined builds of the host again, and ends pauses.
  absl::Status ClearQuarantine(const std::string& host, absl::Time now);

  using View = InstanceView;
  std::vector<View> Describe() const;
  // How often instances came to serve, by host and reason (as outboard_host_switches_total).
  const std::map<std::pair<std::string, std::string>, int64_t>& switches() const {
    return switches_;
  }

  // When to send the next piece of a snapshot, or to end a pause; all else wakes the loop itself.
  absl::Time NextWakeup() const;
  // True while every host that a profile needs is serving.
  bool AllReady() const;
  // Whether pods of some profile can be placed: those that need no unavailable host.
  bool ServesSomePods() const;
  // Why profiles cannot be resolved although all hosts have answered; OK otherwise.
  absl::Status UnresolvedProfiles() const;
  // Null until profiles are resolved.
  const Plans* plans() const { return plans_.has_value() ? &*plans_ : nullptr; }

 private:
  using Host = HostInstances;
  // Whether an instance serves and is called.
  bool IsServed(const std::string& host) const;
  // The configuration's, and those that have answered.
  std::vector<std::string> HostNames(const config::Config& config) const;
  // Of the hosts that have answered.
  HostInfos Infos() const;
  bool EveryHostAnswered() const;
  // The plans if this instance served its host; null: with the current instances.
  absl::StatusOr<Plans> PlansWith(const std::string& host, const Instance* instance) const;
  // Why the instance cannot have its host's single session yet; empty: it can.
  std::string WhyNoSession(const Instance& instance) const;
  // Whether the host waits only until this shim leads.
  bool WaitsToLead(const Host& host) const;
  bool YieldsToAnotherShim() const;
  // Handles what a probe said about the host's single session; may end that of the instance.
  void TakeProbedSession(const std::string& name, Instance* instance, const std::string& current,
                         absl::Time now);
  // When the first of the instances that pause may begin; InfiniteFuture: none pauses.
  absl::Time NextSession() const;
  // Begins with all waiting instances, unless they pause.
  absl::Status BeginWaiting(absl::Time now);
  // Logs, once per change, which plugins no host serves and which hosts have not answered.
  void ReportUnserved();
  void Begin(const std::string& name, Instance* instance, absl::Time now);
  // If no instance of the host is left that could serve: calls the replaced ones again.
  void RecallReplaced(const std::string& name);
  // A client of the instance, with a session that it does not know yet.
  std::unique_ptr<GrpcHostClient> NewClient(const Instance& instance,
                                            const std::string& session_id) const;
  // Ends the instance's session.
  void Disconnect(Instance* instance);
  // NOT_FOUND with a message for the administrator.
  absl::StatusOr<Host*> FindHost(const std::string& name);
  void Enter(const std::string& name, Instance* instance, InstanceState state, std::string why,
             absl::Time now);
  // Makes a ready instance the serving one of its host.
  void Serve(const std::string& name, Instance* next, const std::string& reason,
             const std::string& why, absl::Time now);
  // Puts plans into force. Other hosts whose share changes start from scratch.
  void Adopt(Plans plans, const std::string& by_host, absl::Time now);
  // Takes the instance out of service, if it serves, and forgets it.
  void Remove(const std::string& name, Instance* instance, absl::Time now);
  void OnLost(const std::string& name, Instance* instance, const std::string& why, absl::Time now);
  // Quarantines the build if another instance can serve, else ends the session.
  void EndMisbehaving(const std::string& name, Host* host, Instance* instance,
                      const std::string& why, absl::Time now);
  // Ends the session of an instance that cannot go on, for one of several reasons.
  void EndIfBroken(const std::string& name, Host* host, Instance* instance, absl::Time now);
  // Handles what an instance pushed that does not serve; may end its session.
  void TakePushes(const std::string& name, Instance* instance, absl::Time now);
  // Takes all instances of its build out of service, with the reason. If one of them serves, the
  // build is not at fault: only this session ends, and the instance is called again.
  void Quarantine(const std::string& name, Instance* instance, const std::string& why,
                  absl::Time now);
  // Logs a warning of the instance that differs from the kept one, and keeps it.
  void TakeWarning(const std::string& name, const Instance& instance, const std::string& warning,
                   std::string* kept);
  void TakeConfigWarnings(const std::string& name, Instance* instance,
                          std::vector<std::string> warnings);
  // Puts the instance into the shadow; false if there is nothing to compare.
  bool EnterShadow(const std::string& name, Instance* instance, absl::Time now);
  // The cycle as the serving instance answered it, without the calls to the shadow instance.
  template <typename Answered>
  ShadowCycle ServedCycle(const Answered& answered, const Instance& instance) const;
  std::vector<std::string> NamesOf(absl::Span<const uint32_t> slots) const;
  // Sends the instance the calls of the serving instance, point by point.
  void StartChain(const framework::AnsweredPoints& points, Instance* instance, absl::Time now);
  // Ignores the answer that is still to come.
  void DropShadowCycle(Instance* instance);
  // Compares new answers; true if the instance has been in the shadow long enough.
  bool ShadowIsOver(const std::string& name, Instance* instance, absl::Time now);
  // The id of this shim's session with the instance. Never that of another instance, which could
  // otherwise answer for it, for example behind an address that several hosts share.
  std::string SessionOf(const Instance& instance) const;
  void GiveUp(const std::string& name, Host* host, Instance* previous, const std::string& why,
              absl::Time now);
  void TakeAcceptances();
  void Promote(const std::string& name, Host* host, absl::Time now);
  void TickHost(const std::string& name, Host* host, absl::Time now);
  // Sends a configured instance the cluster, or watches its readiness if it keeps no cache.
  void BeginCacheSync(const std::string& name, Instance* instance, absl::Time now);
  // Sends the next piece of the snapshot once the last one is out; slowly while another serves.
  void SendSnapshotPiece(const Host& host, Instance* instance);
  // Whether it has not gone on with its snapshot for too long.
  bool IsStuckInSnapshot(Instance* instance) const;
  // Sends changes to an instance that no call keeps up to date.
  void Follow(Instance* instance, absl::Time now);

  std::shared_ptr<const config::Config> config_;
  const std::string session_id_;
  HostLoop* const loop_;
  scheduler::Scheduler* const scheduler_;
  Callbacks callbacks_;
  HostLimits limits_;
  SingleSessions single_sessions_;
  AcceptedPods accepted_pods_;
  bool cluster_is_complete_ = true;
  std::map<std::string, Host> hosts_;
  std::optional<Plans> plans_;
  std::map<std::pair<std::string, std::string>, int64_t> switches_;
  absl::Time followed_ = absl::InfinitePast();
  std::string reported_unserved_;
  // Without plans: when to continue without the hosts that have not answered.
  absl::Time hosts_deadline_ = absl::InfiniteFuture();
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_REGISTRY_H_
