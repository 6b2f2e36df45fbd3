// A plugin host for tests: real gRPC, programmable answers, faults on demand.
#ifndef OUTBOARD_PROTO_TESTING_FAKE_HOST_H_
#define OUTBOARD_PROTO_TESTING_FAKE_HOST_H_

#include <google/protobuf/message.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/sync_stream.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "outboard/handshake/v1/handshake.pb.h"
#include "outboard/v1beta1/call.pb.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::testing {

// A failure of the next requests of one kind.
struct Fault {
  // Returned instead of an answer; OK: only the delay. Inside a Cycle or Plan stream a status with
  // CallError details becomes the response's error, any other ends the stream.
  grpc::Status status = grpc::Status();
  // Before the answer. Ends early when the caller cancels or the host stops.
  absl::Duration delay = absl::ZeroDuration();
  // On streams: end the stream here, with `status` or, if that is OK, without one.
  bool cut_stream = false;
  // How many requests it affects; -1: all.
  int times = 1;
  // How many requests pass before that.
  int after = 0;
};

// The gRPC status of a CallError: the code that call.proto names, with the error as details.
grpc::Status CallFailure(v1beta1::CallError::Reason reason, const std::string& message,
                         int64_t have_version = 0);

// Serves every service of the contract. By default it accepts every pod on every node: plugin
// `Fake` at every point, every node of the cache (or of the request) feasible with score 50, no
// gates, no waits, groups on any nodes; it acknowledges every version and time.
//
// Used as: Start → Answer, Inject → run the code under test → Count, Requests. The type of a
// request selects the RPC.
// Threading: thread-safe; answers run on gRPC's threads, without any lock held.
// Lifetime: the destructor stops the server.
// Errors: Start returns null if it cannot listen on the address.
class FakeHost {
 public:
  // `address` as for any host: `unix:PATH`, or 127.0.0.1:0.
  static std::unique_ptr<FakeHost> Start(
      const std::string& address, const std::string& instance = "fake-1",
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials());
  ~FakeHost();

  // Where it listens, with the assigned port.
  const std::string& address() const { return address_; }
  const std::string& instance() const { return instance_; }

  // Replaces the answer to one kind of request; null: back to the default. A Cycle stream uses the
  // answers to its parts, a Plan stream that to Cycle.
  template <typename Request, typename Response>
  void Answer(std::function<grpc::Status(const Request&, Response*)> answer) {
    absl::MutexLock lock(&mu_);
    if (!answer) {
      answers_.erase(Request::descriptor());
      return;
    }
    answers_[Request::descriptor()] = [answer = std::move(answer)](
                                          const google::protobuf::Message& request,
                                          google::protobuf::Message* response) {
      return answer(static_cast<const Request&>(request), static_cast<Response*>(response));
    };
  }
  // Queues a fault; faults of one kind occur in the order of injection.
  template <typename Request>
  void Inject(Fault fault) {
    absl::MutexLock lock(&mu_);
    faults_[Request::descriptor()].push_back(std::move(fault));
  }

  // Drops faults that have not occurred yet.
  void ClearFaults();

  template <typename Request>
  int Count() const {
    absl::MutexLock lock(&mu_);
    auto it = counts_.find(Request::descriptor());
    return it == counts_.end() ? 0 : it->second;
  }
  // The last (at most 1,000) requests of one kind, in the order of arrival.
  template <typename Request>
  std::vector<Request> Requests() const {
    absl::MutexLock lock(&mu_);
    std::vector<Request> all;
    auto it = requests_.find(Request::descriptor());
    if (it == requests_.end()) return all;
    for (const auto& request : it->second) all.push_back(static_cast<const Request&>(*request));
    return all;
  }

  // The metadata `traceparent` of these requests; "" where the call had none.
  template <typename Request>
  std::vector<std::string> TraceParents() const {
    absl::MutexLock lock(&mu_);
    auto it = trace_parents_.find(Request::descriptor());
    return it == trace_parents_.end() ? std::vector<std::string>() : it->second;
  }

  // The cache of the session that called last.
  int64_t version() const;
  std::map<uint32_t, v1beta1::Node> nodes() const;
  std::map<std::string, v1beta1::Pod> pods() const;
  // From now on the host applies versions without acknowledging them.
  void StopAcknowledging();
  // All results of pushes, of all streams.
  std::vector<v1beta1::PushResult> push_results() const;

  // Sends a push on the change stream; false if none is open. Its `push_id` is the caller's.
  bool Push(const v1beta1::SyncResponse& push);
  // Breaks every open stream.
  void CutStreams();
  // Stops the server like a crash: calls in progress fail, the address is free again. Idempotent.
  void Kill();

 private:
  class Services;
  using Type = const google::protobuf::Descriptor*;
  using AnyAnswer =
      std::function<grpc::Status(const google::protobuf::Message&, google::protobuf::Message*)>;
  using SyncStream = grpc::ServerReaderWriter<v1beta1::SyncResponse, v1beta1::SyncRequest>;

  explicit FakeHost(std::string instance);

  void Record(const google::protobuf::Message& request, const grpc::ServerContext& context)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Removes and returns the fault for this request, if any, after its delay.
  Fault TakeFault(Type type, grpc::ServerContext* context) ABSL_LOCKS_EXCLUDED(mu_);
  // The programmed answer, or the default one.
  grpc::Status Respond(const google::protobuf::Message& request,
                       google::protobuf::Message* response) ABSL_LOCKS_EXCLUDED(mu_);
  void RespondByDefault(const google::protobuf::Message& request,
                        google::protobuf::Message* response) ABSL_LOCKS_EXCLUDED(mu_);
  grpc::Status RespondToCycle(const v1beta1::CycleRequest& request,
                              v1beta1::CycleResponse* response) ABSL_LOCKS_EXCLUDED(mu_);
  void Apply(const v1beta1::SyncRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string instance_;
  std::string address_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;

  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool acknowledging_ ABSL_GUARDED_BY(mu_) = true;
  std::map<Type, AnyAnswer> answers_ ABSL_GUARDED_BY(mu_);
  std::map<Type, std::vector<Fault>> faults_ ABSL_GUARDED_BY(mu_);
  std::map<Type, int> counts_ ABSL_GUARDED_BY(mu_);
  std::map<Type, std::vector<std::unique_ptr<google::protobuf::Message>>> requests_
      ABSL_GUARDED_BY(mu_);
  std::map<Type, std::vector<std::string>> trace_parents_ ABSL_GUARDED_BY(mu_);  // of requests_
  std::set<grpc::ServerContext*> streams_ ABSL_GUARDED_BY(mu_);
  SyncStream* sync_ ABSL_GUARDED_BY(mu_) = nullptr;
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint32_t, v1beta1::Node> nodes_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, v1beta1::Pod> pods_ ABSL_GUARDED_BY(mu_);
  std::vector<v1beta1::PushResult> push_results_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outboard::testing

#endif  // OUTBOARD_PROTO_TESTING_FAKE_HOST_H_
