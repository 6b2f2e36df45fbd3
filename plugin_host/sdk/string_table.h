// Strings as small integers: label keys and values, image names, resource names.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_STRING_TABLE_H_
#define OUTBOARD_PLUGIN_HOST_SDK_STRING_TABLE_H_

#include <cstdint>
#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace outboard::sdk {

// Gives each distinct string a dense id, from 0. Ids never change and are never reused.
//
// Threading: thread-compatible.
// Lifetime:  returned views live as long as the table.
// Errors:    none.
class StringTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  uint32_t Intern(absl::string_view text);
  // kNone for a string that was never interned.
  uint32_t Find(absl::string_view text) const;
  absl::string_view Text(uint32_t id) const { return texts_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(texts_.size()); }
  void Clear();

 private:
  std::deque<std::string> texts_;  // A deque: views into it stay valid while it grows.
  absl::flat_hash_map<absl::string_view, uint32_t> ids_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_STRING_TABLE_H_
