// A small HTTP/1.1 server for tests that control every byte: it can cut an answer anywhere.
#ifndef OUTBOARD_SHIM_KUBE_TESTING_HTTP_LISTENER_H_
#define OUTBOARD_SHIM_KUBE_TESTING_HTTP_LISTENER_H_

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace outboard::kube::testing {

struct HttpRequest {
  std::string method;
  std::string path;  // without the query
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// The connection of one request, for the answer.
class HttpConnection {
 public:
  explicit HttpConnection(int fd) : fd_(fd) {}

  // False once the client is gone or the answer was cut.
  bool Write(absl::string_view bytes);
  // Sends a whole answer.
  bool Respond(int status, absl::string_view content_type, absl::string_view body,
               const std::map<std::string, std::string>& headers = {});
  // A chunked answer: start, chunks, end.
  bool BeginChunks(int status, absl::string_view content_type);
  bool WriteChunk(absl::string_view data);
  bool EndChunks();

  // Closes the connection after `bytes` more bytes of the answer.
  void CutAfter(size_t bytes) { left_ = bytes; }
  void Drop() { CutAfter(0); }
  bool cut() const { return cut_; }
  // Whether the client has closed its end.
  bool peer_closed() const;

 private:
  const int fd_;
  size_t left_ = SIZE_MAX;
  bool cut_ = false;
};

// Threading: the handler runs on one thread per connection.
// Lifetime: Stop (or the destructor) closes all connections and waits for the handlers, which must
// end when Write fails or stopping() is true.
// Errors: port() == 0 if no port could be bound.
class HttpListener {
 public:
  using Handler = std::function<void(const HttpRequest&, HttpConnection&)>;

  explicit HttpListener(Handler handler);
  ~HttpListener() { Stop(); }

  void Stop();
  int port() const { return port_; }
  // Closes every connection, like a server restart.
  void CloseConnections();

 private:
  void Accept();
  void Serve(int fd);

  const Handler handler_;
  int listen_fd_ = -1;
  int port_ = 0;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<int> open_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace outboard::kube::testing

#endif  // OUTBOARD_SHIM_KUBE_TESTING_HTTP_LISTENER_H_
