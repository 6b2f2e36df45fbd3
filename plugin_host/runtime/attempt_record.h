// What the host keeps of an attempt between its calls.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_ATTEMPT_RECORD_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_ATTEMPT_RECORD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::runtime {

// A question to other hosts.
struct OpenQuestion {
  sdk::Slot slot = sdk::kNoSlot;
  bool own_ok = false;  // this host accepts, and continued as if all others did
};

// The host's state of an attempt.
struct AttemptRecord {
  uint64_t id = 0;
  std::string pod_uid;
  std::shared_ptr<const Profile> profile;
  std::vector<sdk::PluginState> states;  // By plugin index.
  std::vector<uint8_t> skip_filter;      // By plugin index: PreFilter said SKIP.
  std::vector<uint8_t> skip_score;       // By plugin index: PreScore said SKIP.
  // For PostFilter: nodes that Filter rejected, the latest verdict on each last, and the code of
  // all others. Kept only if no node was feasible.
  std::vector<std::pair<sdk::Slot, sdk::Code>> rejected_nodes;
  sdk::Code other_nodes = v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
  // For PostFilter if other hosts filter too: their verdicts on dry runs, by node in the order of
  // the questions, and the questions without an answer.
  absl::flat_hash_map<sdk::Slot, std::vector<sdk::Verdict>> answers;
  std::vector<OpenQuestion> questions;
  // The plugin whose group did not fit, if that is why there is no node.
  std::optional<uint32_t> group_plugin;
  // If plugins limited where it may be placed: these sets of nodes.
  std::vector<std::vector<sdk::Slot>> group_node_sets;

  // Resets the record for this profile.
  void Begin(uint64_t attempt_id, absl::string_view uid, std::shared_ptr<const Profile> p);
};

// Replaces plugins' PreFilter states by copies that AddPod and RemovePod may change; the destructor
// restores the states. Plugins without these methods share their states.
class StateCopies {
 public:
  explicit StateCopies(AttemptRecord* attempt);
  ~StateCopies();
  StateCopies(const StateCopies&) = delete;
  StateCopies& operator=(const StateCopies&) = delete;

 private:
  AttemptRecord* const attempt_;
  std::vector<std::unique_ptr<sdk::AttemptState>> saved_;  // By plugin index.
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_ATTEMPT_RECORD_H_
