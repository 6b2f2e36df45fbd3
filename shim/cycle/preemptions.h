// Preemptions whose evictions are under way.
#ifndef OUTBOARD_SHIM_CYCLE_PREEMPTIONS_H_
#define OUTBOARD_SHIM_CYCLE_PREEMPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

// Why a preemptor is kept out of the queue, in kube-scheduler's words.
inline constexpr char kPreemptionUnderWay[] =
    "waiting for the preemption for this pod to be finished";

// A pod that has others leave a node.
struct Preemption {
  kube::PodPtr preemptor;
  // Others of its group for which room is made as well, by uid.
  std::vector<std::string> members;
  std::string profile;
  std::string node_name;
  // The plugin in whose name they all are kept out meanwhile; empty: they are not.
  std::string gate;
  // Those that are to be evicted through the API server; at least one.
  std::vector<kube::PodPtr> victims;
};

// Evicts all victims of a preemption but one at the same time, and the last once these have left:
// when the preemptor then hears of the last one's going, everything has been asked for. Only then
// is there room: the API server's answer, or the news that the last one is about to vanish, comes a
// moment before it, and a pod that is tried in that moment finds nothing and is told so in public.
//
// Threading: thread-compatible. Lifetime: owns what it is given. Errors: ids that are unknown or
// over do nothing.
class Preemptions {
 public:
  // What there is to do now.
  struct Step {
    std::vector<kube::PodPtr> evict;
    // Nothing more will be; the preemption is forgotten.
    std::optional<Preemption> over;
    // With `over`: an eviction failed, and what was left to do was not done.
    bool failed = false;
  };
  // `preemption` has a victim.
  Step Begin(uint64_t id, Preemption preemption);
  // `news_follows`: the pod has begun to leave, and the shim has not seen it yet.
  Step EvictionEnded(uint64_t id, bool failed, bool news_follows);
  // The pod has been seen leaving, or gone: the preemptors whose last victim it is, with their
  // members; of these preemptions those that nothing else delays are over.
  std::vector<std::string> VictimLeft(absl::string_view uid);

  const Preemption* Find(uint64_t id) const;
  // The plugin in whose name a pod is to be kept out of the queue; null: nothing keeps it.
  // `is_leaving`: whether the pod of this uid is going, or gone.
  const std::string* GateOf(absl::string_view uid,
                            absl::FunctionRef<bool(const std::string& victim)> is_leaving) const;

 private:
  struct Running {
    Preemption preemption;
    size_t under_way = 0;
    bool last_begun = false;
    bool failed = false;
  };
  Preemption Forget(uint64_t id);

  absl::flat_hash_map<uint64_t, Running> running_;
  absl::flat_hash_map<std::string, uint64_t> latest_;  // by the preemptor's uid
  absl::flat_hash_map<std::string, std::vector<uint64_t>> by_last_victim_;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_PREEMPTIONS_H_
