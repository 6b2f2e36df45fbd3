#include "shim/informer/reflector.h"

#include <glog/logging.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "shim/clock.h"

namespace outboard::informer {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kProtobufOrJson[] = "application/vnd.kubernetes.protobuf, application/json";
// Enough for any Status. The rest of an error page is dropped.
constexpr size_t kMaxErrorBody = 64 << 10;

std::optional<Encoding> EncodingOf(absl::string_view content_type) {
  if (absl::StartsWith(content_type, "application/vnd.kubernetes.protobuf")) {
    return Encoding::kProtobuf;
  }
  if (absl::StartsWith(content_type, "application/json")) return Encoding::kJson;
  return std::nullopt;
}

Failure FromStatus(Failure::Kind kind, const kube::ApiStatus& status) {
  Failure failure;
  failure.kind = kind;
  failure.code = status.code;
  failure.reason = status.reason;
  failure.message = absl::StrCat(status.reason, ": ", status.message);
  failure.retry_after = absl::Seconds(status.retry_after_seconds);
  for (const kube::StatusCause& cause : status.causes) {
    if (cause.reason == "ResourceVersionTooLarge") failure.version_too_large = true;
  }
  // Older servers report the cause only in the message.
  if (status.code == 504 && absl::StrContains(status.message, "Too large resource version")) {
    failure.version_too_large = true;
  }
  return failure;
}

Failure Undecodable(absl::string_view message) {
  Failure failure;
  failure.kind = Failure::Kind::kUndecodable;
  failure.message = std::string(message);
  return failure;
}

// The failure in an answer with an error status. Its body is a Status, or plain text from a proxy
// or a filter before the API.
Failure FromHttp(ReflectorTarget& target, int http_status, absl::string_view content_type,
                 absl::string_view body, absl::Duration retry_after) {
  Failure failure;
  auto encoding = EncodingOf(content_type);
  if (encoding.has_value()) {
    auto status = target.DecodeStatus(*encoding, body);
    if (status.ok()) failure = FromStatus(Failure::Kind::kHttp, *status);
  }
  if (failure.message.empty()) failure.message = std::string(body.substr(0, 200));
  failure.kind = Failure::Kind::kHttp;
  failure.code = http_status;
  failure.retry_after = std::max(failure.retry_after, retry_after);
  return failure;
}

Failure FromTransport(const absl::Status& status) {
  Failure failure;
  failure.kind = Failure::Kind::kConnection;
  failure.message = std::string(status.message());
  return failure;
}

// Like ApiClient::Call, but Stop ends it. A later answer is dropped.
absl::StatusOr<kube::ApiResponse> CallUnlessCancelled(kube::ApiClient& client,
                                                      kube::ApiRequest request,
                                                      const kube::CancelToken& cancel) {
  struct Shared {
    absl::Mutex mutex;
    bool ended ABSL_GUARDED_BY(mutex) = false;
    absl::StatusOr<kube::ApiResponse> result ABSL_GUARDED_BY(mutex) =
        absl::CancelledError("stopped");
  };
  auto shared = std::make_shared<Shared>();
  client.Start(std::move(request), [shared](absl::StatusOr<kube::ApiResponse> answer) {
    absl::MutexLock lock(&shared->mutex);
    shared->result = std::move(answer);
    shared->ended = true;
  });
  kube::CancelToken::Listener wake(cancel, [shared] {
    absl::MutexLock lock(&shared->mutex);
    shared->ended = true;
  });
  absl::MutexLock lock(&shared->mutex);
  shared->mutex.Await(absl::Condition(&shared->ended));
  return std::move(shared->result);
}

}  // namespace

// Passes one watch's bytes to the target, as the policy decides.
class Reflector::WatchSink : public kube::StreamSink {
 public:
  WatchSink(Reflector& reflector, bool collecting)
      : reflector_(reflector), policy_(reflector.policy_), collecting_(collecting) {}

  absl::Status OnHeaders(int http_status, absl::string_view content_type,
                         absl::Duration retry_after) override {
    http_status_ = http_status;
    content_type_ = std::string(content_type);
    retry_after_ = retry_after;
    if (http_status != 200) return absl::OkStatus();
    encoding_ = EncodingOf(content_type);
    if (!encoding_.has_value()) {
      return End(Undecodable(absl::StrCat("a watch of type ", content_type)));
    }
    decoder_.emplace(*encoding_ == Encoding::kProtobuf ? kube::WatchFraming::kLengthPrefixed
                                                       : kube::WatchFraming::kNewlineDelimited);
    policy_.OnWatchOpened(SteadyNow());
    ++reflector_.stats_.watches;
    return absl::OkStatus();
  }

  absl::Status OnData(absl::string_view data) override {
    policy_.OnData(SteadyNow());
    if (!decoder_.has_value()) {
      error_body_.append(data.data(), std::min(data.size(), kMaxErrorBody - error_body_.size()));
      return absl::OkStatus();
    }
    absl::Status status =
        decoder_->Add(data, [this](absl::string_view frame) { return OnFrame(frame); });
    if (!status.ok() && !end_.has_value()) return End(Undecodable(status.message()));
    return status;
  }

  absl::Time SilenceDeadline() override { return policy_.SilenceDeadline(); }

  // Why the stream that ended with `status` ended.
  Failure Ended(const absl::Status& status) {
    if (end_.has_value()) return *end_;
    if (http_status_ != 0 && http_status_ != 200) {
      return FromHttp(reflector_.target_, http_status_, content_type_, error_body_, retry_after_);
    }
    if (status.ok()) return Failure();
    // The silence limit of this side. An incomplete frame is dropped with the decoder.
    Failure failure = FromTransport(status);
    if (absl::IsDeadlineExceeded(status) && http_status_ == 200) {
      failure.kind = Failure::Kind::kSilence;
    }
    return failure;
  }

 private:
  absl::Status End(Failure failure) {
    end_ = std::move(failure);
    return absl::AbortedError("ended by the reflector");
  }

  absl::Status OnFrame(absl::string_view frame) {
    auto event = reflector_.target_.Decode(*encoding_, frame);
    if (!event.ok()) return End(Undecodable(event.status().message()));
    if (event->type == kube::WatchEventType::kError) {
      return End(FromStatus(Failure::Kind::kEvent, event->status));
    }
    const EventVerdict verdict =
        policy_.OnEvent(event->type, event->resource_version, event->initial_events_end);
    switch (verdict) {
      case EventVerdict::kApply:
        // Bookmarks and errors have other verdicts.
        ++reflector_.stats_.events[static_cast<size_t>(event->type)];
        if (collecting_) {
          reflector_.target_.Collect();
        } else {
          reflector_.target_.Apply();
        }
        break;
      case EventVerdict::kIgnore:
        ++reflector_.stats_.ignored_events;
        break;
      case EventVerdict::kBookmark:
        ++reflector_.stats_.bookmarks;
        break;
      case EventVerdict::kInitialDone:
        collecting_ = false;
        reflector_.Commit();
        break;
      case EventVerdict::kReset: {
        Failure rewound;
        rewound.kind = Failure::Kind::kEvent;
        rewound.code = 410;
        rewound.reason = kRewound;
        rewound.message = absl::StrCat("the server's resource version went backwards to ",
                                       event->resource_version, "; starting over");
        LOG(ERROR) << reflector_.options_.name << ": " << rewound.message;
        reflector_.stats_.rewinds = policy_.rewinds();
        return End(std::move(rewound));
      }
    }
    return absl::OkStatus();
  }

  Reflector& reflector_;
  ReflectorPolicy& policy_;
  bool collecting_;
  int http_status_ = 0;
  std::string content_type_;
  absl::Duration retry_after_;
  std::optional<Encoding> encoding_;
  std::optional<kube::WatchDecoder> decoder_;
  std::string error_body_;
  std::optional<Failure> end_;
};

std::string QueryEscape(absl::string_view text) {
  std::string escaped;
  for (unsigned char c : text) {
    if (absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~') {
      escaped.push_back(static_cast<char>(c));
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", c);
    }
  }
  return escaped;
}

Reflector::Reflector(kube::ApiClient& client, ReflectorTarget& target, ReflectorOptions options)
    : client_(client), target_(target), options_(std::move(options)), policy_(options_.policy) {}

Reflector::~Reflector() { Stop(); }

void Reflector::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Reflector::Stop() {
  cancel_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void Reflector::Run() {
  while (!cancel_.cancelled()) {
    const Step step = policy_.Next(SteadyNow());
    if (step.delay > absl::ZeroDuration() && cancel_.WaitFor(step.delay)) return;
    bool failed = true;
    const Failure failure = step.kind == Step::Kind::kList ? List(step, &failed) : Watch(step);
    if (!failed || cancel_.cancelled()) continue;
    if (!IsAbsent(step, failure)) Count(step, failure);
    policy_.OnEnd(failure, SteadyNow());
  }
}

void Reflector::Commit() {
  ++stats_.lists[static_cast<size_t>(policy_.list_reason())];
  stats_.rewinds = policy_.rewinds();
  have_state_ = true;
  absence_logged_ = false;
  target_.CommitSnapshot();
}

void Reflector::Count(const Step& step, const Failure& failure) {
  if (failure.kind == Failure::Kind::kClean) return;
  if (failure.code == 410 || failure.reason == "Expired") {
    ++stats_.expired;
  } else if (failure.kind == Failure::Kind::kSilence) {
    ++stats_.silences;
  } else {
    ++stats_.failures;
  }
  if (step.kind == Step::Kind::kWatchList && failure.kind == Failure::Kind::kHttp &&
      (failure.code == 400 || failure.code == 422)) {
    LOG_FIRST_N(INFO, 1) << "The API server does not support WatchList; using paged lists for all "
                         << "resources: " << failure.message;
    return;
  }
  if (failure.kind == Failure::Kind::kHttp && failure.code == 403) {
    LOG(ERROR) << options_.name
               << ": list and watch forbidden (403); the scheduler's account needs get, list and "
               << "watch on " << options_.name << ": " << failure.message;
    return;
  }
  // The client reports an API server that does not answer, once for all requests.
  const bool is_reported = failure.kind == Failure::Kind::kConnection;
  LOG_IF(WARNING, !is_reported || VLOG_IS_ON(1))
      << options_.name << ": list or watch ended: " << failure.message << " (code " << failure.code
      << "); resuming";
}

bool Reflector::IsAbsent(const Step& step, const Failure& failure) {
  if (!options_.may_be_absent || step.kind == Step::Kind::kWatch ||
      failure.kind != Failure::Kind::kHttp || failure.code != 404) {
    return false;
  }
  // Known objects are not dropped because of a proxy's 404.
  if (!have_state_) {
    have_state_ = true;
    target_.BeginSnapshot();
    target_.CommitSnapshot();
  }
  if (!absence_logged_) {
    LOG(WARNING) << options_.name << ": the API server does not serve this resource (404 for "
                 << options_.path << "); keeping the known objects and retrying";
  }
  absence_logged_ = true;
  return true;
}

std::string Reflector::Query(const Step& step) const {
  std::string query = options_.path;
  const char* separator = "?";
  auto add = [&](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&query, separator, name, "=", QueryEscape(value));
    separator = "&";
  };
  if (!options_.field_selector.empty()) add("fieldSelector", options_.field_selector);
  if (!options_.label_selector.empty()) add("labelSelector", options_.label_selector);
  if (step.kind == Step::Kind::kList) {
    // Without resourceVersion: the most recent state, never an older one than before a restart.
    if (step.page_size > 0) add("limit", absl::StrCat(step.page_size));
    if (!step.continue_token.empty()) add("continue", step.continue_token);
    return query;
  }
  add("watch", "true");
  add("allowWatchBookmarks", "true");
  add("timeoutSeconds", absl::StrCat(step.timeout_seconds));
  if (step.kind == Step::Kind::kWatchList) {
    add("sendInitialEvents", "true");
    add("resourceVersionMatch", "NotOlderThan");
  } else {
    add("resourceVersion", step.resource_version);
  }
  return query;
}

Failure Reflector::List(const Step& step, bool* failed) {
  kube::ApiRequest request;
  request.path = Query(step);
  request.accept = options_.only_json ? kJson : kProtobufOrJson;
  request.timeout = absl::Minutes(2);
  request.rate_limited = false;
  // The policy decides on pauses; the client's own would delay Stop.
  request.retry = false;
  auto response = CallUnlessCancelled(client_, std::move(request), cancel_);
  if (!response.ok()) return FromTransport(response.status());
  if (!response->ok()) {
    return FromHttp(target_, response->http_status, response->content_type, response->body,
                    response->retry_after);
  }
  auto encoding = EncodingOf(response->content_type);
  if (!encoding.has_value()) {
    return Undecodable(absl::StrCat("a list of type ", response->content_type));
  }
  if (step.continue_token.empty()) target_.BeginSnapshot();
  auto page = target_.AddPage(*encoding, response->body);
  if (!page.ok()) return Undecodable(page.status().message());
  if (page->resource_version.empty()) return Undecodable("a list without a resource version");
  *failed = false;
  ++stats_.pages;
  if (policy_.OnPage(page->resource_version, page->continue_token)) Commit();
  return Failure();
}

Failure Reflector::Watch(const Step& step) {
  kube::ApiRequest request;
  request.path = Query(step);
  request.accept = options_.only_json ? kJson : kProtobufOrJson;
  request.timeout = absl::Seconds(30);
  const bool collecting = step.kind == Step::Kind::kWatchList;
  if (collecting) target_.BeginSnapshot();
  WatchSink sink(*this, collecting);
  return sink.Ended(client_.Stream(request, sink, cancel_));
}

}  // namespace outboard::informer
