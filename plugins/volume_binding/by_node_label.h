// An index of items by node label, so that a search for a node visits few items.
#ifndef OUTBOARD_PLUGINS_VOLUME_BINDING_BY_NODE_LABEL_H_
#define OUTBOARD_PLUGINS_VOLUME_BINDING_BY_NODE_LABEL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/views.h"

namespace outboard::volume_binding {

// A label that a node must have, with one of these values; empty key: no such condition is known.
struct NodeLabelKey {
  std::string key;
  std::vector<std::string> values;
};

// Items with a NodeLabelKey are found by the node's value of the label; the others are `unkeyed`.
// The condition is necessary, not sufficient: the caller must check each result.
//
// Threading: thread-compatible.
// Lifetime:  does not own the items.
// Errors:    none.
template <typename T>
class ByNodeLabel {
 public:
  void Add(const T* item, const NodeLabelKey& key) {
    if (key.key.empty()) unkeyed_.insert(item);
    for (const std::string& value : key.values) keyed_[key.key][value].insert(item);
  }
  void Remove(const T* item, const NodeLabelKey& key) {
    if (key.key.empty()) unkeyed_.erase(item);
    for (const std::string& value : key.values) {
      auto values = keyed_.find(key.key);
      if (values == keyed_.end()) return;
      auto items = values->second.find(value);
      if (items == values->second.end()) continue;
      items->second.erase(item);
      if (items->second.empty()) values->second.erase(items);
      if (values->second.empty()) keyed_.erase(values);
    }
  }
  bool empty() const { return keyed_.empty() && unkeyed_.empty(); }
  const absl::flat_hash_set<const T*>& unkeyed() const { return unkeyed_; }
  // The keyed items that may belong to the node.
  template <typename Fn>
  void ForEachKeyed(const sdk::NodeView& node, Fn&& fn) const {
    for (const auto& [key, values] : keyed_) {
      const std::optional<absl::string_view> value = node.Label(key);
      if (!value) continue;
      auto items = values.find(*value);
      if (items == values.end()) continue;
      for (const T* item : items->second) fn(*item);
    }
  }

 private:
  using Items = absl::flat_hash_set<const T*>;
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, Items>> keyed_;
  Items unkeyed_;
};

}  // namespace outboard::volume_binding

#endif  // OUTBOARD_PLUGINS_VOLUME_BINDING_BY_NODE_LABEL_H_
