#include "plugins/cost_optimized/cheap_hours.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/civil_time.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::cost_optimized {
namespace {

constexpr int kMinutesPerDay = 24 * 60;
constexpr size_t kMaxWindows = 32;
constexpr double kMaxFactor = 1000;
// If a clock change skips a weekly window, the next one is a week later.
constexpr int kHorizonDays = 15;
constexpr const char* kDayNames[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

// 0 is Sunday, as in cron; so is 7.
std::optional<int> ParseDay(absl::string_view text) {
  for (int day = 0; day < 7; ++day) {
    if (absl::EqualsIgnoreCase(text, kDayNames[day])) return day;
  }
  const std::optional<int64_t> number = sdk::ParseCount(text, 7);
  if (!number) return std::nullopt;
  return static_cast<int>(*number % 7);
}

// Bit of a civil day in Window::days.
uint8_t BitOf(absl::CivilDay day) {
  // absl::Weekday begins with Monday.
  return static_cast<uint8_t>(1 << ((static_cast<int>(absl::GetWeekday(day)) + 1) % 7));
}

// Accepts only names of the database: the loader would also open any path.
std::optional<absl::TimeZone> FindZone(const std::string& name) {
  const bool is_plain =
      !name.empty() && absl::ascii_isalpha(static_cast<unsigned char>(name[0])) &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '/' || c == '_' || c == '+' || c == '-';
      });
  absl::TimeZone zone;
  if (!is_plain || name == "localtime" || !absl::LoadTimeZone(name, &zone)) return std::nullopt;
  return zone;
}

std::optional<int> ReadMinute(const sdk::ArgsObject& object, const char* key) {
  if (!object.Has(key)) {
    object.Problem(key, sdk::RequiredValue("must be a time of day such as 22:00"));
    return std::nullopt;
  }
  // A value that is not a string is already a problem.
  const std::string text = object.String(key, "00:00");
  const std::optional<int> minute = ParseMinute(text);
  if (!minute) object.Problem(key, sdk::InvalidValue(text, "must be a time of day such as 22:00"));
  return minute;
}

Window ReadWindow(const sdk::ArgsObject& object) {
  Window window;
  const std::string days = object.String("days", "*");
  if (const std::optional<uint8_t> parsed = ParseDays(days)) {
    window.days = *parsed;
  } else {
    object.Problem("days", sdk::InvalidValue(days, "must be days as in cron, such as Mon-Fri"));
  }
  const std::optional<int> from = ReadMinute(object, "from");
  const std::optional<int> to = ReadMinute(object, "to");
  window.from = from.value_or(0);
  window.to = to.value_or(kMinutesPerDay);
  if (window.from == kMinutesPerDay) {
    object.Problem("from", sdk::InvalidValue("24:00", "must be before 24:00"));
  } else if (from && to && window.from == window.to) {
    object.Problem("to", sdk::InvalidValue(object.String("to", ""),
                                           "must differ from from; a whole day ends at 24:00"));
  }
  const std::string zone_name = object.String("timezone", "UTC");
  if (const std::optional<absl::TimeZone> zone = FindZone(zone_name)) {
    window.zone = *zone;
  } else {
    object.Problem("timezone", sdk::InvalidValue(zone_name, "unknown time zone on this machine"));
  }
  if (!object.Has("factor")) object.Problem("factor", sdk::RequiredValue("must be a number"));
  window.factor = object.Double("factor", 1);
  if (!(window.factor >= 0 && window.factor <= kMaxFactor)) {
    object.Problem("factor", absl::StrCat("Invalid value: ", window.factor,
                                          ": not in valid range [0, ", kMaxFactor, "]"));
  }
  return window;
}

}  // namespace

std::optional<uint8_t> ParseDays(absl::string_view text) {
  if (text == "*") return 0x7f;
  uint8_t days = 0;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends =
        absl::StrSplit(absl::StripAsciiWhitespace(part), '-');
    if (ends.size() > 2) return std::nullopt;
    const std::optional<int> first = ParseDay(ends.front());
    const std::optional<int> last = ParseDay(ends.back());
    if (!first || !last) return std::nullopt;
    // `0-7` is the whole week, as in cron.
    const bool whole = ends.size() == 2 && *first == *last && ends.front() != ends.back();
    for (int day = *first;; day = (day + 1) % 7) {
      days |= static_cast<uint8_t>(1 << day);
      if (day == *last) break;
    }
    if (whole) days = 0x7f;
  }
  return days;
}

std::optional<int> ParseMinute(absl::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const std::optional<int64_t> hour = sdk::ParseCount(text.substr(0, 2), 24);
  const std::optional<int64_t> minute = sdk::ParseCount(text.substr(3), 59);
  if (!hour || !minute || (*hour == 24 && *minute > 0)) return std::nullopt;
  return static_cast<int>(*hour * 60 + *minute);
}

bool Window::Covers(absl::Time time) const {
  const absl::CivilMinute clock = absl::ToCivilMinute(time, zone);
  const absl::CivilDay today(clock);
  const int minute = clock.hour() * 60 + clock.minute();
  const bool begins_today = (days & BitOf(today)) != 0;
  if (from < to) return begins_today && from <= minute && minute < to;
  return (begins_today && from <= minute) || ((days & BitOf(today - 1)) != 0 && minute < to);
}

CheapHours CheapHours::Read(const sdk::ArgsObject& root) {
  CheapHours hours;
  for (const sdk::ArgsObject& object : root.Objects("windows")) {
    hours.windows_.push_back(ReadWindow(object));
  }
  if (hours.windows_.size() > kMaxWindows) {
    root.Problem("windows", absl::StrCat("Too many: ", hours.windows_.size(),
                                         ": must have at most ", kMaxWindows, " items"));
  }
  return hours;
}

double CheapHours::FactorAt(absl::Time time) const {
  for (const Window& window : windows_) {
    if (window.Covers(time)) return window.factor;
  }
  return 1;
}

bool CheapHours::any() const {
  return std::any_of(windows_.begin(), windows_.end(),
                     [](const Window& window) { return window.factor < 1; });
}

std::optional<absl::Time> CheapHours::NextCheap(absl::Time time) const {
  if (IsCheap(time)) return time;
  // The factor changes only where a window begins or ends (also a window that hides a later one),
  // or where a clock change skips that time.
  std::vector<absl::Time> changes;
  for (const Window& window : windows_) {
    const absl::CivilDay today = absl::ToCivilDay(time, window.zone);
    for (int ahead = -1; ahead <= kHorizonDays; ++ahead) {
      const absl::CivilDay day = today + ahead;
      for (const int minute : {window.from, window.to}) {
        const absl::TimeZone::TimeInfo at =
            window.zone.At(absl::CivilSecond(day.year(), day.month(), day.day(), 0, minute, 0));
        for (const absl::Time change : {at.pre, at.trans, at.post}) {
          if (change > time) changes.push_back(change);
        }
      }
    }
  }
  std::sort(changes.begin(), changes.end());
  for (const absl::Time change : changes) {
    if (IsCheap(change)) return change;
  }
  return std::nullopt;
}

}  // namespace outboard::cost_optimized
