// Finds the selectors that may match a set of labels, without trying every selector.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LABEL_BUCKETS_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LABEL_BUCKETS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plugin_host/sdk/selectors.h"

namespace outboard::pod_topology_spread {

// Items by one label that their selector requires. If a selector has several IN requirements, the
// requirement that the fewest items share is used. A selector without IN (only Exists, NotIn …) is
// always a candidate.
//
// Threading: thread-compatible.
// Lifetime:  stores copies of T, which is a pointer.
// Errors:    none.
template <typename T>
class LabelBuckets {
 public:
  using Requirements = std::vector<sdk::Requirement>;

  // Returns the place of the item; pass it to Remove.
  int Add(T item, const Requirements& requirements) {
    int best = kNoDemand;
    size_t fewest = 0;
    for (int i = 0; i < static_cast<int>(requirements.size()); ++i) {
      if (requirements[i].op != v1beta1::SelectorRequirement::OPERATOR_IN) continue;
      const size_t others = Load(requirements[i]);
      if (best == kNoDemand || others < fewest) {
        best = i;
        fewest = others;
      }
    }
    if (best == kNoDemand) {
      others_.push_back(item);
    } else {
      auto& by_value = by_label_[requirements[best].key];
      for (const std::string& value : requirements[best].values) {
        std::vector<T>& bucket = by_value[value];
        // Values are sorted, so duplicates are adjacent.
        if (bucket.empty() || bucket.back() != item) bucket.push_back(item);
      }
    }
    ++size_;
    return best;
  }

  void Remove(T item, const Requirements& requirements, int place) {
    --size_;
    if (place == kNoDemand) return Erase(&others_, item);
    auto label = by_label_.find(requirements[place].key);
    for (const std::string& value : requirements[place].values) {
      auto bucket = label->second.find(value);
      if (bucket == label->second.end()) continue;  // A duplicate value.
      Erase(&bucket->second, item);
      if (bucket->second.empty()) label->second.erase(bucket);
    }
    if (label->second.empty()) by_label_.erase(label);
  }

  // Calls fn(item) for every item that may match.
  template <typename Fn>
  void ForEachCandidate(const sdk::LabelMap& labels, Fn&& fn) const {
    for (const T& item : others_) fn(item);
    if (by_label_.empty()) return;
    for (const auto& [key, value] : labels) {
      auto label = by_label_.find(key);
      if (label == by_label_.end()) continue;
      auto bucket = label->second.find(value);
      if (bucket == label->second.end()) continue;
      for (const T& item : bucket->second) fn(item);
    }
  }

  bool empty() const { return size_ == 0; }

 private:
  static constexpr int kNoDemand = -1;

  size_t Load(const sdk::Requirement& requirement) const {
    auto label = by_label_.find(requirement.key);
    if (label == by_label_.end()) return 0;
    size_t load = 0;
    for (const std::string& value : requirement.values) {
      auto bucket = label->second.find(value);
      if (bucket != label->second.end()) load += bucket->second.size();
    }
    return load;
  }
  static void Erase(std::vector<T>* items, const T& item) {
    items->erase(std::remove(items->begin(), items->end(), item), items->end());
  }

  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, std::vector<T>>> by_label_;
  std::vector<T> others_;
  size_t size_ = 0;
};

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LABEL_BUCKETS_H_
