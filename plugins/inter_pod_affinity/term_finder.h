// Finds the terms, among many, that may match a pod.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_TERM_FINDER_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_TERM_FINDER_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plugins/inter_pod_affinity/pod_term.h"

namespace outboard::inter_pod_affinity {

// Indexes values by the namespaces of a term and one label that its selector requires. A lookup
// for a pod returns few terms that do not match, however many terms exist.
//
// Threading: thread-compatible.
// Lifetime:  does not own the values.
// Errors:    none.
template <typename T>
class TermFinder {
 public:
  // `everywhere`: find the term for pods of every namespace, not only of the namespaces it names.
  void Add(const PodTerm& term, bool everywhere, T* value) {
    ForEachList(term, everywhere, [&](std::vector<T*>& list) { list.push_back(value); });
  }
  // Takes the same arguments as Add.
  void Remove(const PodTerm& term, bool everywhere, T* value) {
    ForEachList(term, everywhere, [&](std::vector<T*>& list) {
      list.erase(std::remove(list.begin(), list.end(), value), list.end());
    });
    if (everywhere) return;
    for (const std::string& name : term.namespaces) {
      auto it = by_namespace_.find(name);
      if (it != by_namespace_.end() && it->second.empty()) by_namespace_.erase(it);
    }
  }
  // Calls fn(T*) once for each value whose term may match the pod; fn must check the match.
  template <typename Fn>
  void ForEachCandidate(const v1beta1::Pod& pod, Fn&& fn) const {
    anywhere_.ForEach(pod, fn);
    auto it = by_namespace_.find(pod.namespace_());
    if (it != by_namespace_.end()) it->second.ForEach(pod, fn);
  }
  void Clear() {
    anywhere_ = Bucket();
    by_namespace_.clear();
  }

 private:
  struct Bucket {
    // By key and value of a label.
    absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, std::vector<T*>>> by_label;
    std::vector<T*> others;

    template <typename Fn>
    void ForEach(const v1beta1::Pod& pod, Fn& fn) const {
      for (T* value : others) fn(value);
      if (by_label.empty()) return;
      for (const auto& [key, label] : pod.labels()) {
        auto of_key = by_label.find(key);
        if (of_key == by_label.end()) continue;
        auto of_value = of_key->second.find(label);
        if (of_value == of_key->second.end()) continue;
        for (T* value : of_value->second) fn(value);
      }
    }
    bool empty() const { return others.empty() && by_label.empty(); }
    // Removes the lists that a removal left empty.
    void Prune(const std::string& key, const std::string& label) {
      auto of_key = by_label.find(key);
      auto of_value = of_key->second.find(label);
      if (!of_value->second.empty()) return;
      of_key->second.erase(of_value);
      if (of_key->second.empty()) by_label.erase(of_key);
    }
  };

  // The first IN requirement; null if there is none.
  static const sdk::Requirement* Anchor(const PodTerm& term) {
    for (const sdk::Requirement& requirement : term.selector.requirements()) {
      if (requirement.op == v1beta1::SelectorRequirement::OPERATOR_IN) return &requirement;
    }
    return nullptr;
  }
  template <typename Fn>
  static void ForEachListOf(Bucket* bucket, const sdk::Requirement* anchor, Fn& fn) {
    if (anchor == nullptr) return fn(bucket->others);
    for (size_t i = 0; i < anchor->values.size(); ++i) {
      const std::string& label = anchor->values[i];
      if (i > 0 && label == anchor->values[i - 1]) continue;  // They are sorted.
      fn(bucket->by_label[anchor->key][label]);
      bucket->Prune(anchor->key, label);
    }
  }
  template <typename Fn>
  void ForEachList(const PodTerm& term, bool everywhere, Fn&& fn) {
    const sdk::Requirement* anchor = Anchor(term);
    if (everywhere) return ForEachListOf(&anywhere_, anchor, fn);
    for (size_t i = 0; i < term.namespaces.size(); ++i) {
      if (i > 0 && term.namespaces[i] == term.namespaces[i - 1]) continue;  // They are sorted.
      ForEachListOf(&by_namespace_[term.namespaces[i]], anchor, fn);
    }
  }

  Bucket anywhere_;
  absl::flat_hash_map<std::string, Bucket> by_namespace_;
};

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_TERM_FINDER_H_
