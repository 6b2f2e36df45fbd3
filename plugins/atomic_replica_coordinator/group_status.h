// Writes the state of pod groups to the status of their PodGroup objects.
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

// True if the plugin writes the status of this resource's objects. The status of other PodGroups
// belongs to the schedulers that define them.
bool KeepsStatusOf(absl::string_view resource);

// The state of a group that the status reports.
struct Finding {
  enum Kind { kNothing, kUnschedulable, kError, kScheduled };
  Kind kind = kNothing;
  std::string message;  // for people: the cause, unless the group is scheduled
  // The state is temporary (members arrive, or are placed one by one): report it only if it lasts.
  bool may_pass = false;
  // Less precise than the result of a search: it does not replace such a result.
  bool is_vague = false;

  friend bool operator==(const Finding&, const Finding&) = default;
};

// The result of the group's last search; an empty text: no result.
struct LastWord {
  std::string text;
  bool is_error = false;

  friend bool operator==(const LastWord&, const LastWord&) = default;
};

// Derives the state from the members' places; while no member has a place, from the last result.
// A group whose object has no size yields kNothing. Pure.
Finding FindingOf(const sdk::Group& group, const LastWord& last);

// Returns the new `status` of the object; nullopt: it is up to date, or the plugin does not own it.
// `owner` as in occupiedBy: `namespace/name`, or empty. Keeps what others wrote there. Pure.
std::optional<nlohmann::json> NextStatus(sdk::GroupDialect dialect, const nlohmann::json& whole,
                                         const Finding& finding, const std::string& owner,
                                         absl::Time now);

// Writes NextStatus to the objects of the groups whose members belong to one profile. Reads only
// the cluster cache and the last results. The next attempts report those results again, so a second
// host, or a host that restarts after a crash, reaches the same state.
//
// Threading: thread-compatible; runs on the cluster cache's thread.
// Lifetime: the constructor's arguments outlive the object.
// Errors: none; a failed write is retried with growing delays.
class GroupStatusKeeper {
 public:
  GroupStatusKeeper(std::string profile, const sdk::PodGroupIndex* groups, sdk::ClusterView cluster,
                    sdk::ShimNotifier* pushes)
      : profile_(std::move(profile)), groups_(groups), cluster_(cluster), pushes_(pushes) {}

  void Clear();
  // A member or the object of the group changed.
  void Touch(const sdk::GroupKey& key);
  void ObjectChanged(const sdk::GroupKey& key);
  // A search, or an attempt that ended, gave this result.
  void Say(const sdk::GroupKey& key, absl::string_view text, bool is_error);
  void Tick(absl::Time now);

 private:
  struct Entry {
    LastWord last;
    Finding::Kind written = Finding::kNothing;       // as last read from the object
    absl::Time next_text = absl::InfinitePast();     // before it, only another kind is written
    absl::Time passes_until = absl::InfinitePast();  // of a finding that may pass
  };
  // Returns true if nothing is left to do until the next change.
  bool Keep(const sdk::GroupKey& key, absl::Time now);
  // The member that represents the group; null: no member, or it belongs to another profile.
  const sdk::PodRecord* WriterOf(const sdk::Group& group) const;

  const std::string profile_;
  const sdk::PodGroupIndex* const groups_;
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  absl::flat_hash_map<sdk::GroupKey, Entry> entries_;
  absl::flat_hash_set<sdk::GroupKey> changed_;
  sdk::WritePace pace_;
  size_t turn_ = 0;
};

}  // namespace outboard::atomic_replica_coordinator

#endif  // OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_GROUP_STATUS_H_
