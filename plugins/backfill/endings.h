// The end times of the pods that have a place, by node.
#ifndef OUTBOARD_PLUGINS_BACKFILL_ENDINGS_H_
#define OUTBOARD_PLUGINS_BACKFILL_ENDINGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/views.h"
#include "plugins/backfill/reservation.h"
#include "plugins/backfill/run_times.h"
#include "plugins/backfill/shadow_schedule.h"

namespace outboard::backfill {

// Updated per pod, and sorted by time on each node: scanning tens of thousands of records for every
// reservation would take many milliseconds.
//
// Threading: thread-compatible.
// Lifetime: a record passed to Set outlives its Drop.
class Endings {
 public:
  // A pod that has a place.
  struct Placed {
    const sdk::PodRecord* pod = nullptr;
    RunTime run_time;
    sdk::Slot slot = sdk::kNoSlot;  // where it is listed
  };

  void Clear();
  void Set(const sdk::PodRecord& pod, RunTime run_time);
  void Drop(const std::string& uid);
  // Null: the pod has no place.
  const Placed* Find(const std::string& uid) const;
  // The pods whose declared end was wrong; in any order.
  std::vector<const sdk::PodRecord*> Overrunning(absl::Time now, absl::Duration overrun) const;
  // The number of pods on nodes of which no end is known.
  size_t unknown() const { return unknown_; }

  // Returns true if at least one pod is evicted for the reservation.
  bool TakesBackAny(const Ends& ends) const;
  // Visits the node's releases by `resources`, ordered by time; equal times in any order.
  void Visit(sdk::Slot slot, const Ends& ends, const std::vector<Resource>& resources,
             VisitRelease visit) const;
  // The latest end of the node's pods that use the same resources as `by`, a pod without a place:
  // - one of its extended resources;
  // - without extended resources, anything, except by DaemonSet pods, which run on every node.
  // `now`: no such pod; InfiniteFuture: the end of one is unknown. Ignores possible evictions.
  absl::Time InUseUntil(sdk::Slot slot, const sdk::PodRecord& by, const Ends& ends) const;

 private:
  // Holds all that matters for most pods, without a look at the record.
  struct Entry {
    // The end; for a pod that has not started, as if it had started at the Unix epoch.
    absl::Time when;
    const Placed* placed = nullptr;
    bool preemptible = false;
    bool everywhere = false;  // It belongs to a DaemonSet.
    bool several = false;     // It requests several extended resources; they are in the record.
    uint32_t column = 0;      // of its only extended resource
    int64_t extended = 0;     // the amount of that resource
    int64_t cpu = 0, memory = 0, ephemeral = 0;
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::pair(a.when, a.placed) < std::pair(b.when, b.placed);
    }
    int64_t AskedBy(const Resource& resource) const;
    bool UsesTheSameAs(const sdk::PodRecord& pod) const;
  };
  struct OnNode {
    // In order: pods that have started or are being deleted, not started, without a known end.
    std::vector<Entry> started, not_started, endless;
  };
  static Entry EntryOf(const Placed& placed);
  static std::vector<Entry>& ListOf(const RunTime& run_time, OnNode* node);

  absl::flat_hash_map<std::string, std::unique_ptr<Placed>> placed_;  // by uid
  std::vector<OnNode> nodes_;                                         // by slot
  size_t unknown_ = 0;                                                // in lists `endless`
  absl::flat_hash_map<std::string, const Placed*> borrowers_;         // preemptible pods, by uid
};

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_ENDINGS_H_
