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
#include "shim/kube/reachability.h"
#include "shim/kube/token_bucket.h"

namespace outboard::kube {

struct CurlApiClientOptions {
  std::string user_agent = "outboard-shim";
  // As clientConnection of KubeSchedulerConfiguration: a negative qps means unlimited.
  double qps = 50;
  int burst = 100;
  // Maximum number of requests on the connection; others wait in order. More costs CPU without
  // gain.
  int max_in_flight = 32;
  // Called on the client's thread after each attempt of a request; status 0 without an answer.
  std::function<void(Method, int http_status, absl::Duration)> observer;
  // Notified of each answer and of each request without one, watches included. Shared by clients,
  // and outlives them. May be null.
  Reachability* reachability = nullptr;
};

// One thread drives one HTTP/2 connection with many requests in flight. Watches run on their
// callers' threads, on their own HTTP/1.1 connections, so that a large list never delays an event.
// The lease has its own client: its renewals must not wait behind binds.
//
// Differences from client-go:
// - A 401 is retried once if the credentials could be renewed.
// - Without usable credentials requests wait for them, at most for their timeout.
// - A connection is closed, with all requests on it, if a request timed out while no data at all
//   was received. client-go detects this by HTTP/2 pings, which libcurl lacks.
// - A connection is closed by a reset, which discards what was not sent yet: a write whose time is
//   over, or whose process has ended, does not reach the server later.
//
// All its times are on the clock of SteadyNow.
//
// Threading, Lifetime, Errors: see ApiClient.
class CurlApiClient : public ApiClient {
 public:
  CurlApiClient(ClientConfig config, CurlApiClientOptions options);
  ~CurlApiClient() override;

  // Ends all requests, resets the connection and refuses later requests, as the destructor does.
  // Watches go on. Not on the client's thread.
  void Stop();
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
    // When a request that waits for credentials ends without them; set when it begins to wait.
    absl::Time give_up_at = absl::InfiniteFuture();
    // A 401, and the credentials that it rejects. It is the answer unless there are newer ones.
    CredentialsPtr rejected;
    ApiResponse rejection;
  };
  using PendingPtr = std::unique_ptr<Pending>;
  struct Transfer;

  void Run();
  void TakeInbox();
  void StartReady(absl::Time now);
  // False while waiting requests must wait for credentials; ends those that waited for too long.
  bool HaveCredentials(absl::Time now);
  // Repeats requests with a 401 if there are newer credentials, or ends them.
  void SettleRejected(absl::Time now);
  void EndNotSent(PendingPtr pending, const absl::Status& why, absl::Time now);
  void StartOne(PendingPtr pending, absl::Time now);
  // True if a request ended.
  bool TakeResults();
  void Finish(Transfer* transfer, CURLcode code);
  // Whether `pending` was queued again.
  bool RetryAnswer(PendingPtr& pending, const Transfer& transfer, ApiResponse& response,
                   absl::Time now);
  bool RetryError(PendingPtr& pending, CURLcode code, absl::Time now);
  // Gives up the connection if a request on it should have ended. True if so.
  bool ResetExpired();
  // Resets the connection; requests on it end, or are tried again.
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
  std::vector<PendingPtr> task_queue_ ABSL_GUARDED_BY(mutex_);

  // Members below are used by the client's thread only.
  CurlSetup setup_;
  TokenBucket bucket_;
  CURLM* multi_ = nullptr;
  std::deque<PendingPtr> limited_;
  std::deque<PendingPtr> unlimited_;
  std::multimap<absl::Time, PendingPtr> delayed_;
  std::vector<PendingPtr> rejected_;      // wait for newer credentials
  bool waiting_for_credentials_ = false;  // all of limited_ and unlimited_
  std::vector<std::unique_ptr<Transfer>> in_flight_;
  std::vector<std::unique_ptr<Transfer>> idle_;
  // Not after the first `ends_by` of those in flight. A request that has ended may still count.
  absl::Time next_end_ = absl::InfiniteFuture();
  absl::Time last_received_ = absl::InfinitePast();

  std::thread thread_;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CURL_API_CLIENT_H_
