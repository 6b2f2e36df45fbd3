// Groups and their members, kept up to date by the cache.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_POD_GROUP_INDEX_H_
#define OUTBOARD_PLUGIN_HOST_SDK_POD_GROUP_INDEX_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"
#include "plugin_host/sdk/job_gangs.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// The state of a member. Finished pods leave the cache and so the group.
enum class MemberState {
  kPending,  // waits for a place; also if nominated
  kGated,    // has scheduling gates: not schedulable
  kAssumed,  // has a place, being bound
  kWaiting,  // has a place, waits at Permit
  kBound,
  kTerminating,  // is being deleted, in any place
};
inline constexpr size_t kMemberStates = 6;
MemberState StateOf(const PodRecord& pod);

struct Member {
  MemberState state = MemberState::kPending;
  std::string sub_group;
};

struct Group {
  GroupKey key;
  absl::flat_hash_map<std::string, Member> members;  // by uid
  std::array<int64_t, kMemberStates> counts{};       // of `members`, by state
  // From its object, with kJobName the Job; absent: it does not exist, or the dialect has no
  // objects.
  std::optional<GroupSpec> object;
  std::optional<bool> job_wants_gang;  // the Job's label kGangLabel

  int64_t count(MemberState state) const { return counts[static_cast<size_t>(state)]; }
  // Members that are placed or can be: excludes gated and terminating ones.
  int64_t existing() const { return count(MemberState::kPending) + placed(); }
  // Members with a place, excluding terminating ones.
  int64_t placed() const {
    return count(MemberState::kAssumed) + count(MemberState::kWaiting) + count(MemberState::kBound);
  }
};

// A change costs O(1), regardless of group sizes. Counts pods of all profiles.
//
//   void OnReset() override { groups_.Clear(); }
//   void OnPodChanged(const sdk::PodRecord& pod) override { groups_.SetPod(pod); }
//   void OnPodRemoved(const sdk::PodRecord& pod) override { groups_.RemovePod(pod); }
//   void OnObjectChanged(…, object) override { groups_.SetObject(object); }
//   void OnObjectRemoved(object) override { groups_.RemoveObject(object); }
//
// Threading: thread-compatible; the cache's thread.
// Lifetime:  groups have stable addresses until they are empty.
// Errors:    none; malformed values count as absent, with one warning.
class PodGroupIndex {
 public:
  // Ignores Jobs: their pods are groups only by their own annotations.
  explicit PodGroupIndex(std::string plugin) : malformed_(std::move(plugin)) {}
  // Jobs are gangs by these rules; reads labels of namespaces from `cluster`.
  PodGroupIndex(std::string plugin, JobGangRules jobs, ClusterView cluster)
      : jobs_(std::move(jobs)), cluster_(cluster), malformed_(std::move(plugin)) {}

  // A group and its number of existing members before a change. Null: no group changed.
  struct Change {
    const Group* group = nullptr;
    int64_t existed = 0;
    bool size_changed = false;  // The object was added or has another number; not for its status.
    bool job_decided = false;   // A Job was added, or its label kGangLabel changed.
  };
  void Clear();
  // The pod's current group. A group that it left has fewer members.
  Change SetPod(const PodRecord& pod);
  void RemovePod(const PodRecord& pod);
  // Objects of other kinds are ignored.
  Change SetObject(const v1beta1::ClusterObject& object);
  void RemoveObject(const v1beta1::ClusterObject& object);

  // Null: neither members nor an object.
  const Group* Find(const GroupKey& key) const;
  // The effective spec for a pod with this reference: its own annotations or the object. Valid
  // within one call and the lifetime of `ref`.
  const GroupSpec& SpecFor(const GroupRef& ref) const;
  // A member is bound, and the spec's number is only for the first start.
  bool HasStarted(const GroupRef& ref, const GroupSpec& spec) const;
  size_t size() const { return groups_.size(); }
  int64_t warned() const { return malformed_.warned(); }
  template <typename Fn>
  void ForEach(Fn&& fn) const {
    for (const auto& [key, group] : groups_) fn(*group);
  }

 private:
  Group& Get(const GroupKey& key);
  void Leave(const GroupKey& key, const std::string& uid);
  void DropIfEmpty(const GroupKey& key);
  void Warn(const std::string& about, const std::vector<MalformedValue>& values);
  Change SetJob(const v1beta1::GenericObject& object);
  void RemoveJob(const std::string& ns, const std::string& name);
  const GroupSpec& JobSpecFor(const GroupRef& ref) const;
  std::optional<bool> NamespaceWantsGangs(const std::string& ns) const;

  const JobGangRules jobs_{JobGangs::kNever, {}};
  const std::optional<ClusterView> cluster_;
  absl::flat_hash_map<GroupKey, std::unique_ptr<Group>> groups_;
  absl::flat_hash_map<std::string, GroupKey> key_of_pod_;  // by uid
  absl::flat_hash_map<std::string, GroupKey> key_of_job_;  // by namespace/name
  bool sees_jobs_ = false;  // The cache gets Jobs: a missing one will come.
  MalformedValues malformed_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POD_GROUP_INDEX_H_
