#include "plugins/backfill/run_times.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::backfill {
namespace {

template <typename T>
std::optional<T> EarlierOf(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

std::optional<absl::Time> RunTime::FixedEnd() const {
  return EarlierOf(end, EarlierOf(limit, gone));
}

std::optional<absl::Time> RunTime::EndAt(absl::Time now, absl::Duration overrun) const {
  std::optional<absl::Time> at = EarlierOf(limit, gone);
  if (at && *at <= now) at = now + overrun;
  if (end && !Overran(now, overrun))
    at = EarlierOf(at, std::optional(*end > now ? *end : *end + overrun));
  return !at && !end && run ? now + *run : at;
}

RunTime RunTime::WithoutEstimate() const {
  RunTime its = *this;
  its.end.reset();
  its.run.reset();
  return its;
}

RunTime ReadRunTime(const v1beta1::Pod& pod, const sdk::RunFactsReader& runs,
                    std::optional<absl::Duration> otherwise, sdk::MalformedValues* malformed) {
  std::vector<sdk::MalformedLabel> unreadable;
  sdk::RunFacts facts = runs.Of(pod, &unreadable);
  for (const sdk::MalformedLabel& one : unreadable)
    malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), one.key, one.value,
                    one.wanted);
  if (!facts.run_time.known() && !facts.run_limit.known() && !facts.deadline.known())
    facts.run_time.value = otherwise;
  RunTime its;
  its.run = EarlierOf(facts.run_time.value, facts.run_limit.value);
  its.end = facts.DeclaredEnd().value;
  if (facts.pod_start.known() || !its.run) its.limit = facts.EnforcedEnd().value;
  if (pod.deletion_unix_seconds() != 0)
    its.gone = absl::FromUnixSeconds(pod.deletion_unix_seconds());
  its.preemptible = facts.preemptible.value.value_or(false);
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
