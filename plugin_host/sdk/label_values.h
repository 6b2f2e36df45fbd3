// Values of labels and annotations: parsed strictly, with one warning per malformed value.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_LABEL_VALUES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_LABEL_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/map.h"

namespace outboard::sdk {

using StringMap = google::protobuf::Map<std::string, std::string>;

// Null if the key is absent.
const std::string* FindValue(const StringMap& map, absl::string_view key);

// A decimal number without a sign, at most `max`: `3`, `0.25`, `1e3`; not `1.`, `.5`, `inf`,
// `nan`, `0x10` or ` 3`. None if the text is anything else.
std::optional<double> ParseAmount(absl::string_view text, double max = 1e15);
// Digits, at most `max`.
std::optional<int64_t> ParseCount(absl::string_view text, int64_t max = int64_t{1} << 50);
// `true` or `false`, in any case.
std::optional<bool> ParseBool(absl::string_view text);
// RFC 3339 with a year of four digits: `2026-01-31T22:00:00Z`, `2026-01-31T23:00:00+01:00`.
std::optional<absl::Time> ParseTimestamp(absl::string_view text);

// Warns of malformed values, which count as absent: once per object and key, until the object is
// forgotten. Memory is bounded: with very many warnings some repeat.
//
// Threading: thread-compatible.
class MalformedValues {
 public:
  explicit MalformedValues(std::string plugin) : plugin_(std::move(plugin)) {}

  // `object`: `node n1`, `pod ns/p`. `wanted`: `a number of GB`.
  void Warn(absl::string_view object, absl::string_view key, absl::string_view value,
            absl::string_view wanted);
  // The object was removed.
  void Forget(absl::string_view object);
  void Clear() { warned_keys_.clear(); }
  // Warnings so far; for tests and metrics.
  int64_t warned() const { return warned_; }

 private:
  static constexpr size_t kMaxObjects = 20000;
  const std::string plugin_;
  absl::flat_hash_map<std::string, absl::flat_hash_set<std::string>>
      warned_keys_;  // keys by object
  int64_t warned_ = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_LABEL_VALUES_H_
