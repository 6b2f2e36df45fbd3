// The hosts of the configuration, and the instance that stands for each of them now.
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
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/cycle/scheduler.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/plans.h"

namespace outboard::hosts {

// Takes instances that have answered the handshake through Configure and Sync, and gives them to
// the scheduler when they are ready.
//
//   handshake → configured → syncing → in use → lost, and from the start again
//
// Threading: scheduling thread. Lifetime: config, loop and scheduler outlive it.
// Errors:    OnHandshake returns what is wrong with the configuration (INVALID_ARGUMENT) or with
// the host (others); nothing has changed then.
class HostSet {
 public:
  HostSet(const config::Config* config, std::string session_id, HostLoop* loop,
          cycle::Scheduler* scheduler);
  ~HostSet();

  // Called when a host is lost, or wants a new session: somebody has to do the handshake again.
  void SetOnLost(std::function<void(const std::string& name)> on_lost) {
    on_lost_ = std::move(on_lost);
  }

  // An instance answered. Once every configured host has, profiles are resolved, hosts configured
  // and sent their snapshots.
  absl::Status OnHandshake(const std::string& name, std::shared_ptr<grpc::Channel> channel,
                           v1alpha1::GetHostInfoResponse info, absl::Time now);
  // A probe says that the host is about to go.
  void OnDraining(const std::string& name);
  // Notices hosts that have become ready, or were lost.
  void Tick(absl::Time now);

  // A host that has an instance, and how far that has followed the cluster.
  struct Progress {
    std::string name, instance;
    bool usable = false;
    int64_t sent_version = 0;
    int64_t acknowledged_version = 0;
  };
  std::vector<Progress> progress() const;

  // True once every host that serves a profile is in use.
  bool AllReady() const;
  // Null until all hosts have answered once.
  const Plans* plans() const { return plans_.has_value() ? &*plans_ : nullptr; }

 private:
  struct Host {
    std::shared_ptr<grpc::Channel> channel;
    v1alpha1::GetHostInfoResponse info;
    std::unique_ptr<GrpcHostClient> client;
    cycle::ClusterState::Cursor cursor = 0;
    bool in_use = false;
  };

  absl::Status Begin(const std::string& name, Host* host, absl::Time now);
  void Drop(const std::string& name, Host* host, absl::Time now);

  const config::Config* const config_;
  const std::string session_id_;
  HostLoop* const loop_;
  cycle::Scheduler* const scheduler_;
  std::function<void(const std::string&)> on_lost_;
  std::map<std::string, Host> hosts_;
  HostInfos infos_;
  std::optional<Plans> plans_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_SET_H_
