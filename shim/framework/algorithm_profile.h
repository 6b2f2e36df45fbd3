// What the algorithm needs of a profile and its hosts.
#ifndef OUTBOARD_SHIM_FRAMEWORK_ALGORITHM_PROFILE_H_
#define OUTBOARD_SHIM_FRAMEWORK_ALGORITHM_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/host_client.h"

namespace outboard::framework {

// What one of several hosts does in a profile: plugin names, in the profile's order.
struct HostProfile {
  std::vector<std::string> pre_filter_plugins;
  std::vector<std::string> filter_plugins;
  std::vector<std::string> pre_score_plugins;
  std::vector<WeightedPlugin> score_plugins;
  // Whether an attempt continues without the host's answer at a point, because the failure policies
  // of all its plugins there allow it. The missing answer counts as: every node feasible, no score.
  bool pre_filter_fail_open = false;
  bool filter_fail_open = false;
  bool score_fail_open = false;  // PreScore too
  // If the score is missing, use the score of the last pod of the same owner, at most 5 s old.
  bool score_uses_last = false;
  // The host can answer several points in one message.
  bool can_fuse = false;

  // Whether the algorithm can run without the host.
  bool is_optional() const { return pre_filter_fail_open && filter_fail_open && score_fail_open; }
};

// What the algorithm needs of a profile.
struct AlgorithmProfile {
  std::string name;
  uint32_t percentage_of_nodes_to_score = 0;  // 0: adapts to the size of the cluster
  // Names, to count the plugins that run.
  std::vector<std::string> pre_filter_plugins;
  std::vector<std::string> filter_plugins;
  std::vector<std::string>
      post_filter_plugins;  // empty: nothing is tried for a pod that fits nowhere
  std::vector<std::string> pre_score_plugins;
  std::vector<WeightedPlugin> score_plugins;  // empty: the first feasible node is taken
  // Plugins at Score whose host is skipped for the pod: they give 0 to every node.
  std::vector<std::string> skipped_score_plugins;
  // One per host with a plugin at these points, if there are several, or if the only host keeps no
  // cluster cache.
  std::vector<HostProfile> shares;
  // The main host, by its index in `shares`: it has filters and can answer all points in one
  // message. The others are late hosts: Filter calls them after the main host, for the nodes that
  // it found feasible. Without a main host all are late.
  std::optional<size_t> main_host;
};

// A host and the cluster version of the calls to it.
struct HostAtVersion {
  HostClient* client = nullptr;  // null: unavailable, and not required
  int64_t version = 0;
};
using AttemptHosts = absl::InlinedVector<HostAtVersion, 2>;

// Whether one message from PreFilter to Score can carry the attempt: a single host, with that
// capability.
inline bool IsFused(const AttemptHosts& hosts) {
  return hosts.size() == 1 &&
         HasCapability(hosts[0].client->info(), v1beta1::CAPABILITY_FUSED_CYCLE);
}

// A missing answer that a failure policy allows to ignore.
struct IgnoredFailure {
  size_t host = 0;
  v1beta1::ExtensionPoint point = v1beta1::EXTENSION_POINT_UNSPECIFIED;
  bool used_last = false;
  absl::Status status;
};

// The hosts' last scores, for other pods of the same owner. Bounded.
//
// Threading: thread-compatible.
class LastScores {
 public:
  static constexpr absl::Duration kMaxAge = absl::Seconds(5);
  void Keep(const std::string& key, const v1beta1::NodeSet& nodes,
            const v1beta1::ScoreResponse& scores, absl::Time now);
  // nullopt unless there are scores for all of these nodes.
  std::optional<v1beta1::ScoreResponse> Find(const std::string& key, const v1beta1::NodeSet& nodes,
                                             absl::Time now) const;

 private:
  struct Entry {
    absl::Time time;
    absl::flat_hash_map<uint32_t, size_t> position;  // by slot
    v1beta1::ScoreResponse scores;
  };
  static constexpr size_t kMaxEntries = 64;
  std::map<std::string, Entry> entries_;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_ALGORITHM_PROFILE_H_
