#include "plugins/backfill/run_times.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace outboard::backfill {
namespace {

constexpr int64_t kMaxSeconds = int64_t{10} * 365 * 24 * 3600;

template <typename T>
std::optional<T> EarlierOf(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// How long the kubelet lets the pod run. The API accepts values from 1 on; values above the largest
// declarable run time have no effect.
std::optional<absl::Duration> DeadlineOf(const v1beta1::Pod& pod) {
  const int64_t seconds = pod.active_deadline_seconds();
  if (seconds <= 0 || seconds > kMaxSeconds) return std::nullopt;
  return absl::Seconds(seconds);
}

}  // namespace

std::optional<absl::Time> RunTime::FixedEnd() const { return EarlierOf(end, gone); }

std::optional<absl::Time> RunTime::EndAt(absl::Time now, absl::Duration overrun) const {
  std::optional<absl::Time> at = FixedEnd();
  if (!at && run) return now + *run;
  if (at && *at <= now) at = now + overrun;
  return at;
}

RunTime ReadRunTime(const v1beta1::Pod& pod, std::optional<absl::Duration> otherwise,
                    sdk::MalformedValues* malformed) {
  RunTime its;
  const std::optional<absl::Duration> deadline = DeadlineOf(pod);
  std::optional<absl::Duration> declared = deadline ? std::nullopt : otherwise;
  // The deadline counts from the pod's own start, not from the annotated start of its work.
  std::optional<absl::Time> own_start;
  if (pod.start_unix_seconds() != 0) own_start = absl::FromUnixSeconds(pod.start_unix_seconds());
  std::optional<absl::Time> start = own_start;
  if (pod.deletion_unix_seconds() != 0)
    its.gone = absl::FromUnixSeconds(pod.deletion_unix_seconds());
  const std::string* const label = sdk::FindValue(pod.labels(), kPreemptibilityLabel);
  its.preemptible = label != nullptr && *label == "preemptible";
  const auto read = [&](const char* key, auto parse, const char* wanted) {
    const std::string* text = sdk::FindValue(pod.annotations(), key);
    decltype(parse(*text)) value;
    if (text == nullptr) return value;
    value = parse(*text);
    if (!value)
      malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), key, *text, wanted);
    return value;
  };
  const auto time = [&](const char* key) {
    return read(
        key, [](const std::string& text) { return sdk::ParseTimestamp(text); },
        "a time such as 2026-01-31T22:00:00Z");
  };
  if (!pod.annotations().empty()) {
    if (const auto seconds = read(
            kRunSeconds, [](const std::string& text) { return sdk::ParseCount(text, kMaxSeconds); },
            "a number of seconds")) {
      declared = absl::Seconds(*seconds);
    }
    // A start before the pod's creation belongs to another pod.
    if (const auto annotated = time(kStart);
        annotated && *annotated >= absl::FromUnixSeconds(pod.creation_unix_seconds())) {
      start = annotated;
    }
    its.end = time(kEstimatedEnd);
    const auto preemptible = read(
        kPreemptible, [](const std::string& text) { return sdk::ParseBool(text); },
        "true or false");
    its.preemptible |= preemptible.value_or(false);
  }
  if (!its.end && declared && start) its.end = *start + *declared;
  if (deadline && own_start) its.end = EarlierOf(its.end, std::optional(*own_start + *deadline));
  its.run = EarlierOf(declared, deadline);
  return its;
}

std::string DurationText(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(duration));
  if (seconds < 60) return absl::StrCat(seconds, "s");
  const int64_t minutes = seconds / 60;
  if (minutes < 60) return absl::StrCat(minutes, "m");
  return minutes % 60 == 0 ? absl::StrCat(minutes / 60, "h")
                           : absl::StrCat(minutes / 60, "h", minutes % 60, "m");
}

std::string ClockText(absl::Time time, absl::Time now) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const bool today = absl::ToCivilDay(time, utc) == absl::ToCivilDay(now, utc);
  return absl::FormatTime(today ? "%H:%M" : "%Y-%m-%d %H:%M", time, utc);
}

}  // namespace outboard::backfill
