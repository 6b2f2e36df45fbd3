// Groups of pods that are placed together in one pass, or not at all.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GROUP_PLUGIN_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GROUP_PLUGIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// A level of the topology: the nodes with the same value of a label are one domain; nodes without
// the label are in none. Keys as in manifests: `topology.kubernetes.io/rack`. Several keys with
// commas between them: the nodes with the same values of all these labels.
struct TopologyLevels {
  std::string required;  // All members must be in one domain; empty: anywhere.
  // Preferred levels, in order: the first level with a domain that fits all is used, within
  // `required`.
  std::vector<std::string> preferred;
  // Of several domains of a preferred level that fit all: the one with the best node for the first
  // member by the profile's scores, instead of the one with the least room.
  bool best_score_first = false;
};

// The part of a group to place now.
struct GroupToPlace {
  std::string name;  // for people: `volcano default/train`
  // Members that wait for a node, each once, in order of placement.
  std::vector<const PodRecord*> pending;
  // How many of them must get a node, from 1 to all. Others are placed while nodes fit them.
  int64_t needed = 1;
  // Parts with their own minimum, for example one launcher and three workers: `needed` of the
  // part's `pending`. No pod is in two parts; the group's `needed` is at least the sum of the
  // parts'.
  struct Part {
    std::string name;
    int64_t needed = 0;
    std::vector<const PodRecord*> pending;
  };
  std::vector<Part> parts;
  TopologyLevels topology;
  std::vector<Slot> placed;  // Nodes of placed members, which determine the required domain.
  // Some of those wait at Permit: their waits may end before preemption victims have left.
  bool some_wait = false;
  // Why the host does not search: `24 of 32 nvidia.com/gpu are free`. Empty: it searches.
  std::string short_of;
};

// For plugins that know the groups of pods. The host places the group with all plugins of the
// profile, from PreFilter to Score, each placement counting for the next.
//
// Threading: as Plugin.
// Errors: none; a plugin without an opinion returns nullopt.
class GroupPlugin {
 public:
  virtual ~GroupPlugin() = default;
  // The group of the attempt's pod, which is among `pending`; once per attempt, after PreFilter of
  // all plugins succeeded. nullopt: the pod is scheduled individually.
  virtual std::optional<GroupToPlace> Group(const Attempt& attempt) const = 0;
  // No member of this attempt's Group was placed; `why` as in the pod's message, without the name.
  // Called for each member that is tried, so it must be cheap. For plugins that publish the reason.
  virtual void GroupRejected(const Attempt& attempt, absl::string_view why, bool is_error) {}
};

// For Filter plugins that can compute how many pods fit on a node, so that placing many does not
// try each.
class CapacityPlugin {
 public:
  virtual ~CapacityPlugin() = default;
  // Lowers at_most[i] to the number of pods like the attempt's that fit on nodes[i] for this
  // plugin. Called after the attempt's PreFilter.
  virtual void LimitCapacity(const Attempt& attempt, absl::Span<const Slot> nodes,
                             absl::Span<int64_t> at_most) const = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GROUP_PLUGIN_H_
