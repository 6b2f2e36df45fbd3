// One instance of a host, and the host, as the registry keeps them.
#ifndef OUTBOARD_SHIM_HOSTS_INSTANCE_H_
#define OUTBOARD_SHIM_HOSTS_INSTANCE_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/profile_plan.h"
#include "shim/hosts/endpoint.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/inline_host.h"
#include "shim/hosts/instance_view.h"
#include "shim/hosts/pause.h"
#include "shim/hosts/quarantine.h"
#include "shim/hosts/shadow.h"
#include "shim/hosts/shadow_cycle_runner.h"

namespace outboard::hosts {

// What the readiness gate of an instance's pod says: nothing, as it has none; that the leader has
// not accepted the instance, or that it has.
enum class Acceptance { kNotAsked, kAwaited, kAccepted };

// Owned by HostRegistry, which is its only writer.
struct Instance {
  Endpoint endpoint;
  Acceptance acceptance = Acceptance::kNotAsked;
  bool approved = false;  // by this process, as the leader, or by an administrator
  int recalls = 0;        // of its host at the handshake; a part of its session's id
  std::shared_ptr<grpc::Channel> channel;
  handshake::v1::HandshakeResponse identity;
  v1beta1::GetHostInfoResponse info;
  absl::Time started;  // as the host reports, else the time of the handshake
  std::unique_ptr<GrpcHostClient> grpc_client;
  std::unique_ptr<InlineHost> inline_host;  // if it keeps no cluster cache
  cache::ClusterState::Cursor cursor = 0;
  bool awaits_cluster = false;                   // it is configured
  absl::Time not_before = absl::InfinitePast();  // while it waits: when its session may begin
  absl::Time began = absl::InfinitePast();       // its session
  std::unique_ptr<cache::Snapshot> snapshot;     // while it is being sent
  absl::Time next_piece = absl::InfinitePast();
  // By the machine's clock: when it last took or acknowledged a piece of its snapshot.
  absl::Time progressed = absl::InfinitePast();
  int64_t progressed_to = 0;  // the version that it acknowledged by then
  v1beta1::ConfigureRequest configured;
  InstanceState state = InstanceState::kWaiting;
  std::string why;
  // For people; empty: none. Of its last probe, about the plugins that it has, and of its last
  // configuration.
  std::string probe_warning, info_warning, config_warning;
  absl::Time since;
  // While it serves: calls without a usable answer, and their weight for a rollback.
  int64_t bad_calls = 0;
  int64_t failures = 0;
  bool is_broken = false;  // an answer was unusable
  std::string last_failure;
  ShadowReport shadow;
  // In the shadow: what it would do if it served, by profile.
  std::map<std::string, framework::HostProfile> shares;
  std::optional<ShadowCycle> shadow_cycle;   // to be answered
  std::unique_ptr<ShadowCycleRunner> chain;  // asks it, if not in one message
  absl::Time shadow_deadline;                // of the one message

  const std::string& id() const { return identity.instance(); }
  // All its warnings.
  std::string warning() const;
  // For logs: the instance and its build.
  std::string text() const;
  // Identifies the build for a quarantine.
  const std::string& build_key() const {
    return identity.build_digest().empty() ? identity.instance() : identity.build_digest();
  }
  bool unproven() const { return acceptance == Acceptance::kAwaited && !approved; }
  bool is_fused() const;
  // The client for the scheduler.
  framework::HostClient* client(const cache::ClusterState* cluster);
  // Null if it keeps a cluster cache.
  InlineHost* Inline(const cache::ClusterState* cluster);
  // Whether it can get the serving instance's next questions.
  bool awaits_shadow_cycle() const {
    return state == InstanceState::kShadow && !shadow_cycle.has_value() && ready();
  }
  bool ready() const {
    return grpc_client != nullptr && grpc_client->usable() &&
           (state == InstanceState::kSyncing || state == InstanceState::kShadow ||
            state == InstanceState::kServing || state == InstanceState::kStandby);
  }
};

// One host, as the registry keeps it.
struct HostInstances {
  std::vector<std::unique_ptr<Instance>> instances;
  Instance* serving = nullptr;
  // Of the serving instance, the last serving instance, or the first that answered.
  std::optional<v1beta1::GetHostInfoResponse> info;
  Quarantine quarantined;  // by build key
  Pauses pauses;
  std::vector<std::string> replaced;  // addresses of replaced instances, whose sessions ended
  int recalls = 0;                    // how often some of these were called again

  // The addresses of replaced instances that are to be called again, each for another session.
  template <typename Wanted>
  std::vector<std::string> TakeReplaced(const Wanted& wanted) {
    std::vector<std::string> taken;
    std::erase_if(replaced, [&](const std::string& address) {
      if (!wanted(address)) return false;
      taken.push_back(address);
      return true;
    });
    if (!taken.empty()) ++recalls;
    return taken;
  }

  // The newest ready instance except `but`, of those that are not unproven, if any; null: none.
  Instance* NewestReady(const Instance* but) const {
    return NewestOf([but](const Instance& instance) { return &instance != but; });
  }
  // The newest ready instance of another build than the serving one; null: none.
  Instance* NewestOfAnotherBuild() const {
    return NewestOf([this](const Instance& instance) {
      return serving == nullptr || instance.build_key() != serving->build_key();
    });
  }

 private:
  template <typename Wanted>
  Instance* NewestOf(const Wanted& wanted) const {
    Instance* newest = nullptr;
    for (const auto& instance : instances) {
      if (!instance->ready() || !wanted(*instance)) continue;
      if (newest == nullptr || (newest->unproven() && !instance->unproven()) ||
          (newest->unproven() == instance->unproven() && instance->started > newest->started))
        newest = instance.get();
    }
    return newest;
  }
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_INSTANCE_H_
