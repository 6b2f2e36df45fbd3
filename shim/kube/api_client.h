// The interface between Outboard and a Kubernetes API server: unary requests that end in a
// callback, and streams for watches.
//
// Callers see only a path, a body and a status. An answer with any HTTP status is an `ApiResponse`.
// An absl::Status other than OK means that no answer arrived; `DeliveryOf` then says whether the
// server may have acted on the request.
#ifndef OUTBOARD_SHIM_KUBE_API_CLIENT_H_
#define OUTBOARD_SHIM_KUBE_API_CLIENT_H_

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/kube/cancel_token.h"

namespace outboard::kube {

enum class Method { kGet, kPost, kPut, kPatch, kDelete };
absl::string_view MethodName(Method method);

inline constexpr absl::string_view kJson = "application/json";
inline constexpr absl::string_view kStrategicMergePatch = "application/strategic-merge-patch+json";
inline constexpr absl::string_view kMergePatch = "application/merge-patch+json";
inline constexpr absl::string_view kProtobuf = "application/vnd.kubernetes.protobuf";
// The Accept header of writes that need only the object's metadata. Encoding a whole pod as JSON
// costs the API server more than some writes.
inline constexpr absl::string_view kMetadataOnly =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
    "application/vnd.kubernetes.protobuf,application/json";

struct ApiRequest {
  Method method = Method::kGet;
  // Path and query, percent-encoded, starting with '/'.
  std::string path;
  // Media type of `body`; ignored when the body is empty.
  std::string content_type = std::string(kJson);
  std::string accept = std::string(kJson);
  std::string body;
  // Maximum duration of one attempt, from start on the connection to the last byte of the answer.
  // Waiting for the rate limit or for a free slot is not counted.
  absl::Duration timeout = absl::Seconds(30);
  // Whether the request takes a token of the configured QPS and burst.
  bool rate_limited = true;
  // Whether the client itself retries: after 429 and 5xx answers with Retry-After (as client-go
  // does) and, for GET, after a lost connection. Turned off by callers with their own retry loop.
  bool retry = true;
  // Requests a compressed answer. Never set it on a watch.
  bool accept_gzip = false;
  // Answers larger than this end the request with RESOURCE_EXHAUSTED.
  size_t max_response_bytes = size_t{512} << 20;
  // Called on the client's thread immediately before every send, including retries. Any status
  // except OK ends the request with that status, marked as not sent. A bind checks its lease fence
  // here.
  absl::AnyInvocable<absl::Status()> before_send;
  // When the exchange must have ended, on the clock of SteadyNow; may be unset. Called on the
  // client's thread after before_send, and again at that time, which a renewed lease puts off. If
  // the time has come, the connection is reset, with all requests on it: what still waits in this
  // machine's send buffer is discarded and does not take effect later.
  absl::AnyInvocable<absl::Time()> ends_by;
};

struct ApiResponse {
  int http_status = 0;
  // As sent by the server, with parameters. Decode by this, not by the requested type.
  std::string content_type;
  std::string body;
  // Zero: none given.
  absl::Duration retry_after = absl::ZeroDuration();

  bool ok() const { return http_status >= 200 && http_status < 300; }
};

// Whether a request that ended without an answer may have had an effect.
enum class Delivery {
  // No byte left this process: the request had no effect.
  kNotSent,
  // The server may have executed it. A bind is then settled by a consistent GET.
  kUnknown,
};

// Reads the mark from a status of an ApiClient. A status without a mark is kUnknown, the safe
// answer.
Delivery DeliveryOf(const absl::Status& status);
absl::Status WithDelivery(absl::Status status, Delivery delivery);

// Whether a request's path leads where it says. A segment that is empty, "." or ".." (also encoded)
// leads elsewhere: such a path was built from a name that is not one. The client does not send it.
// Errors: INVALID_ARGUMENT.
absl::Status CheckRequestPath(absl::string_view path);

// Converts an answer with a status outside 200..299 to an absl::Status, with the message of the
// Kubernetes Status in the body (JSON or protobuf), if any: 401 UNAUTHENTICATED, 403
// PERMISSION_DENIED, 404 NOT_FOUND, 409 ABORTED (or ALREADY_EXISTS by its reason), 410
// OUT_OF_RANGE, 400/415/422 INVALID_ARGUMENT, 429 RESOURCE_EXHAUSTED, 500 INTERNAL, 503
// UNAVAILABLE, 504 DEADLINE_EXCEEDED, others UNKNOWN. OK if the answer is ok(). For writes: 5xx
// answers may follow a commit.
absl::Status ToStatus(const ApiResponse& response);

// Receives the bytes of a stream, on the thread that called ApiClient::Stream.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  // Called once, before any data. A status other than OK ends the stream with it.
  virtual absl::Status OnHeaders(int http_status, absl::string_view content_type,
                                 absl::Duration retry_after) = 0;
  // Called with bytes as they arrive, split anywhere. A status other than OK ends the stream with
  // it.
  virtual absl::Status OnData(absl::string_view data) = 0;
  // The stream ends with DEADLINE_EXCEEDED at this time unless data arrives first. Called again
  // after each piece of data.
  virtual absl::Time SilenceDeadline() { return absl::InfiniteFuture(); }
};

// A connection to one API server with one identity.
//
// Two traps for callers that write:
// - A 409 may be caused by our own earlier attempt (a retried POST whose first answer was lost). A
//   bind that gets 409 reads the pod before it concludes anything.
// - A 5xx may follow a commit.
//
// Threading: all methods may be called from any thread. `done` runs on the client's own thread: it
// must not block or call `Call`; it may call `Start`.
// Lifetime: the destructor ends requests in flight with CANCELLED before it returns; each `done` is
// called exactly once. Streams must have ended before.
// Errors: transport only; see ApiResponse and DeliveryOf.
class ApiClient {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ApiResponse>)>;

  virtual ~ApiClient() = default;

  // Queues a request and returns at once.
  virtual void Start(ApiRequest request, Done done) = 0;

  // Starts a request and waits for its end. Not on the client's thread.
  virtual absl::StatusOr<ApiResponse> Call(ApiRequest request);

  // Runs a watch on the calling thread until the server ends it (OK), the sink ends it (the sink's
  // status), the connection fails or `cancel` is triggered (CANCELLED). Uses its own connection,
  // without rate limit, compression or total time limit: `timeout` bounds only connecting and the
  // wait for headers. `method` must be kGet and `body` empty.
  virtual absl::Status Stream(const ApiRequest& request, StreamSink& sink,
                              const CancelToken& cancel) = 0;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_API_CLIENT_H_
