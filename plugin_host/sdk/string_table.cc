#include "plugin_host/sdk/string_table.h"

namespace outboard::sdk {

uint32_t StringTable::Intern(absl::string_view text) {
  auto it = ids_.find(text);
  if (it != ids_.end()) return it->second;
  const uint32_t id = size();
  texts_.emplace_back(text);
  ids_.emplace(texts_.back(), id);
  return id;
}

uint32_t StringTable::Find(absl::string_view text) const {
  auto it = ids_.find(text);
  return it == ids_.end() ? kNone : it->second;
}

void StringTable::Clear() {
  ids_.clear();
  texts_.clear();
}

}  // namespace outboard::sdk
