// A host that passes everything on to another one, and lets a test change what goes through.
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
#include "proto/outboard/v1alpha1/cluster_state.pb.h"

namespace outboard::testing {

// What a test changes. Called on gRPC's threads, several at once.
struct ProxyHooks {
  // A request of any kind, before it is passed on. A status that is not OK is the answer instead;
  // on a stream it is the stream's end.
  std::function<grpc::Status(google::protobuf::Message* request)> on_request;
  // The answer before it is passed back, with the request as it was passed on; on a Cycle stream
  // the status is OK and stays so.
  std::function<void(const google::protobuf::Message& request, google::protobuf::Message* response,
                     grpc::Status* status)>
      on_answer;
  // What the other host pushes on a Sync stream; false: it is kept back.
  std::function<bool(v1alpha1::SyncResponse* push)> on_push;
};

// Serves every service of the contract in the name of the host behind `upstream`.
//
// Threading: thread-safe. Lifetime: the destructor stops the server. Errors: Start returns null if
// the address cannot be listened on; if the other host is gone, calls fail with what gRPC says.
class ProxyHost {
 public:
  static std::unique_ptr<ProxyHost> Start(const std::string& address,
                                          std::shared_ptr<grpc::Channel> upstream,
                                          ProxyHooks hooks);
  ~ProxyHost();

  const std::string& address() const { return address_; }
  // Sends a push on every Sync stream that is open.
  void Push(const v1alpha1::SyncResponse& push);
  // Stops as a death would, soon; also from hooks. Nobody reaches the address any more.
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
