#include "shim/kube/curl_api_client.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shim/clock.h"
#include "shim/fail_point.h"
#include "shim/kube/curl_stream.h"

namespace outboard::kube {
namespace {

// client-go's maxRetries.
constexpr int kMaxRetries = 10;

}  // namespace

// One request on the connection, and its handle. Reused after its end.
struct CurlApiClient::Transfer {
  CurlApiClient* client = nullptr;
  CurlEasy easy;
  CurlList header_list;
  PendingPtr pending;
  CredentialsPtr credentials;
  HeaderReader headers;
  std::string body;
  bool too_large = false;
  // How often before_send allowed a send, and the status of its last refusal.
  int allowed = 0;
  absl::Status refused;
  absl::Time ends_by = absl::InfiniteFuture();
  absl::Time sent_at;
  char detail[CURL_ERROR_SIZE] = "";
};

CurlApiClient::CurlApiClient(ClientConfig config, CurlApiClientOptions options)
    : options_(std::move(options)),
      config_(std::move(config)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      setup_(config_, options_.user_agent),
      bucket_(options_.qps, options_.burst) {
  InitCurl();
  thread_ = std::thread([this] { Run(); });
}

CurlApiClient::~CurlApiClient() {
  Stop();
  close(wake_fd_);
}

void CurlApiClient::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
}

void CurlApiClient::Start(ApiRequest request, Done done) {
  auto pending = std::make_unique<Pending>();
  pending->request = std::move(request);
  pending->done = std::move(done);
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_) {
      task_queue_.push_back(std::move(pending));
      wake = !std::exchange(woken_, true);
    }
  }
  if (pending != nullptr) {
    pending->done(
        WithDelivery(absl::CancelledError("the API client is shutting down"), Delivery::kNotSent));
    return;
  }
  // One wake-up is enough for all requests that arrive before the thread runs.
  if (wake) Wake();
}

absl::Status CurlApiClient::Stream(const ApiRequest& request, StreamSink& sink,
                                   const CancelToken& cancel) {
  if (absl::Status path = CheckRequestPath(request.path); !path.ok()) return path;
  CurlSetup setup(config_, options_.user_agent);
  return RunCurlStream(setup, *config_.credentials, options_.reachability, request, sink, cancel);
}

void CurlApiClient::Wake() {
  const uint64_t one = 1;
  // Fails only if the counter is full; then the thread wakes up anyway.
  [[maybe_unused]] ssize_t written = write(wake_fd_, &one, sizeof(one));
}

void CurlApiClient::Run() {
  multi_ = curl_multi_init();
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, long{CURLPIPE_MULTIPLEX});
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) break;
    }
    TakeInbox();
    StartReady(SteadyNow());
    int running = 0;
    curl_multi_perform(multi_, &running);
    OUTBOARD_FAIL_POINT_IF(
        std::any_of(in_flight_.begin(), in_flight_.end(),
                    [](const auto& transfer) {
                      curl_off_t sent = 0;
                      curl_easy_getinfo(transfer->easy.get(), CURLINFO_SIZE_UPLOAD_T, &sent);
                      return sent > 0 && !transfer->headers.complete() &&
                             absl::EndsWith(transfer->pending->request.path, "/binding");
                    }),
        bind_written);
    // Ended requests free slots: start waiting requests before sleeping.
    if (TakeResults() || ResetExpired()) continue;
    Wait();
  }
  AbortAll();
  curl_multi_cleanup(multi_);
}

void CurlApiClient::TakeInbox() {
  std::vector<PendingPtr> arrived;
  {
    absl::MutexLock lock(&mutex_);
    arrived.swap(task_queue_);
    woken_ = false;
  }
  for (PendingPtr& pending : arrived) {
    (pending->request.rate_limited ? limited_ : unlimited_).push_back(std::move(pending));
  }
}

void CurlApiClient::StartReady(absl::Time now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    PendingPtr pending = std::move(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    (pending->request.rate_limited ? limited_ : unlimited_).push_front(std::move(pending));
  }
  SettleRejected(now);
  if (!HaveCredentials(now)) return;
  auto has_place = [this] {
    return in_flight_.size() < static_cast<size_t>(options_.max_in_flight);
  };
  while (has_place() && !unlimited_.empty()) {
    PendingPtr pending = std::move(unlimited_.front());
    unlimited_.pop_front();
    StartOne(std::move(pending), now);
  }
  while (has_place() && !limited_.empty() && bucket_.TryTake(now)) {
    PendingPtr pending = std::move(limited_.front());
    limited_.pop_front();
    StartOne(std::move(pending), now);
  }
}

bool CurlApiClient::HaveCredentials(absl::Time now) {
  waiting_for_credentials_ = false;
  if (limited_.empty() && unlimited_.empty()) return true;
  // Without hope of others, StartOne ends the requests with the error.
  if (!config_.credentials->Refreshing()) return true;
  const absl::Status credentials = config_.credentials->Get(now).status();
  if (credentials.ok()) return true;
  std::deque<PendingPtr> ended;
  for (auto* queue : {&limited_, &unlimited_}) {
    std::deque<PendingPtr> waiting;
    for (PendingPtr& pending : *queue) {
      if (pending->give_up_at == absl::InfiniteFuture())
        pending->give_up_at = now + pending->request.timeout;
      (now < pending->give_up_at ? waiting : ended).push_back(std::move(pending));
    }
    queue->swap(waiting);
  }
  waiting_for_credentials_ = true;
  for (PendingPtr& pending : ended) EndNotSent(std::move(pending), credentials, now);
  return false;
}

void CurlApiClient::SettleRejected(absl::Time now) {
  std::vector<PendingPtr> rejected;
  rejected.swap(rejected_);
  for (PendingPtr& pending : rejected) {
    const bool refreshing = config_.credentials->Refreshing();
    const auto newer = config_.credentials->Get(now);
    if (newer.ok() && *newer != pending->rejected) {
      pending->renewed_credentials = true;
      pending->rejected.reset();
      (pending->request.rate_limited ? limited_ : unlimited_).push_front(std::move(pending));
    } else if (!refreshing || now >= pending->give_up_at) {
      pending->done(std::move(pending->rejection));
    } else {
      rejected_.push_back(std::move(pending));
    }
  }
}

void CurlApiClient::EndNotSent(PendingPtr pending, const absl::Status& why, absl::Time now) {
  if (options_.reachability != nullptr) options_.reachability->OnFailure(why.message(), now);
  pending->done(
      WithDelivery(why, pending->attempts == 0 ? Delivery::kNotSent : Delivery::kUnknown));
}

void CurlApiClient::StartOne(PendingPtr pending, absl::Time now) {
  ApiRequest& request = pending->request;
  if (absl::Status path = CheckRequestPath(request.path); !path.ok())
    return pending->done(WithDelivery(std::move(path), Delivery::kNotSent));
  auto credentials = config_.credentials->Get(now);
  if (!credentials.ok()) return EndNotSent(std::move(pending), credentials.status(), now);
  pending->give_up_at = absl::InfiniteFuture();
  std::unique_ptr<Transfer> transfer;
  if (idle_.empty()) {
    transfer = std::make_unique<Transfer>();
    transfer->client = this;
    transfer->easy.reset(curl_easy_init());
  } else {
    transfer = std::move(idle_.back());
    idle_.pop_back();
  }
  CURL* easy = transfer->easy.get();
  curl_slist* header_list = nullptr;
  absl::Status prepared =
      setup_.Prepare(easy, request, **credentials, /*multiplex=*/true, now, &header_list);
  transfer->header_list.reset(header_list);
  if (!prepared.ok()) {
    curl_easy_reset(easy);
    idle_.push_back(std::move(transfer));
    return EndNotSent(std::move(pending), prepared, now);
  }
  transfer->credentials = *std::move(credentials);
  transfer->sent_at = now;
  if (request.method != Method::kGet) {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, MethodName(request.method).data());
    if (request.method != Method::kDelete || !request.body.empty()) {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    }
  }
  if (request.accept_gzip) curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
  const int64_t timeout_ms = absl::ToInt64Milliseconds(request.timeout);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<int64_t>(timeout_ms, 1)));
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->detail);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &CurlApiClient::OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &CurlApiClient::OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer.get());
  if (request.before_send || request.ends_by) {
    // The connection is ready, and the request is written next. libcurl calls this again if the
    // connection turns out to be dead and it takes another.
    constexpr auto kAsk = +[](void* user, char*, char*, int, int) -> int {
      auto* sending = static_cast<Transfer*>(user);
      ApiRequest& sent = sending->pending->request;
      if (sent.before_send) sending->refused = sent.before_send();
      if (!sending->refused.ok()) return CURL_PREREQFUNC_ABORT;
      if (sent.ends_by) {
        sending->ends_by = sent.ends_by();
        sending->client->next_end_ = std::min(sending->client->next_end_, sending->ends_by);
      }
      ++sending->allowed;
      return CURL_PREREQFUNC_OK;
    };
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, kAsk);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer.get());
  }
  ++pending->attempts;
  transfer->pending = std::move(pending);
  curl_multi_add_handle(multi_, easy);
  in_flight_.push_back(std::move(transfer));
}

size_t CurlApiClient::OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->client->last_received_ = SteadyNow();
  return transfer->headers.Add(absl::string_view(data, size * count)) ? size * count : 0;
}

size_t CurlApiClient::OnBody(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->client->last_received_ = SteadyNow();
  const size_t bytes = size * count;
  if (transfer->body.size() + bytes > transfer->pending->request.max_response_bytes) {
    transfer->too_large = true;
    return 0;
  }
  transfer->body.append(data, bytes);
  return bytes;
}

bool CurlApiClient::TakeResults() {
  bool any = false;
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    const CURLcode code = message->data.result;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    Finish(transfer, code);
    any = true;
  }
  return any;
}

void CurlApiClient::Finish(Transfer* transfer, CURLcode code) {
  const absl::Time now = SteadyNow();
  // libcurl treats a connection that ends within the headers as an answer without a body.
  if (code == CURLE_OK && !transfer->headers.complete()) code = CURLE_GOT_NOTHING;
  PendingPtr pending = std::move(transfer->pending);
  curl_multi_remove_handle(multi_, transfer->easy.get());
  if (options_.observer && transfer->refused.ok()) {
    const int status = code == CURLE_OK ? transfer->headers.http_status() : 0;
    options_.observer(pending->request.method, status, now - transfer->sent_at);
  }
  if (options_.reachability != nullptr && transfer->refused.ok()) {
    if (transfer->headers.complete()) {
      options_.reachability->OnAnswer(now);
    } else if (code != CURLE_OK) {
      options_.reachability->OnFailure(CurlErrorText(code, transfer->detail), now);
    }
  }
  absl::StatusOr<ApiResponse> result = absl::UnknownError("");
  bool retried = false;
  bool connection_is_deaf = false;
  if (!transfer->refused.ok()) {
    // An earlier send may have arrived: only a refusal of the first send proves that none did.
    const bool never_sent = pending->attempts == 1 && transfer->allowed == 0;
    result = WithDelivery(transfer->refused, never_sent ? Delivery::kNotSent : Delivery::kUnknown);
  } else if (transfer->too_large) {
    result = WithDelivery(absl::ResourceExhaustedError("the answer exceeds the size limit"),
                          Delivery::kUnknown);
  } else if (code == CURLE_OK) {
    ApiResponse response;
    response.http_status = transfer->headers.http_status();
    response.content_type = transfer->headers.content_type();
    response.retry_after = transfer->headers.retry_after();
    response.body = std::move(transfer->body);
    retried = RetryAnswer(pending, *transfer, response, now);
    if (!retried) result = std::move(response);
  } else {
    connection_is_deaf = code == CURLE_OPERATION_TIMEDOUT && last_received_ < transfer->sent_at;
    result = TransportError(transfer->easy.get(), code, transfer->detail, pending->request);
    if (pending->attempts > 1) result = WithDelivery(result.status(), Delivery::kUnknown);
    retried = RetryError(pending, code, now);
  }
  Release(transfer);
  if (!retried) pending->done(std::move(result));
  if (connection_is_deaf) GiveUpConnection();
}

bool CurlApiClient::RetryAnswer(PendingPtr& pending, const Transfer& transfer,
                                ApiResponse& response, absl::Time now) {
  const int status = transfer.headers.http_status();
  if (status == 401) {
    config_.credentials->Rejected(transfer.credentials, now);
    if (pending->renewed_credentials) return false;
    // A 401 had no effect. Retry once if there are newer credentials, or as soon as there are.
    // Meanwhile other requests use the old ones: a 401 may also be the server's mistake.
    pending->rejected = transfer.credentials;
    pending->rejection = std::move(response);
    pending->give_up_at = now + pending->request.timeout;
    rejected_.push_back(std::move(pending));
    return true;
  }
  if (!pending->request.retry || !transfer.headers.has_retry_after()) return false;
  if (status != 429 && status < 500) return false;
  if (pending->attempts > kMaxRetries) return false;
  delayed_.emplace(now + transfer.headers.retry_after(), std::move(pending));
  return true;
}

bool CurlApiClient::RetryError(PendingPtr& pending, CURLcode code, absl::Time now) {
  if (!pending->request.retry || pending->request.method != Method::kGet) return false;
  if (!IsLostConnection(code) || pending->attempts > kMaxRetries) return false;
  delayed_.emplace(now + absl::Seconds(1), std::move(pending));
  return true;
}

bool CurlApiClient::ResetExpired() {
  const absl::Time now = SteadyNow();
  if (now < next_end_) return false;
  bool any = false;
  next_end_ = absl::InfiniteFuture();
  for (const auto& transfer : in_flight_) {
    // The lease may have been renewed meanwhile.
    if (transfer->ends_by <= now) transfer->ends_by = transfer->pending->request.ends_by();
    any = any || transfer->ends_by <= now;
    next_end_ = std::min(next_end_, transfer->ends_by);
  }
  if (any) GiveUpConnection();
  return any;
}

void CurlApiClient::GiveUpConnection() {
  // libcurl keeps an HTTP/2 connection after a request on it timed out, and would use it again. A
  // new multi handle has no connections.
  std::vector<std::unique_ptr<Transfer>> lost;
  lost.swap(in_flight_);
  std::vector<std::pair<PendingPtr, absl::Status>> ended;
  const absl::Time now = SteadyNow();
  for (auto& transfer : lost) {
    PendingPtr pending = std::move(transfer->pending);
    const bool expired = transfer->ends_by <= now;
    absl::Status status =
        expired ? TransportError(transfer->easy.get(), CURLE_OPERATION_TIMEDOUT,
                                 "no answer before the lease may pass to another replica; "
                                 "connection reset",
                                 pending->request)
                : TransportError(transfer->easy.get(), CURLE_RECV_ERROR,
                                 "connection closed: another request on it had no answer in time",
                                 pending->request);
    if (pending->attempts > 1) status = WithDelivery(status, Delivery::kUnknown);
    curl_multi_remove_handle(multi_, transfer->easy.get());
    if (expired || !RetryError(pending, CURLE_RECV_ERROR, now)) {
      ended.emplace_back(std::move(pending), std::move(status));
    }
  }
  lost.clear();
  // Idle handles may refer to their last connection.
  idle_.clear();
  curl_multi_cleanup(multi_);
  multi_ = curl_multi_init();
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, long{CURLPIPE_MULTIPLEX});
  for (auto& [pending, status] : ended) pending->done(std::move(status));
}

void CurlApiClient::Release(Transfer* transfer) {
  auto it = std::find_if(in_flight_.begin(), in_flight_.end(),
                         [transfer](const auto& held) { return held.get() == transfer; });
  std::unique_ptr<Transfer> owned = std::move(*it);
  *it = std::move(in_flight_.back());
  in_flight_.pop_back();
  curl_easy_reset(owned->easy.get());
  owned->header_list.reset();
  owned->credentials.reset();
  owned->headers = HeaderReader();
  owned->body.clear();
  owned->too_large = false;
  owned->allowed = 0;
  owned->refused = absl::OkStatus();
  owned->ends_by = absl::InfiniteFuture();
  owned->detail[0] = '\0';
  idle_.push_back(std::move(owned));
}

void CurlApiClient::Wait() {
  absl::Time until = absl::InfiniteFuture();
  const absl::Time now = SteadyNow();
  if (!delayed_.empty()) until = delayed_.begin()->first;
  const bool has_place = in_flight_.size() < static_cast<size_t>(options_.max_in_flight);
  if (waiting_for_credentials_ || !rejected_.empty())
    until = std::min(until, now + kCredentialPause);
  if (has_place && !limited_.empty() && !waiting_for_credentials_)
    until = std::min(until, bucket_.NextToken(now));
  until = std::min(until, next_end_);
  if (until <= now) return;
  const int64_t wait_ms = absl::ToInt64Milliseconds(std::min(until - now, absl::Minutes(5))) + 1;
  curl_waitfd wake = {};
  wake.fd = wake_fd_;
  wake.events = CURL_WAIT_POLLIN;
  curl_multi_poll(multi_, &wake, 1, static_cast<int>(wait_ms), nullptr);
  uint64_t count;
  [[maybe_unused]] ssize_t got = read(wake_fd_, &count, sizeof(count));
}

void CurlApiClient::AbortAll() {
  const absl::Status cancelled = absl::CancelledError("the API client is shutting down");
  TakeInbox();
  std::vector<PendingPtr> waiting;
  for (auto* queue : {&limited_, &unlimited_}) {
    for (PendingPtr& pending : *queue) waiting.push_back(std::move(pending));
    queue->clear();
  }
  for (auto& [time, pending] : delayed_) waiting.push_back(std::move(pending));
  delayed_.clear();
  for (PendingPtr& pending : rejected_) pending->done(std::move(pending->rejection));
  rejected_.clear();
  for (auto& transfer : in_flight_) {
    PendingPtr pending = std::move(transfer->pending);
    curl_multi_remove_handle(multi_, transfer->easy.get());
    pending->done(WithDelivery(cancelled, Delivery::kUnknown));
  }
  in_flight_.clear();
  idle_.clear();
  for (PendingPtr& pending : waiting) {
    pending->done(
        WithDelivery(cancelled, pending->attempts == 0 ? Delivery::kNotSent : Delivery::kUnknown));
  }
}

}  // namespace outboard::kube
