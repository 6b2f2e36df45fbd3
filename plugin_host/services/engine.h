// Serves every call of the contract on one thread.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_ENGINE_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_ENGINE_H_

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "plugin_host/runtime/host.h"
#include "plugin_host/runtime/metric_sink.h"
#include "plugin_host/sdk/plugin_registry.h"
#include "plugin_host/services/unix_acceptor.h"

namespace outboard::services {

// Owns the gRPC server, its completion queue, the host with all sessions, and the one thread on
// which all of them run, so that caches and plugins need no locks. The thread sleeps in the queue;
// it never spins.
//
// Threading: Start, Drain and the destructor on one thread; the engine's own thread does the rest.
// Lifetime:  the registry must outlive it. The destructor ends open calls at once.
// Errors:    Start: UNAVAILABLE if it cannot listen on the address.
class Engine {
 public:
  struct Options {
    // A Unix socket and the users who may connect (UnixAcceptor), or else an address in gRPC's
    // syntax.
    std::string socket_path;
    unsigned socket_mode = 0600;
    std::vector<int64_t> allowed_uids;
    std::string address;
    std::shared_ptr<grpc::ServerCredentials> credentials;  // of `address`
    // Over the network: how long a peer may be silent before a ping, and may take to answer it. One
    // whose machine or network vanished closes nothing, and its session would stay connected.
    absl::Duration ping_interval = absl::Seconds(10);
    absl::Duration ping_timeout = absl::Seconds(10);
    runtime::HostIdentity identity;
    runtime::MetricSink* metrics = nullptr;  // Null: none. Outlives the engine.
  };
  static absl::StatusOr<std::unique_ptr<Engine>> Start(const Options& options,
                                                       const sdk::PluginRegistry* registry);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // READY → DRAINING: rejects new attempts and waits, at most `timeout`, until none is left. True
  // if none is left. May be called again; with a zero timeout it only reports. The call Drain of a
  // peer begins the same; the process stays.
  bool Drain(absl::Duration timeout);
  // A warning for people in every Probe response; empty: none. From any thread.
  void SetWarning(std::string warning);
  // Sessions with a connected shim. From any thread.
  int connected_sessions() const;
  // The port listened on; 1 for Unix sockets.
  int port() const { return port_; }

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<UnixAcceptor> acceptor_;
  std::thread thread_;
  int port_ = 0;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_ENGINE_H_
