#include "shim/informer/reflector_policy.h"

#include <algorithm>
#include <utility>

#include "shim/informer/resource_version.h"

namespace outboard::informer {
namespace {

// A shorter watch without an event is a failure. Otherwise a broken proxy would cause a busy loop.
constexpr absl::Duration kVeryShortWatch = absl::Seconds(1);
// How much longer than requested a server may keep a watch open.
constexpr absl::Duration kGrace = absl::Seconds(30);
// After this many failures from one version, the version is considered invalid.
constexpr int kMaxFailuresAtVersion = 5;

bool IsExpired(const Failure& failure) {
  return failure.code == 410 || failure.reason == "Expired" || failure.reason == "Gone";
}

// The server does not support sendInitialEvents and will not support it next time.
bool IsUnsupported(const Failure& failure) {
  return failure.code == 400 || failure.code == 404 || failure.code == 405 || failure.code == 406 ||
         failure.code == 422;
}

}  // namespace

ReflectorPolicy::ReflectorPolicy(ReflectorPolicyOptions options)
    : options_(options),
      random_(options.seed != 0 ? options.seed : std::random_device{}()),
      watch_list_(options.watch_list),
      page_size_(options.page_size),
      backoff_(options.min_backoff) {}

double ReflectorPolicy::Uniform() {
  return std::uniform_real_distribution<double>(0.0, 1.0)(random_);
}

Step ReflectorPolicy::Next(absl::Time now) {
  Step step;
  step.delay = std::exchange(delay_, absl::ZeroDuration());
  if (!resource_version_.empty()) {
    step.kind = Step::Kind::kWatch;
    step.resource_version = resource_version_;
  } else if (watch_list_ && !list_this_time_) {
    step.kind = Step::Kind::kWatchList;
  } else {
    step.kind = Step::Kind::kList;
    step.continue_token = continue_token_;
    step.page_size = page_size_;
  }
  watch_timeout_ = options_.min_watch * (1.0 + Uniform());
  step.timeout_seconds = std::max<int64_t>(1, absl::ToInt64Seconds(watch_timeout_));
  doing_ = step.kind;
  open_ = false;
  events_ = 0;
  step_start_ = now + step.delay;
  last_data_ = step_start_;
  return step;
}

bool ReflectorPolicy::OnPage(const std::string& resource_version,
                             const std::string& continue_token) {
  // All pages show the state at the version of the first page.
  if (continue_token_.empty()) list_version_ = resource_version;
  continue_token_ = continue_token;
  if (!continue_token.empty()) return false;
  if (IsOlderVersion(list_version_, newest_version_)) ++rewinds_;
  // Accepted even if older: a consistent list is authoritative.
  resource_version_ = newest_version_ = list_version_;
  list_this_time_ = false;
  page_size_ = options_.page_size;
  failures_at_version_ = 0;
  return true;
}

void ReflectorPolicy::OnWatchOpened(absl::Time now) {
  open_ = true;
  step_start_ = now;
  last_data_ = now;
}

EventVerdict ReflectorPolicy::OnEvent(kube::WatchEventType type,
                                      const std::string& resource_version,
                                      bool initial_events_end) {
  ++events_;
  if (resource_version_.empty()) {
    // The initial state arrives in any order: only the version of its end counts.
    if (type != kube::WatchEventType::kBookmark) return EventVerdict::kApply;
    if (!initial_events_end) return EventVerdict::kBookmark;
    if (IsOlderVersion(resource_version, newest_version_)) ++rewinds_;
    resource_version_ = newest_version_ = resource_version;
    failures_at_version_ = 0;
    return EventVerdict::kInitialDone;
  }
  const bool older = IsOlderVersion(resource_version, resource_version_);
  if (type == kube::WatchEventType::kBookmark) {
    if (older) {
      ++rewinds_;
      return EventVerdict::kReset;
    }
    if (!initial_events_end) periodic_bookmarks_ = true;
  } else if (older) {
    return EventVerdict::kIgnore;
  }
  if (!resource_version.empty()) resource_version_ = newest_version_ = resource_version;
  failures_at_version_ = 0;
  return type == kube::WatchEventType::kBookmark ? EventVerdict::kBookmark : EventVerdict::kApply;
}

absl::Time ReflectorPolicy::SilenceDeadline() const {
  const absl::Time end = step_start_ + watch_timeout_ + kGrace;
  if (resource_version_.empty()) return std::min(end, last_data_ + options_.initial_silence);
  return periodic_bookmarks_ ? std::min(end, last_data_ + options_.silence) : end;
}

void ReflectorPolicy::Fail(absl::Time now, absl::Duration retry_after) {
  if (now - last_failure_ > options_.backoff_reset) backoff_ = options_.min_backoff;
  last_failure_ = now;
  delay_ = std::max(backoff_ * (1.0 + Uniform()), retry_after);
  backoff_ = std::min(backoff_ * 2, options_.max_backoff);
}

void ReflectorPolicy::StartOver(ListReason reason) {
  list_reason_ = reason;
  resource_version_.clear();
  continue_token_.clear();
  failures_at_version_ = 0;
}

void ReflectorPolicy::OnInitialWatchEnd(const Failure& failure, absl::Time now) {
  switch (failure.kind) {
    case Failure::Kind::kConnection:
      break;
    case Failure::Kind::kClean:
      // The watch ended at once, or timed out without the end mark: the server does not support it.
    case Failure::Kind::kSilence:
      watch_list_ = false;
      break;
    case Failure::Kind::kHttp:
    case Failure::Kind::kEvent:
      if (IsUnsupported(failure)) {
        // The server is healthy: no pause.
        watch_list_ = false;
        return;
      }
      if (failure.code != 429 && failure.code != 401 && failure.code != 403) {
        list_this_time_ = true;
      }
      break;
    case Failure::Kind::kUndecodable:
      list_this_time_ = true;
      break;
  }
  Fail(now, failure.retry_after);
}

void ReflectorPolicy::OnEnd(const Failure& failure, absl::Time now) {
  if (doing_ == Step::Kind::kList) {
    // An expired continue token: restart with a single page, which cannot expire.
    if (IsExpired(failure) && !continue_token_.empty()) page_size_ = 0;
    StartOver(list_reason_);
    Fail(now, failure.retry_after);
    return;
  }
  if (resource_version_.empty()) {
    OnInitialWatchEnd(failure, now);
    return;
  }
  if (IsExpired(failure) || failure.version_too_large) {
    // In both cases the watch cannot resume from the version; a retry would loop.
    StartOver(failure.reason == kRewound ? ListReason::kRewound : ListReason::kExpired);
    Fail(now, failure.retry_after);
    return;
  }
  const bool very_short = now - step_start_ < kVeryShortWatch && events_ == 0;
  switch (failure.kind) {
    case Failure::Kind::kClean:
      if (very_short) Fail(now, failure.retry_after);
      return;
    case Failure::Kind::kSilence:
      // The connection was dead. The next attempt shows whether the server is too.
      return;
    case Failure::Kind::kConnection:
      // Lost after some time: retry at once. Not established, or lost at once: retry with pauses.
      if (!open_ || very_short) Fail(now, failure.retry_after);
      return;
    case Failure::Kind::kHttp:
    case Failure::Kind::kEvent:
    case Failure::Kind::kUndecodable:
      if (failure.code != 429 && ++failures_at_version_ >= kMaxFailuresAtVersion)
        StartOver(ListReason::kFailures);
      Fail(now, failure.retry_after);
      return;
  }
}

}  // namespace outboard::informer
