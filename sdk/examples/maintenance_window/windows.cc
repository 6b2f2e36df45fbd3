#include "windows.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace maintenance_window {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kWeek = absl::Hours(7 * 24);

// `01:30` as time since midnight.
std::optional<absl::Duration> ParseClock(absl::string_view text) {
  int hours = 0, minutes = 0;
  if (text.size() != 5 || text[2] != ':' || !absl::SimpleAtoi(text.substr(0, 2), &hours) ||
      !absl::SimpleAtoi(text.substr(3), &minutes) || hours < 0 || hours > 23 || minutes < 0 ||
      minutes > 59) {
    return std::nullopt;
  }
  return absl::Hours(hours) + absl::Minutes(minutes);
}

// Days since Thursday, the weekday of the Unix epoch.
std::optional<int> ParseDay(absl::string_view text) {
  constexpr const char* kDays[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
  for (int i = 0; i < 7; ++i) {
    if (text == kDays[i]) return i;
  }
  return std::nullopt;
}

std::optional<Window> ParseOnce(absl::string_view text) {
  const std::vector<std::string> ends = absl::StrSplit(text, '/');
  Window window;
  if (ends.size() != 2 || !absl::ParseTime(absl::RFC3339_full, ends[0], &window.begin, nullptr) ||
      !absl::ParseTime(absl::RFC3339_full, ends[1], &window.end, nullptr) ||
      window.end <= window.begin) {
    return std::nullopt;
  }
  return window;
}

std::optional<Window> ParseAgainAndAgain(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, ' ');
  const std::pair<absl::string_view, absl::string_view> clocks = absl::StrSplit(parts.second, '-');
  const auto from = ParseClock(clocks.first);
  const auto to = ParseClock(clocks.second);
  const auto day = ParseDay(parts.first);
  const bool daily = parts.first == "daily";
  if (!from.has_value() || !to.has_value() || *from == *to || (!day.has_value() && !daily))
    return std::nullopt;
  Window window;
  window.every = daily ? kDay : kWeek;
  window.begin = absl::UnixEpoch() + day.value_or(0) * kDay + *from;
  window.end = window.begin + (*to - *from);
  if (*to < *from) window.end += kDay;
  return window;
}

}  // namespace

bool Window::Covers(absl::Time now, absl::Duration lead) const {
  if (every == absl::ZeroDuration()) return begin - lead <= now && now < end;
  // The first occurrence that has not ended at `now`.
  absl::Duration rest;
  const int64_t over = absl::IDivDuration(now - end, every, &rest);
  const int64_t next = now < end ? over : over + 1;
  return begin + next * every - lead <= now;
}

std::optional<std::vector<Window>> ParseWindows(absl::string_view text) {
  std::vector<Window> windows;
  for (absl::string_view part : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    part = absl::StripAsciiWhitespace(part);
    const auto window =
        part.find('/') != absl::string_view::npos ? ParseOnce(part) : ParseAgainAndAgain(part);
    if (!window.has_value()) return std::nullopt;
    windows.push_back(*window);
  }
  return windows;
}

}  // namespace maintenance_window
