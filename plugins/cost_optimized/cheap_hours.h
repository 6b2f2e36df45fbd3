// Hours of the week in which nodes cost more or less than usual.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_CHEAP_HOURS_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_CHEAP_HOURS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/args_reader.h"

namespace outboard::cost_optimized {

// Days of the week as bits; Sunday is bit 0. Cron syntax: `*`, `Mon-Fri`, `Sat,Sun`, `1-5`, `7`
// (also Sunday), `Fri-Mon`; names in any case. nullopt: any other text.
std::optional<uint8_t> ParseDays(absl::string_view text);
// `22:00` as minutes since midnight, up to `24:00`.
std::optional<int> ParseMinute(absl::string_view text);

// A period on some days of the week, from a minute (inclusive) to another (exclusive) of a time
// zone's wall clock. An hour that the clock skips is missing; a repeated hour counts twice.
struct Window {
  uint8_t days = 0;  // On which it begins; see ParseDays.
  int from = 0;      // Minutes since midnight, below 1440.
  int to = 0;        // Up to 1440; below `from`: on the following day.
  absl::TimeZone zone;
  double factor = 1;  // Multiplies a node's cost.

  bool Covers(absl::Time time) const;
};

// Threading: a value.
// Lifetime: a value.
// Errors: Read reports them to the reader of the arguments.
class CheapHours {
 public:
  // The argument `windows`.
  static CheapHours Read(const sdk::ArgsObject& root);

  // The factor of the first window that covers the time; 1 if none does.
  double FactorAt(absl::Time time) const;
  bool IsCheap(absl::Time time) const { return FactorAt(time) < 1; }
  // The first cheap time from `time` on; nullopt if there is none within 15 days.
  std::optional<absl::Time> NextCheap(absl::Time time) const;
  // Returns true if any window is cheap.
  bool any() const;

 private:
  std::vector<Window> windows_;
};

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_CHEAP_HOURS_H_
