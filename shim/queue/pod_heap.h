// A binary heap of pods that knows where each pod is.
#ifndef OUTBOARD_SHIM_QUEUE_POD_HEAP_H_
#define OUTBOARD_SHIM_QUEUE_POD_HEAP_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "shim/queue/queued_pod.h"

namespace outboard::queue {

// Orders pods by their turn. A total order: no two pods share a sequence.
struct ActiveOrder {
  bool operator()(const QueuedPod& a, const QueuedPod& b) const {
    // std::string compares as unsigned bytes.
    if (const int c = a.sort_key.compare(b.sort_key); c != 0) return c < 0;
    if (a.timestamp != b.timestamp) return a.timestamp < b.timestamp;
    return a.sequence < b.sequence;
  }
};

// Orders pods by the end of their backoff; within a second, by their turn. The queue sets
// `backoff_expiration` before it adds a pod.
struct BackoffOrder {
  bool operator()(const QueuedPod& a, const QueuedPod& b) const {
    const absl::Time ta = a.backoff_expiration.value_or(absl::InfinitePast());
    const absl::Time tb = b.backoff_expiration.value_or(absl::InfinitePast());
    if (ta != tb) return ta < tb;
    return ActiveOrder()(a, b);
  }
};

// A pod is in at most one heap at a time; `QueuedPod::heap_index` relies on that. Does not own the
// pods.
template <typename Order>
class PodHeap {
 public:
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  QueuedPod& top() const { return *items_.front(); }

  // The first `count`, in order.
  std::vector<const QueuedPod*> First(size_t count) const {
    // A separate heap of the pods that may come next.
    std::vector<size_t> open;
    const auto later = [&](size_t i, size_t j) { return Order()(*items_[j], *items_[i]); };
    const auto add = [&](size_t i) {
      if (i >= items_.size()) return;
      open.push_back(i);
      std::push_heap(open.begin(), open.end(), later);
    };
    std::vector<const QueuedPod*> first;
    add(0);
    while (!open.empty() && first.size() < count) {
      std::pop_heap(open.begin(), open.end(), later);
      const size_t i = open.back();
      open.pop_back();
      first.push_back(items_[i]);
      add(2 * i + 1);
      add(2 * i + 2);
    }
    return first;
  }

  void Add(QueuedPod& pod) {
    pod.heap_index = items_.size();
    items_.push_back(&pod);
    Up(pod.heap_index);
  }
  void Remove(QueuedPod& pod) {
    const size_t at = pod.heap_index;
    Swap(at, items_.size() - 1);
    items_.pop_back();
    if (at < items_.size()) Fix(at);
  }
  // The pod's place in the order changed.
  void Reorder(QueuedPod& pod) { Fix(pod.heap_index); }

 private:
  void Swap(size_t i, size_t j) {
    std::swap(items_[i], items_[j]);
    items_[i]->heap_index = i;
    items_[j]->heap_index = j;
  }
  void Fix(size_t i) {
    if (!Up(i)) Down(i);
  }
  bool Up(size_t i) {
    const size_t start = i;
    while (i > 0) {
      const size_t parent = (i - 1) / 2;
      if (!Order()(*items_[i], *items_[parent])) break;
      Swap(i, parent);
      i = parent;
    }
    return i != start;
  }
  void Down(size_t i) {
    while (true) {
      size_t least = i;
      for (const size_t child : {2 * i + 1, 2 * i + 2}) {
        if (child < items_.size() && Order()(*items_[child], *items_[least])) least = child;
      }
      if (least == i) return;
      Swap(i, least);
      i = least;
    }
  }

  std::vector<QueuedPod*> items_;
};

}  // namespace outboard::queue

#endif  // OUTBOARD_SHIM_QUEUE_POD_HEAP_H_
