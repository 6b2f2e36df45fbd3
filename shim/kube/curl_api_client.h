// The ApiClient over libcurl.
#ifndef OUTBOARD_SHIM_KUBE_CURL_API_CLIENT_H_
#define OUTBOARD_SHIM_KUBE_CURL_API_CLIENT_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "shim/kube/api_client.h"
#include "shim/kube/client_config.h"
#include "shim/kube/curl_transfer.h"
#include "shim/kube/token_bucket.h"

namespace outboard::kube {

struct CurlApiClientOptions {
  std::string user_agent = "outboard-shim";
  // As in KubeSchedulerConfiguration's clientConnection: a negative qps means no limit.
  double qps = 50;
  int burst = 100;
  // Requests on the connection at once; more wait in order. More than this costs CPU and gains
  // nothing.
  int max_in_flight = 32;
  // Called on the client's thread after each attempt of a request, with status 0 where there was no
  // answer.
  std::function<void(Method, int http_status, absl::Duration)> observer;
};

// One thread drives one HTTP/2 connection with many requests in flight. Watches run on their
// callers' threads, on HTTP/1.1 connections of their own, so that a large list never stands before
// an event.
//
// What differs from client-go: 401 is tried once more when the credentials could be renewed; a
// connection on which a request timed out while nothing at all was received is given up with
// everything on it (client-go finds it by HTTP/2 pings, which libcurl has not).
//
// Threading, lifetime, errors: as ApiClient says. The lease has a client of its own: its renewals
// must not wait behind binds.
class CurlApiClient : public ApiClient {
 public:
  CurlApiClient(ClientConfig config, CurlApiClientOptions options);
  ~CurlApiClient() override;
  CurlApiClient(const CurlApiClient&) = delete;
  CurlApiClient& operator=(const CurlApiClient&) = delete;

  void Start(ApiRequest request, Done done) override;
  absl::Status Stream(const ApiRequest& request, StreamSink& sink,
                      const CancelToken& cancel) override;

 private:
  struct Pending {
    ApiRequest request;
    Done done;
    int attempts = 0;
    bool renewed_credentials = false;
  };
  using PendingPtr = std::unique_ptr<Pending>;
  struct Transfer;

  void Run();
  void TakeInbox();
  void StartReady(absl::Time now);
  void StartOne(PendingPtr pending, absl::Time now);
  // True when something ended.
  bool TakeResults();
  void Finish(Transfer* transfer, CURLcode code);
  // Whether `pending` was put back to be sent again.
  bool RetryAnswer(PendingPtr& pending, const Transfer& transfer, absl::Time now);
  bool RetryError(PendingPtr& pending, CURLcode code, absl::Time now);
  void GiveUpConnection();
  void Release(Transfer* transfer);
  void AbortAll();
  void Wait();
  void Wake();

  static size_t OnHeader(char* data, size_t size, size_t count, void* user);
  static size_t OnBody(char* data, size_t size, size_t count, void* user);

  const CurlApiClientOptions options_;
  const ClientConfig config_;
  const int wake_fd_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<PendingPtr> inbox_ ABSL_GUARDED_BY(mutex_);

  // Only the thread touches what follows.
  CurlSetup setup_;
  TokenBucket bucket_;
  CURLM* multi_ = nullptr;
  std::deque<PendingPtr> limited_;
  std::deque<PendingPtr> unlimited_;
  std::multimap<absl::Time, PendingPtr> delayed_;
  std::vector<std::unique_ptr<Transfer>> in_flight_;
  std::vector<std::unique_ptr<Transfer>> idle_;
  absl::Time last_received_ = absl::InfinitePast();

  std::thread thread_;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CURL_API_CLIENT_H_
