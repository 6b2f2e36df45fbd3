// Makes a Service lead to the leader alone: its EndpointSlices name this process's pod.
#ifndef OUTBOARD_SHIM_LEADER_LEADER_ENDPOINTS_H_
#define OUTBOARD_SHIM_LEADER_LEADER_ENDPOINTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/kube/api_client.h"
#include "shim/kube/cancel_token.h"

namespace outboard::leader {

struct PodAddress {
  std::string ip;
  bool is_ipv6 = false;

  friend bool operator==(const PodAddress&, const PodAddress&) = default;
};

// The first address of each family among `pod_ips` (as in status.podIPs, separated by commas) at
// which a server that listens on `host` answers: "0.0.0.0" answers at IPv4 addresses only, "::" at
// all, another host only at itself. Pure.
// Errors: INVALID_ARGUMENT if an address is malformed or loopback, or if none is left.
absl::StatusOr<std::vector<PodAddress>> ServedAddresses(absl::string_view pod_ips,
                                                        absl::string_view host);

struct LeaderEndpointsOptions {
  std::string service_namespace;
  // Without a selector; otherwise Kubernetes' controller writes slices of its own.
  std::string service;
  // The name of the Service's port.
  std::string port_name;
  int port = 0;  // of the pod
  std::vector<PodAddress> addresses;
  // Whether this process still leads, and its epoch (LeaseElector::epoch). Called on this object's
  // thread and on the client's.
  std::function<bool()> leads;
  std::function<int64_t()> epoch;
  // How often a leader reads its slices, and restores those that were changed or deleted.
  absl::Duration check_period = absl::Seconds(10);
  absl::Duration retry_period = absl::Milliseconds(500);
  // Of one request.
  absl::Duration timeout = absl::Seconds(2);
};

// One EndpointSlice for each of the pod's addresses: SERVICE-ipv4 and SERVICE-ipv6, because a slice
// has addresses of one family. Nothing is deleted when leadership ends: until the next leader has
// written, clients reach a process that answers that it does not lead, or none.
//
// A former leader cannot undo the next one's write, however late its request is executed:
// - an update names the resource version that it was made from;
// - a slice with a greater epoch (annotation outboard.dev/leader-epoch) is left as it is.
//
// Threading: Begin from any thread, once, and not after Stop; Stop from one thread.
// Lifetime: the client and what `options` uses outlive this object. The destructor stops.
// Errors: failed requests are logged once for each cause, and retried while this process leads.
class LeaderEndpoints {
 public:
  LeaderEndpoints(kube::ApiClient* client, LeaderEndpointsOptions options);
  ~LeaderEndpoints();
  LeaderEndpoints(const LeaderEndpoints&) = delete;
  LeaderEndpoints& operator=(const LeaderEndpoints&) = delete;

  // This process leads from now on.
  void Begin();
  void Stop();

 private:
  void Run();
  // Makes one slice name this process. ABORTED: it changed meanwhile; FAILED_PRECONDITION: a later
  // leader has written it, or this process no longer leads.
  absl::Status Write(const PodAddress& address);
  absl::StatusOr<std::string> Send(kube::Method method, const std::string& path, std::string body);

  kube::ApiClient* const client_;
  const LeaderEndpointsOptions options_;
  kube::CancelToken cancel_;
  std::thread thread_;
};

}  // namespace outboard::leader

#endif  // OUTBOARD_SHIM_LEADER_LEADER_ENDPOINTS_H_
