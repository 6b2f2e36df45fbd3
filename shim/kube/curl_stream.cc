#include "shim/kube/curl_stream.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "shim/clock.h"

namespace outboard::kube {
namespace {

struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

// State shared by libcurl's callbacks and the loop.
struct StreamState {
  StreamSink* sink;
  Reachability* reachability;  // may be null
  HeaderReader headers;
  bool headers_passed = false;
  absl::Status end;  // Not OK once the sink has ended the stream.

  bool PassHeaders() {
    if (headers_passed) return true;
    headers_passed = true;
    if (reachability != nullptr) reachability->OnAnswer(SteadyNow());
    end = sink->OnHeaders(headers.http_status(), headers.content_type(), headers.retry_after());
    return end.ok();
  }
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* state = static_cast<StreamState*>(user);
  const size_t bytes = size * count;
  if (!state->headers.Add(absl::string_view(data, bytes))) {
    state->end = absl::ResourceExhaustedError("the answer's headers are larger than 64 KiB");
    return 0;
  }
  if (state->headers.complete() && !state->PassHeaders()) return 0;
  return bytes;
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* state = static_cast<StreamState*>(user);
  const size_t bytes = size * count;
  state->end = state->sink->OnData(absl::string_view(data, bytes));
  return state->end.ok() ? bytes : 0;
}

// Runs the transfer to its end, which is in `code`, unless sink, deadline or `cancel` end it first.
absl::Status Loop(CURLM* multi, StreamState& state, StreamSink& sink, const CancelToken& cancel,
                  absl::Time header_deadline, CURLcode* code) {
  for (;;) {
    int running = 0;
    CURLMcode result = curl_multi_perform(multi, &running);
    if (result != CURLM_OK) return absl::InternalError(curl_multi_strerror(result));
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg == CURLMSG_DONE) {
        *code = message->data.result;
        return absl::OkStatus();
      }
    }
    if (cancel.cancelled()) return absl::CancelledError("the watch was cancelled");
    const absl::Time now = SteadyNow();
    const absl::Time deadline = state.headers_passed ? sink.SilenceDeadline() : header_deadline;
    if (now >= deadline) {
      return absl::DeadlineExceededError(state.headers_passed
                                             ? "no data was received within the limit"
                                             : "no answer to the request for a watch");
    }
    // Rounded up, so that the loop does not spin in the last millisecond.
    const absl::Duration wait = std::min(deadline - now, absl::Minutes(5));
    curl_multi_poll(multi, nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1,
                    nullptr);
  }
}

// As Get, but waits at most until `deadline` for credentials that are being fetched.
absl::StatusOr<CredentialsPtr> AwaitCredentials(CredentialSource& source, absl::Time deadline,
                                                const CancelToken& cancel) {
  for (;;) {
    const bool refreshing = source.Refreshing();
    const absl::Time now = SteadyNow();
    auto credentials = source.Get(now);
    if (credentials.ok() || !refreshing || now >= deadline) return credentials;
    if (cancel.WaitFor(kCredentialPause)) return absl::CancelledError("the watch was cancelled");
  }
}

}  // namespace

absl::Status RunCurlStream(CurlSetup& setup, CredentialSource& source, Reachability* reachability,
                           const ApiRequest& request, StreamSink& sink, const CancelToken& cancel) {
  if (request.method != Method::kGet || !request.body.empty()) {
    return absl::InvalidArgumentError("a stream is a GET without a body");
  }
  const absl::Time now = SteadyNow();
  auto credentials = AwaitCredentials(source, now + request.timeout, cancel);
  const auto not_sent = [&](const absl::Status& why) {
    if (reachability != nullptr) reachability->OnFailure(why.message(), now);
    return WithDelivery(why, Delivery::kNotSent);
  };
  if (absl::IsCancelled(credentials.status())) return credentials.status();
  if (!credentials.ok()) return not_sent(credentials.status());

  CurlEasy easy(curl_easy_init());
  std::unique_ptr<CURLM, MultiDeleter> multi(curl_multi_init());
  curl_slist* raw_headers = nullptr;
  absl::Status prepared =
      setup.Prepare(easy.get(), request, **credentials, /*multiplex=*/false, now, &raw_headers);
  CurlList headers(raw_headers);
  if (!prepared.ok()) return not_sent(prepared);

  StreamState state;
  state.sink = &sink;
  state.reachability = reachability;
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(easy.get(), CURLOPT_HTTPGET, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERDATA, &state);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &state);
  // A large first list arrives in larger pieces.
  curl_easy_setopt(easy.get(), CURLOPT_BUFFERSIZE, 256L << 10);
  curl_multi_add_handle(multi.get(), easy.get());
  CURLcode code = CURLE_OK;
  absl::Status ended;
  {
    CancelToken::Listener wake(cancel, [&multi] { curl_multi_wakeup(multi.get()); });
    ended = Loop(multi.get(), state, sink, cancel, now + request.timeout, &code);
  }
  // libcurl treats a connection that ends within the headers as an answer.
  if (ended.ok() && code == CURLE_OK && !state.headers.complete()) code = CURLE_GOT_NOTHING;
  if (reachability != nullptr && !state.headers.complete() &&
      (absl::IsDeadlineExceeded(ended) || code != CURLE_OK)) {
    reachability->OnFailure(code == CURLE_OK ? ended.message() : CurlErrorText(code, detail),
                            SteadyNow());
  }
  if (state.headers.http_status() == 401) source.Rejected(*credentials, SteadyNow());
  absl::Status result = ended;
  if (!state.end.ok()) {
    result = state.end;
  } else if (ended.ok() && code != CURLE_OK) {
    result = TransportError(easy.get(), code, detail, request);
  }
  curl_multi_remove_handle(multi.get(), easy.get());
  return result;
}

}  // namespace outboard::kube
