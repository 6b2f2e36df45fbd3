// An in-memory Kubernetes API over plain HTTP/1.1, with injected faults.
#ifndef OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_SERVER_H_
#define OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "shim/kube/client_config.h"
#include "shim/kube/testing/http_listener.h"

namespace outboard::kube::testing {

// A fault for requests of `method` (empty: any) whose path and query contain `path_part`.
struct Fault {
  std::string method;
  std::string path_part;
  int times = 1;
  // Delay before the request is executed.
  absl::Duration delay = absl::ZeroDuration();
  // Answer with this instead of executing the request; `body` as plain text, Retry-After if
  // positive.
  int http_status = 0;
  std::string body = "Too many requests, please try again later.";
  int retry_after_seconds = 0;
  // Close the connection without executing the request.
  bool drop_request = false;
  // Execute the request and close the connection without an answer.
  bool drop_answer = false;
  // Close the connection after this many bytes of the answer.
  std::optional<size_t> cut_after;
  // For a watch: answer 200, then send an ERROR event with this code instead of events.
  int event_status = 0;
};

struct RequestLog {
  std::string method;
  std::string path;
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;
  std::string body;
};

// Supports pods (with binding and status), nodes, namespaces, the kinds of object_kinds.h, leases
// and events: get, list (limit and continue, the shim's selectors), watch (resume,
// WatchList, bookmarks, timeoutSeconds), create, update and patch with resourceVersion checks,
// delete; protobuf if requested and supported. Bindings are checked like in the real server: UID,
// nodeName, deletion.
//
// Threading: thread-safe.
// Lifetime: the destructor ends all requests.
// Errors: as HTTP answers.
class FakeApiServer {
 public:
  FakeApiServer();
  ~FakeApiServer();

  std::string url() const;
  // The configuration for a client of this server.
  ClientConfig Config() const;

  // Creates or replaces an object. Fills in missing uid, resourceVersion and creationTimestamp.
  // `resource` is as in paths: "pods", "leases", …. Returns the resource version.
  std::string Put(const std::string& resource, nlohmann::json object);
  bool Delete(const std::string& resource, const std::string& key);
  // `key` is "namespace/name", or "name" for nodes and namespaces. Null if absent.
  nlohmann::json Get(const std::string& resource, const std::string& key) const;
  std::vector<nlohmann::json> All(const std::string& resource) const;

  void Inject(Fault fault);
  void ClearFaults();
  // Drops the history: watches from earlier versions get 410.
  void Compact();
  // Sends a bookmark on every watch.
  void SendBookmarks();
  // Continues from an older version with the current state, like after a restored backup.
  void Rewind(int64_t resource_version);
  // Ends all connections.
  void CloseConnections() { listener_->CloseConnections(); }
  // If false: sendInitialEvents is answered with 422, protobuf requests with JSON, and the end mark
  // of initial events is missing.
  void SetWatchListSupported(bool supported);
  void SetProtobufSupported(bool supported);
  void SetInitialEventsEnd(bool sent);

  std::vector<RequestLog> Requests() const;
  // The number of requests of `method` (empty: any) with `path_part` in path or query.
  int Count(const std::string& method, const std::string& path_part) const;
  // Waits until Count reaches `count`; false after `timeout`.
  bool AwaitCount(const std::string& method, const std::string& path_part, int count,
                  absl::Duration timeout = absl::Seconds(20)) const;
  int64_t version() const;

 private:
  struct Event {
    int64_t version;
    std::string type;
    std::string resource;
    nlohmann::json object;
    nlohmann::json old;  // null for ADDED
  };
  struct Target {
    std::string resource;
    std::string object_namespace;
    std::string name;
    std::string subresource;
    std::string key() const {
      return object_namespace.empty() ? name : object_namespace + "/" + name;
    }
  };
  struct Answer {
    int status = 200;
    nlohmann::json body;
    std::map<std::string, std::string> headers;
  };

  void Handle(const HttpRequest& request, HttpConnection& connection);
  std::optional<Fault> TakeFault(const HttpRequest& request);
  void Send(const Answer& answer, const HttpRequest& request, const Target& target,
            HttpConnection& connection);
  Answer Execute(const HttpRequest& request, const Target& target);
  Answer List(const HttpRequest& request, const Target& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer Create(const HttpRequest& request, const Target& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer Bind(const HttpRequest& request, const Target& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer Change(const HttpRequest& request, const Target& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Watch(const HttpRequest& request, const Target& target, const std::optional<Fault>& fault,
             HttpConnection& connection);
  std::string Store(const std::string& resource, nlohmann::json object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Remove(const std::string& resource, const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WantsProtobuf(const HttpRequest& request, const std::string& resource) const;
  static std::optional<Target> ParsePath(const std::string& path);
  static Answer Error(int code, const std::string& reason, const std::string& message);

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 100;
  int64_t compacted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_uid_ ABSL_GUARDED_BY(mutex_) = 1;
  int bookmarks_ ABSL_GUARDED_BY(mutex_) = 0;
  bool watch_list_ ABSL_GUARDED_BY(mutex_) = true;
  bool protobuf_ ABSL_GUARDED_BY(mutex_) = true;
  bool initial_end_ ABSL_GUARDED_BY(mutex_) = true;
  std::map<std::string, std::map<std::string, nlohmann::json>> objects_ ABSL_GUARDED_BY(mutex_);
  std::vector<Event> history_ ABSL_GUARDED_BY(mutex_);
  std::vector<Fault> faults_ ABSL_GUARDED_BY(mutex_);
  std::vector<RequestLog> log_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<HttpListener> listener_;
};

}  // namespace outboard::kube::testing

#endif  // OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_SERVER_H_
