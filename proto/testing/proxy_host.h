// A host that forwards everything to another host, and lets a test change the messages.
#ifndef OUTBOARD_PROTO_TESTING_PROXY_HOST_H_
#define OUTBOARD_PROTO_TESTING_PROXY_HOST_H_

#include <google/protobuf/message.h>
#include <grpcpp/channel.h>
#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "outboard/v1beta1/cluster_state.pb.h"

namespace outboard::testing {

// A test's changes. Called concurrently on gRPC's threads.
struct ProxyHooks {
  // A request of any kind, before forwarding. A status that is not OK is returned instead of an
  // answer; it ends a stream.
  std::function<grpc::Status(google::protobuf::Message* request)> on_request;
  // The answer before it is returned, with the request as forwarded; on a Cycle or Plan stream the
  // status is always OK.
  std::function<void(const google::protobuf::Message& request, google::protobuf::Message* response,
                     grpc::Status* status)>
      on_answer;
  // A push of the other host on a Sync stream; false: drop it.
  std::function<bool(v1beta1::SyncResponse* push)> on_push;
};

// Serves every service of the contract on behalf of the host behind `upstream`.
//
// Threading: thread-safe.
// Lifetime: the destructor stops the server.
// Errors: Start returns null if it cannot listen on the address; if the other host is gone, calls
// fail with gRPC's status.
class ProxyHost {
 public:
  static std::unique_ptr<ProxyHost> Start(const std::string& address,
                                          std::shared_ptr<grpc::Channel> upstream,
                                          ProxyHooks hooks);
  ~ProxyHost();

  const std::string& address() const { return address_; }
  // Sends a push on every open Sync stream.
  void Push(const v1beta1::SyncResponse& push);
  // Stops soon, like a crash; hooks may call it. The address is not reachable afterwards.
  void Die();

 private:
  class Services;
  class Pushed;
  template <typename Service, typename Request, typename Response>
  class Forwarded;

  ProxyHost(std::shared_ptr<grpc::Channel> upstream, ProxyHooks hooks);

  const std::shared_ptr<grpc::Channel> upstream_;
  const ProxyHooks hooks_;
  std::string address_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mu_;
  bool dying_ ABSL_GUARDED_BY(mu_) = false;
  std::set<Pushed*> streams_ ABSL_GUARDED_BY(mu_);
  std::thread end_;  // waits for Die
};

}  // namespace outboard::testing

#endif  // OUTBOARD_PROTO_TESTING_PROXY_HOST_H_
