// Single calls and the Sync stream, blocking.
#ifndef OUTBOARD_CLI_CONFORMANCE_CALLS_H_
#define OUTBOARD_CLI_CONFORMANCE_CALLS_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/conformance/rules.h"
#include "outboard/handshake/v1/handshake.grpc.pb.h"
#include "outboard/v1beta1/bind.grpc.pb.h"
#include "outboard/v1beta1/call.pb.h"
#include "outboard/v1beta1/cluster_state.grpc.pb.h"
#include "outboard/v1beta1/filter.grpc.pb.h"
#include "outboard/v1beta1/group.grpc.pb.h"
#include "outboard/v1beta1/permit.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "outboard/v1beta1/post_bind.grpc.pb.h"
#include "outboard/v1beta1/post_filter.grpc.pb.h"
#include "outboard/v1beta1/pre_bind.grpc.pb.h"
#include "outboard/v1beta1/pre_enqueue.grpc.pb.h"
#include "outboard/v1beta1/queue_sort.grpc.pb.h"
#include "outboard/v1beta1/reserve.grpc.pb.h"
#include "outboard/v1beta1/score.grpc.pb.h"

namespace outboard::conformance {

using Channel = std::shared_ptr<grpc::Channel>;

// For a busy host.
inline constexpr absl::Duration kCallDeadline = absl::Seconds(5);

// The method of a request type.
template <typename Request>
struct Rpc;
#define OUTBOARD_CONFORMANCE_RPC_OF(Namespace, Package, Service, Method)                      \
  template <>                                                                                 \
  struct Rpc<Namespace::Method##Request> {                                                    \
    using Response = Namespace::Method##Response;                                             \
    static constexpr char kName[] = #Method;                                                  \
    static constexpr char kPath[] = "/outboard." Package "." #Service "/" #Method;            \
    static grpc::Status Call(const Channel& channel, grpc::ClientContext* context,            \
                             const Namespace::Method##Request& request, Response* response) { \
      return Namespace::Service::NewStub(channel)->Method(context, request, response);        \
    }                                                                                         \
  };
#define OUTBOARD_CONFORMANCE_RPC(Service, Method) \
  OUTBOARD_CONFORMANCE_RPC_OF(v1beta1, "v1beta1", Service, Method)
OUTBOARD_CONFORMANCE_RPC_OF(handshake::v1, "handshake.v1", HandshakeService, Handshake)
OUTBOARD_CONFORMANCE_RPC(PluginHostService, GetHostInfo)
OUTBOARD_CONFORMANCE_RPC(PluginHostService, Configure)
OUTBOARD_CONFORMANCE_RPC(PluginHostService, Probe)
OUTBOARD_CONFORMANCE_RPC(PluginHostService, EndSession)
OUTBOARD_CONFORMANCE_RPC(QueueSortService, SortKeys)
OUTBOARD_CONFORMANCE_RPC(PreEnqueueService, PreEnqueue)
OUTBOARD_CONFORMANCE_RPC(PreFilterService, PreFilter)
OUTBOARD_CONFORMANCE_RPC(FilterService, Filter)
OUTBOARD_CONFORMANCE_RPC(PostFilterService, PostFilter)
OUTBOARD_CONFORMANCE_RPC(PreScoreService, PreScore)
OUTBOARD_CONFORMANCE_RPC(ScoreService, Score)
OUTBOARD_CONFORMANCE_RPC(GroupService, GeneratePlacements)
OUTBOARD_CONFORMANCE_RPC(GroupService, ScorePlacements)
OUTBOARD_CONFORMANCE_RPC(ReserveService, Reserve)
OUTBOARD_CONFORMANCE_RPC(ReserveService, Unreserve)
OUTBOARD_CONFORMANCE_RPC(PermitService, Permit)
OUTBOARD_CONFORMANCE_RPC(PreBindService, PreBind)
OUTBOARD_CONFORMANCE_RPC(BindService, Bind)
OUTBOARD_CONFORMANCE_RPC(PostBindService, PostBind)
#undef OUTBOARD_CONFORMANCE_RPC
#undef OUTBOARD_CONFORMANCE_RPC_OF

template <typename Response>
struct Answer {
  Response message;
  grpc::Status status;
  absl::Duration took;
  const char* method = "";
};

template <typename Request>
Answer<typename Rpc<Request>::Response> Call(const Channel& channel, const Request& request,
                                             absl::Duration deadline = kCallDeadline) {
  Answer<typename Rpc<Request>::Response> answer;
  answer.method = Rpc<Request>::kName;
  grpc::ClientContext context;
  const absl::Time began = absl::Now();
  context.set_deadline(absl::ToChronoTime(began + deadline));
  answer.status = Rpc<Request>::Call(channel, &context, request, &answer.message);
  answer.took = absl::Now() - began;
  return answer;
}

// Sends bytes that need not be a valid message. Any answer is allowed, but the host must answer.
// Returns the status.
grpc::Status CallRaw(const Channel& channel, const std::string& path, const std::string& bytes,
                     absl::Duration deadline);

// The first problem that refuses the configuration; null: it is in force.
const v1beta1::ConfigProblem* FirstError(const v1beta1::ConfigureResponse& response);

// "FAILED_PRECONDITION/STALE: the cache is at 3".
std::string Describe(const grpc::Status& status);
// Errors: names the method and its error.
absl::Status ExpectOk(const char* method, const grpc::Status& status);
// The error must be one of these, in the form of call.proto; `rule` says why.
absl::Status ExpectError(const char* method, const grpc::Status& status,
                         std::initializer_list<v1beta1::CallError::Reason> reasons,
                         const Rule& rule);
// The same for an error in a message.
absl::Status ExpectErrorMessage(const char* method, const v1beta1::CallError& error,
                                std::initializer_list<v1beta1::CallError::Reason> reasons,
                                const Rule& rule);
template <typename Response>
absl::Status ExpectOk(const Answer<Response>& answer) {
  return ExpectOk(answer.method, answer.status);
}
template <typename Response>
absl::Status ExpectError(const Answer<Response>& answer,
                         std::initializer_list<v1beta1::CallError::Reason> reasons,
                         const Rule& rule) {
  return ExpectError(answer.method, answer.status, reasons, rule);
}

// One Sync stream. A thread receives the host's messages.
//
// Threading: thread-compatible, except for that thread.
// Lifetime: the destructor cancels the stream.
class SyncStream {
 public:
  explicit SyncStream(const Channel& channel);
  ~SyncStream();
  SyncStream(const SyncStream&) = delete;
  SyncStream& operator=(const SyncStream&) = delete;

  // No effect after the stream's end; Await reports it.
  void Send(const v1beta1::SyncRequest& request);
  // Closes the client's side; the host then ends the stream.
  void CloseSending();
  // All messages so far, with acknowledgements.
  std::vector<v1beta1::SyncResponse> received() const;
  // The highest acknowledged version.
  int64_t acknowledged() const;
  // Waits until `condition` holds for the received messages. False: timeout, or the stream ended
  // before.
  bool Await(const std::function<bool(const std::vector<v1beta1::SyncResponse>&)>& condition,
             absl::Duration timeout);
  bool AwaitAck(int64_t version, absl::Duration timeout);
  // Waits for the end. False: timeout.
  bool AwaitEnd(absl::Duration timeout, grpc::Status* status);

 private:
  void Receive();

  grpc::ClientContext context_;
  std::unique_ptr<v1beta1::ClusterStateService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1beta1::SyncRequest, v1beta1::SyncResponse>> stream_;
  bool sending_ = true;
  mutable absl::Mutex mu_;
  std::vector<v1beta1::SyncResponse> received_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mu_);
  std::thread receiver_;
};

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_CALLS_H_
