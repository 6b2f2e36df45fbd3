// Groups of pods that are placed together, in one pass, or not at all.
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
// the label are in none. Keys as in manifests: `topology.kubernetes.io/rack`.
struct TopologyLevels {
  std::string required;  // All members are to be in one domain; empty: anywhere.
  // Better if they are; the first that all fit in one domain of is taken, within `required`.
  std::vector<std::string> preferred;
};

// What of a group is to be placed now.
struct GroupToPlace {
  std::string name;  // for people: `volcano default/train`
  // Members that wait for a node, each once, in the order in which they get theirs.
  std::vector<const PodRecord*> pending;
  // So many of them have to find a node; from 1 to as many as there are. Others are placed as far
  // as there is room.
  int64_t needed = 1;
  // Parts that need members of their own, a launcher and three workers: so many of those of
  // `pending` that are named; no pod is of two parts, and `needed` is at least their sum.
  struct Part {
    std::string name;
    int64_t needed = 0;
    std::vector<const PodRecord*> pending;
  };
  std::vector<Part> parts;
  TopologyLevels topology;
  std::vector<Slot> placed;  // Nodes of members that have one, which decide the required domain.
  // Some of those wait at Permit: they give up before pods that have to leave for the others have.
  bool some_wait = false;
  // Why no place is looked for, as things are: `24 of 32 nvidia.com/gpu are free`. Empty: one is.
  std::string short_of;
};

// For plugins that know the groups of pods. The host places what they say with all plugins of the
// profile, from PreFilter to Score, each placement counting for the next.
//
// Threading: as Plugin. Errors: none; who cannot say anything lets the pod go alone.
class GroupPlugin {
 public:
  virtual ~GroupPlugin() = default;
  // The group of the attempt's pod, which is among `pending`; once an attempt, after all PreFilter
  // plugins let the pod pass. Absent: the pod goes alone.
  virtual std::optional<GroupToPlace> Group(const Attempt& attempt) const = 0;
  // None of what Group said in this attempt was placed; `why` as in the pod's message, without the
  // name. Once for each member that is tried, so it must be cheap. For those who tell others.
  virtual void GroupRejected(const Attempt& attempt, absl::string_view why, bool is_error) {}
};

// For Filter plugins that know by arithmetic how many pods there is room for, so that whoever
// places many need not try each.
class RoomPlugin {
 public:
  virtual ~RoomPlugin() = default;
  // Lowers at_most[i] to how many pods like the attempt's nodes[i] can take at most, one after the
  // other, as far as this plugin goes. After the attempt's PreFilter.
  virtual void LimitRoom(const Attempt& attempt, absl::Span<const Slot> nodes,
                         absl::Span<int64_t> at_most) const = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GROUP_PLUGIN_H_
