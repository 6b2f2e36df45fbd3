// When the pods that have a place are over, node by node.
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

// Kept up to date pod by pod, in the order of time on each node: to look at tens of thousands of
// records for every reservation would cost many milliseconds.
//
// Threading: thread-compatible. Lifetime: records that were set are there until they are dropped.
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
  // Null: it has no place.
  const Placed* Find(const std::string& uid) const;

  // Whether anybody leaves at once.
  bool TakesBackAny(const Ends& ends) const;
  // What ends on the node, by `resources`, in the order of time. Those of one time in any order.
  void Visit(sdk::Slot slot, const Ends& ends, const std::vector<Resource>& resources,
             VisitRelease visit) const;
  // Until when somebody is there who uses the same as a pod that has no place: one of its extended
  // resources, or if it asks for none anything, but for pods of DaemonSets, which are everywhere.
  // `now`: nobody; InfiniteFuture: somebody who does not say. Nobody is taken to be made to leave.
  absl::Time InUseUntil(sdk::Slot slot, const sdk::PodRecord& by, const Ends& ends) const;

 private:
  // With all that matters of most pods.
  struct Entry {
    // When it is over; of one that has not started, as if it had at the Unix epoch.
    absl::Time when;
    const Placed* placed = nullptr;
    bool preemptible = false;
    bool everywhere = false;  // It is a DaemonSet's.
    bool several = false;     // It asks for several extended resources; the record has them.
    uint32_t column = 0;      // of the one, …
    int64_t extended = 0;     // … and how much
    int64_t cpu = 0, memory = 0, ephemeral = 0;
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::pair(a.when, a.placed) < std::pair(b.when, b.placed);
    }
    int64_t AskedBy(const Resource& resource) const;
    bool UsesTheSameAs(const sdk::PodRecord& pod) const;
  };
  struct OnNode {
    // In order: those that have started or are going, those that have not, those that do not say.
    std::vector<Entry> started, not_started, endless;
  };
  static Entry EntryOf(const Placed& placed);
  static std::vector<Entry>& ListOf(const RunTime& run_time, OnNode* node);

  absl::flat_hash_map<std::string, std::unique_ptr<Placed>> placed_;  // by uid
  std::vector<OnNode> nodes_;                                         // by slot
  absl::flat_hash_map<std::string, const Placed*> borrowers_;         // that say they are; by uid
};

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_ENDINGS_H_
