// Tells in PodGroup objects what became of their groups.
#ifndef OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_GROUP_STATUS_H_
#define OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_GROUP_STATUS_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/pod_group_index.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/views.h"

namespace outboard::atomic_replica_coordinator {

// Whether the status of this resource's objects is written; of other PodGroups it belongs to the
// schedulers that they come with.
bool KeepsStatusOf(absl::string_view resource);

// What there is to say of a group.
struct Finding {
  enum Kind { kNothing, kUnschedulable, kError, kScheduled };
  Kind kind = kNothing;
  std::string message;  // for people; why, unless it is scheduled
  // Members are still coming, or placed one by one: only worth a word if it stays so.
  bool may_pass = false;
  // Says less than what a search said, and so does not replace that.
  bool is_vague = false;

  friend bool operator==(const Finding&, const Finding&) = default;
};

// What the last search said of a group; an empty text: nothing.
struct LastWord {
  std::string text;
  bool is_error = false;

  friend bool operator==(const LastWord&, const LastWord&) = default;
};

// By where the members are and, as long as they are nowhere, by the last word. A group whose object
// says no number has nothing to say. Pure.
Finding FindingOf(const sdk::Group& group, const LastWord& last);

// The `status` that the object is to have; none: it is as it should be, or its status is not ours.
// `owner` as in occupiedBy: `namespace/name`, or empty. What others wrote there stays. Pure.
std::optional<nlohmann::json> NextStatus(sdk::GroupDialect dialect, const nlohmann::json& whole,
                                         const Finding& finding, const std::string& owner,
                                         absl::Time now);

// Keeps the status of objects as NextStatus says, of groups whose members are of one profile. By
// the mirror alone, but for the last words, which the next attempts say anew: so two hosts, or one
// that was killed, come to the same.
//
// Threading: thread-compatible; the mirror's thread. Lifetime: what it is given outlives it.
// Errors: none; a write that fails is asked for again, less and less often.
class GroupStatusKeeper {
 public:
  GroupStatusKeeper(std::string profile, const sdk::PodGroupIndex* groups, sdk::ClusterView cluster,
                    sdk::Pushes* pushes)
      : profile_(std::move(profile)), groups_(groups), cluster_(cluster), pushes_(pushes) {}

  void Clear();
  // A member or the object of the group changed.
  void Touch(const sdk::GroupKey& key);
  void ObjectChanged(const sdk::GroupKey& key);
  // A search, or the end of one, said this.
  void Say(const sdk::GroupKey& key, absl::string_view text, bool is_error);
  void Tick(absl::Time now);

 private:
  struct Entry {
    LastWord last;
    Finding::Kind written = Finding::kNothing;       // as the object was last found to say
    absl::Time next_text = absl::InfinitePast();     // earlier, only another kind is written
    absl::Time passes_until = absl::InfinitePast();  // of a finding that may pass
  };
  // True if there is nothing to do until something changes.
  bool Keep(const sdk::GroupKey& key, absl::Time now);
  // The member that speaks for the group; null: it has none, or another profile's does.
  const sdk::PodRecord* SpeakerOf(const sdk::Group& group) const;

  const std::string profile_;
  const sdk::PodGroupIndex* const groups_;
  const sdk::ClusterView cluster_;
  sdk::Pushes* const pushes_;
  absl::flat_hash_map<sdk::GroupKey, Entry> entries_;
  absl::flat_hash_set<sdk::GroupKey> changed_;
  sdk::WritePace pace_;
  size_t turn_ = 0;
};

}  // namespace outboard::atomic_replica_coordinator

#endif  // OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_GROUP_STATUS_H_
