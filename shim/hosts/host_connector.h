// Finds hosts: sockets, handshakes and probes, off the scheduling thread.
#ifndef OUTBOARD_SHIM_HOSTS_HOST_CONNECTOR_H_
#define OUTBOARD_SHIM_HOSTS_HOST_CONNECTOR_H_

#include <grpcpp/channel.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/config/config.h"
#include "shim/hosts/endpoint.h"
#include "shim/hosts/handshake.h"
#include "shim/hosts/visit_threads.h"
#include "shim/steady_condition.h"

namespace outboard::hosts {

// Tries every endpoint that is not connected periodically, looks for new sockets in the directory,
// and probes connected hosts once a second.
//
// Threading: its own thread, and others for handshakes and probes, on which the callbacks run; they
// post to the scheduling thread. Other methods from any thread.
// Lifetime: the thread ends with the object.
// Errors: a host that does not answer is retried after 200 ms; each change of the error is logged
// once.
class HostConnector {
 public:
  struct Callbacks {
    std::function<void(Endpoint endpoint, HostConnection connection)> on_handshake;
    std::function<void(std::string host, std::string instance, v1beta1::ProbeResponse probe)>
        on_ready;
    std::function<void(std::string host, std::string instance)> on_draining;
    // No process answers there any more, or another instance does.
    std::function<void(std::string host, std::string instance)> on_gone;
    // A probe was not answered in time, like all since `silence` ago.
    std::function<void(std::string host, std::string instance, absl::Duration silence)> on_silent =
        [](const std::string&, const std::string&, absl::Duration) {};
  };
  HostConnector(const config::ShimConfig& config, Callbacks callbacks);
  ~HostConnector();

  // Call after the configuration changed.
  void SetConfig(const config::ShimConfig& config);
  // All instances that were found by their pods.
  void SetPods(std::vector<Endpoint> pods);
  // The connection to this address is gone, or it was retired and is wanted again: handshake with
  // the process that answers there now.
  void NeedsHandshake(const std::string& address);
  // The instance at this address is no longer used: ignore it unless the file is another one.
  void Retire(const std::string& address);

 private:
  // In progress at a time.
  static constexpr size_t kMaxVisits = 32;

  struct KnownEndpoint {
    Endpoint endpoint;
    bool is_configured = false;  // else found in the directory, or by its pod
    bool connected = false;
    bool retired = false;
    absl::Time answered = absl::InfinitePast();  // its last handshake
    std::string instance;
    bool speaks_old_version = false;  // so its probes go through the adapter
    std::string last_error;
    absl::Time silent_since =
        absl::InfiniteFuture();  // InfiniteFuture: the last probe was answered
  };
  void Run();
  // Adds new sockets of the directory and new pods, and removes those that are gone.
  void ScanDirectory();
  void TryHandshake(const KnownEndpoint& entry);
  void Probe(const KnownEndpoint& entry);
  // Notes that the probe that began then was answered, or was not.
  void NoteProbe(const KnownEndpoint& entry, bool answered, absl::Time began);
  std::vector<int64_t> allowed_uids() const;

  const Callbacks callbacks_;
  mutable absl::Mutex mu_;
  SteadyCondition changed_;
  config::ShimConfig config_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, KnownEndpoint> known_ ABSL_GUARDED_BY(mu_);  // by address
  std::vector<Endpoint> pods_ ABSL_GUARDED_BY(mu_);                  // see SetPods
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool poked_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::string> logged_problems_;  // already logged; of the thread
  bool reported_empty_ = false;            // the directory has no sockets; of the thread
  std::thread thread_;
  // Last: the visits in progress end before the members that they use are destroyed.
  VisitThreads visits_{kMaxVisits};
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_CONNECTOR_H_
