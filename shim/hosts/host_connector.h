// Knocks at the hosts' doors: handshakes and probes, off the scheduling thread.
#ifndef OUTBOARD_SHIM_HOSTS_HOST_CONNECTOR_H_
#define OUTBOARD_SHIM_HOSTS_HOST_CONNECTOR_H_

#include <grpcpp/channel.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"
#include "shim/config/config.h"

namespace outboard::hosts {

// Tries every host that is not connected again and again, and asks connected ones once a second how
// they are.
//
// Threading: one thread of its own, on which the callbacks run; they post to the scheduling thread.
// NeedsHandshake from any thread. Lifetime:  the thread ends with the object. Errors: a host that
// does not answer is tried again after 200 ms; logged once a change.
class HostConnector {
 public:
  struct Callbacks {
    std::function<void(std::string name, std::shared_ptr<grpc::Channel> channel,
                       v1alpha1::GetHostInfoResponse info)>
        on_handshake;
    std::function<void(std::string name)> on_draining;
  };
  HostConnector(std::vector<config::HostSpec> hosts, Callbacks callbacks);
  ~HostConnector();

  // The host's connection is gone: find whoever answers now.
  void NeedsHandshake(const std::string& name);

 private:
  struct Host {
    std::string address;
    bool connected = false;
    std::string instance;
    std::string last_error;
  };
  void Run();
  void TryHandshake(const std::string& name, const std::string& address,
                    const std::string& last_error);
  void Probe(const std::string& name, const std::string& address, const std::string& instance);

  const Callbacks callbacks_;
  absl::Mutex mu_;
  std::map<std::string, Host> hosts_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool poked_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_CONNECTOR_H_
