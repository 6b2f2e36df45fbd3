// Queries one Prometheus server over libcurl.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_CLIENT_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_CLIENT_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::prometheus {

struct ServerOptions {
  std::string address;            // http:// or https://, with an optional path.
  std::string bearer_token_file;  // Read before each request; empty: no token.
  std::string ca_file;            // Empty: the system's authorities.
  absl::Duration timeout = absl::Seconds(5);

  friend bool operator==(const ServerOptions&, const ServerOptions&) = default;
};

// Why a query failed; also the values of a metric's label.
enum class Failure { kNone, kUnreachable, kTimeout, kStatus, kTooLarge, kToken, kStopped };

struct Answer {
  Failure failure = Failure::kNone;
  std::string detail;  // The failure, for people.
  std::string body;
};

// Threading: Query on one thread; Stop on any thread.
// Lifetime: Stop cancels a running Query, and every later one.
// Errors: in the answer. Certificates are verified; redirects are not followed.
class Client {
 public:
  // Ten times the answer of a cluster with some ten thousand nodes.
  static constexpr size_t kMaxAnswerBytes = size_t{64} << 20;

  explicit Client(ServerOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // An instant query; takes at most `options.timeout`. A status other than 200 is a failure, unless
  // the body is Prometheus' JSON. `lookback`: the server ignores samples that are older; zero: the
  // server's limit, usually 5 minutes. Servers that do not know the parameter use their own limit.
  Answer Query(absl::string_view expression, absl::Duration lookback = absl::ZeroDuration());
  void Stop();

 private:
  struct Transfer;
  const ServerOptions options_;
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_CLIENT_H_
