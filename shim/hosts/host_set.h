// The instances of all hosts, and which of each host's serves.
#ifndef OUTBOARD_SHIM_HOSTS_HOST_SET_H_
#define OUTBOARD_SHIM_HOSTS_HOST_SET_H_

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
#include "shim/cycle/inline_host.h"
#include "shim/cycle/scheduler.h"
#include "shim/hosts/endpoint.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/plans.h"
#include "shim/hosts/shadow.h"
#include "shim/hosts/shadow_chain.h"

namespace outboard::hosts {

// Where an instance is on its way.
enum class InstanceState {
  kWaiting,      // other hosts have not answered yet, without which nobody can be configured
  kSyncing,      // configured; its mirror is being filled
  kShadow,       // ready; answers beside the one that serves, and is compared with it
  kServing,      // pods are scheduled by it
  kStandby,      // ready, while another one serves
  kDraining,     // it said that it is about to go
  kRefused,      // its configuration or its plugins are of no use
  kQuarantined,  // a build that failed while it served
};
absl::string_view StateName(InstanceState state);

// Brings instances into use: handshake → Configure → snapshot → serving, and lets a newer instance
// take the place of an older one without a gap: it is made ready beside the other, which serves
// until then and stays ready for a while afterwards.
//
//   waiting → syncing → shadow → serving ⇄ standby → told to drain, forgotten
//
// In the shadow the new one is asked what the serving one was asked, in one message or point by
// point, without anybody waiting for it; what would change is reported (ShadowReport). An answer of
// no use there, or none, quarantines its build. Where a host shares a profile with others, its
// verdicts and scores are compared, but not where pods would go, which no single answer decides. A
// host without a plugin from PreFilter to Score has nothing to be compared and serves once it is
// ready.
//
// Of a host's usable instances the one that started last serves, unless a person chose another one.
// When the serving one is lost, the newest that is ready takes over at once. One that gives no
// usable answer several times soon after it took over is replaced by its predecessor, and its build
// is quarantined.
//
// Everything happens between cycles: a call is answered by one instance from PreFilter to Score.
// What is asked later about an attempt goes to whoever serves then; it knows all attempts that have
// a node from its snapshot.
//
// Threading: scheduling thread. Lifetime: loop and scheduler outlive it.
// Errors:    of methods: nothing has changed then, but for what they say.
class HostSet final : public cycle::CycleWitness {
 public:
  HostSet(std::shared_ptr<const config::Config> config, std::string session_id, HostLoop* loop,
          cycle::Scheduler* scheduler);
  ~HostSet() override;

  struct Callbacks {
    // Nobody is connected at this address any more: somebody has to do the handshake again.
    std::function<void(const std::string& address)> on_lost = [](const std::string&) {};
    // The instance at this address is not needed any more.
    std::function<void(const std::string& address)> on_retired = [](const std::string&) {};
  };
  void SetCallbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  // An instance answered. Once every host of the configuration has, or the others have waited for
  // it long enough and serve all plugins, profiles are resolved, and instances configured and sent
  // their snapshots. INVALID_ARGUMENT: the first resolution failed, though all hosts have answered.
  absl::Status OnHandshake(const Endpoint& endpoint, std::shared_ptr<grpc::Channel> channel,
                           v1alpha1::GetHostInfoResponse info, absl::Time now);
  // A probe says that the instance is about to go.
  void OnDraining(const std::string& host, const std::string& instance, absl::Time now);
  // A probe says that the instance is ready.
  void OnProbedReady(const std::string& host, const std::string& instance,
                     const std::string& warning, absl::Time now);
  void OnCycle(const cycle::AnsweredCycle& cycle, absl::Time now) override;
  bool WantsPoints(const std::string& host_name) const override;
  void OnPoints(const cycle::AnsweredPoints& points, absl::Time now) override;
  // Nobody listens any more where the instance was met, or another one does.
  void OnGone(const std::string& host, const std::string& instance, absl::Time now);
  // An instance gave no answer, or one that cannot be used.
  void OnNoAnswer(const std::string& instance, const absl::Status& status);
  // Notices instances that have become ready, or were lost, or failed.
  void Tick(absl::Time now);

  // Another configuration: takes force as a whole, or INVALID_ARGUMENT and nothing has changed.
  absl::Status Reload(std::shared_ptr<const config::Config> config, absl::Time now);

  // What people ask for. `instance` may be empty: the newest on standby. FAILED_PRECONDITION and
  // NOT_FOUND with words for them.
  absl::Status Swap(const std::string& host, const std::string& instance, absl::Time now);
  absl::Status Rollback(const std::string& host, absl::Time now);
  // Lets quarantined builds of the host be tried again.
  absl::Status Forgive(const std::string& host, absl::Time now);

  // An instance, for people.
  struct View {
    std::string host, instance, address, build, build_digest;
    InstanceState state = InstanceState::kWaiting;
    std::string why;      // how it came to that state
    std::string warning;  // its own, of its last probe
    absl::Time since;     // when it came to the state
    absl::Time started = absl::InfinitePast();
    bool usable = false;
    bool held_back = false;  // it is not asked until it has answered a probe
    int64_t sent_version = 0;
    int64_t acknowledged_version = 0;
    int64_t failures = 0;  // since it serves
    ShadowReport shadow;   // of the instance's time in the shadow
  };
  std::vector<View> Describe() const;
  // How often another instance came to serve, by host and why: `newer`, `lost`, `rollback`,
  // `person`.
  const std::map<std::pair<std::string, std::string>, int64_t>& switches() const {
    return switches_;
  }

  // When the next piece of a snapshot is to be sent; what else there is to do wakes the loop by
  // itself.
  absl::Time NextWakeup() const;
  // True once every host that a profile needs is in use.
  bool AllReady() const;
  // Whether pods of some profile can be placed: those that need no host which is away.
  bool ServesSomePods() const;
  // Null until profiles could be resolved.
  const Plans* plans() const { return plans_.has_value() ? &*plans_ : nullptr; }

 private:
  struct Instance {
    Endpoint endpoint;
    std::shared_ptr<grpc::Channel> channel;
    v1alpha1::GetHostInfoResponse info;
    absl::Time started;  // when it says, else when it was met
    std::unique_ptr<GrpcHostClient> client;
    std::unique_ptr<cycle::InlineHost> inline_host;  // its face, if it keeps no mirror
    cycle::ClusterState::Cursor cursor = 0;
    std::unique_ptr<cycle::Snapshot> snapshot;  // while it is being told
    absl::Time next_piece = absl::InfinitePast();
    v1alpha1::ConfigureRequest configured;
    InstanceState state = InstanceState::kWaiting;
    std::string why;
    std::string warning;
    absl::Time since;
    // Since it serves: calls without a usable answer, and what they weigh for a rollback.
    int64_t bad_calls = 0;
    int64_t failures = 0;
    std::string last_failure;
    ShadowReport shadow;
    // In the shadow: what it would be asked if it served, by profile.
    std::map<std::string, cycle::AlgorithmShare> shares;
    std::optional<ShadowCycle> shadow_cycle;  // that it has still to answer
    std::unique_ptr<ShadowChain> chain;       // by which it answers, if not in one message
    absl::Time shadow_deadline;               // of the one message

    const std::string& id() const { return info.host_instance(); }
    // What a quarantine is about.
    const std::string& build_key() const {
      return info.build_digest().empty() ? info.host_instance() : info.build_digest();
    }
    bool is_fused() const;
    // What the scheduler calls.
    cycle::HostClient* Face(const cycle::ClusterState* cluster);
    // Null if it keeps a mirror.
    cycle::InlineHost* Inline(const cycle::ClusterState* cluster);
    // Whether it can be asked beside the serving one.
    bool awaits_shadow_cycle() const {
      return state == InstanceState::kShadow && !shadow_cycle.has_value() && ready();
    }
    bool ready() const {
      return client != nullptr && client->usable() &&
             (state == InstanceState::kSyncing || state == InstanceState::kShadow ||
              state == InstanceState::kServing || state == InstanceState::kStandby);
    }
  };
  struct Host {
    std::vector<std::unique_ptr<Instance>> instances;
    Instance* serving = nullptr;
    // Of whoever serves, served last, or was met first.
    std::optional<v1alpha1::GetHostInfoResponse> info;
    std::map<std::string, std::string> quarantined;  // build key → why
  };

  bool IsServed(const std::string& host) const;
  std::vector<std::string> HostNames() const;
  bool EveryHostAnswered() const;
  // The plans if this instance served its host; null: as it is.
  absl::StatusOr<Plans> PlansWith(const std::string& host, const Instance* instance) const;
  // Begins with all that could not begin yet.
  absl::Status BeginWaiting(absl::Time now);
  void Begin(const std::string& name, Instance* instance, absl::Time now);
  // Ends its session with us.
  void Disconnect(Instance* instance);
  // NOT_FOUND in words for people.
  absl::StatusOr<Host*> FindHost(const std::string& name);
  void Enter(const std::string& name, Instance* instance, InstanceState state, std::string why,
             absl::Time now);
  // Puts an instance that is ready into its host's place.
  void Serve(const std::string& name, Instance* next, const std::string& reason,
             const std::string& why, absl::Time now);
  // Makes plans those in force; other hosts whose share changes by that begin anew.
  void Adopt(Plans plans, const std::string& by_host, absl::Time now);
  // The newest that is ready and not the one that serves.
  Instance* NewestReady(Host* host, const Instance* but);
  // Takes the instance out of use, if it is in use, and forgets it.
  void Remove(const std::string& name, Instance* instance, absl::Time now);
  void OnLost(const std::string& name, Instance* instance, const std::string& why, absl::Time now);
  // Takes a build out of use, and says why.
  void Quarantine(const std::string& name, Instance* instance, const std::string& why,
                  absl::Time now);
  void TakeWarning(const std::string& name, Instance* instance, const std::string& warning);
  // Puts the instance into the shadow; false if there is nothing to compare.
  bool EnterShadow(const std::string& name, Instance* instance, absl::Time now);
  // The cycle as the serving one answered it, but for how the other is asked.
  template <typename Answered>
  ShadowCycle ServedCycle(const Answered& answered, const Instance& instance) const;
  std::vector<std::string> NamesOf(absl::Span<const uint32_t> slots) const;
  // Asks the instance what the serving one was asked, point by point.
  void StartChain(const cycle::AnsweredPoints& points, Instance* instance, absl::Time now);
  // Forgets what it has still to answer.
  void DropShadowCycle(Instance* instance);
  // Compares what has come; true if the instance has been in the shadow for long enough.
  bool ShadowIsOver(const std::string& name, Instance* instance, absl::Time now);
  void GiveUp(const std::string& name, Host* host, Instance* previous, const std::string& why,
              absl::Time now);
  void Promote(const std::string& name, Host* host, absl::Time now);
  void TickHost(const std::string& name, Host* host, absl::Time now);
  // Has a configured instance made ready: it is told the cluster, or asked whether it is, where it
  // keeps no mirror.
  void BeginMirror(Instance* instance, absl::Time now);
  // Sends the next piece of its snapshot, once the piece before it is gone. Takes its time while
  // another instance serves.
  void TellSnapshot(const Host& host, Instance* instance);
  // Sends what has changed to an instance that no call keeps up to date.
  void Follow(Instance* instance, absl::Time now);

  std::shared_ptr<const config::Config> config_;
  const std::string session_id_;
  HostLoop* const loop_;
  cycle::Scheduler* const scheduler_;
  Callbacks callbacks_;
  std::map<std::string, Host> hosts_;
  std::optional<Plans> plans_;
  std::map<std::pair<std::string, std::string>, int64_t> switches_;
  absl::Time followed_ = absl::InfinitePast();
  // While there are no plans: when those that have answered go on without the others.
  absl::Time patience_ends_ = absl::InfiniteFuture();
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_SET_H_
