// Groups and their members, kept up to date by the mirror.
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
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/pod_groups.h"
#include "proto/outboard/v1alpha1/objects.pb.h"

namespace outboard::sdk {

// What a member is, each pod one. Finished pods leave the mirror, so they are no members any more.
enum class MemberState {
  kPending,  // waits for a place; nominated ones too
  kGated,    // has scheduling gates: nothing tries to place it
  kAssumed,  // has its place, on the way to being bound
  kWaiting,  // has its place, waits at Permit
  kBound,
  kTerminating,  // is being deleted, wherever it is
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
  // What its object says; absent: there is none, or the dialect has none.
  std::optional<GroupSpec> object;

  int64_t count(MemberState state) const { return counts[static_cast<size_t>(state)]; }
  // Members that are, or can be, placed: gated ones and those being deleted are missing.
  int64_t existing() const { return count(MemberState::kPending) + placed(); }
  // Members that have a place which they may keep.
  int64_t placed() const {
    return count(MemberState::kAssumed) + count(MemberState::kWaiting) + count(MemberState::kBound);
  }
};

// A change costs O(1), whatever the sizes of groups. Pods count whichever profile they are of.
//
//   void OnReset() override { groups_.Clear(); }
//   void OnPodChanged(const sdk::PodRecord& pod) override { groups_.SetPod(pod); }
//   void OnPodRemoved(const sdk::PodRecord& pod) override { groups_.RemovePod(pod); }
//   void OnObjectChanged(…, object) override { groups_.SetObject(object); }
//   void OnObjectRemoved(object) override { groups_.RemoveObject(object); }
//
// Threading: thread-compatible; the mirror's thread.
// Lifetime:  groups have stable addresses until nothing of them is left.
// Errors:    none; what cannot be read counts as absent, and is warned of once.
class PodGroupIndex {
 public:
  explicit PodGroupIndex(std::string plugin) : malformed_(std::move(plugin)) {}

  // A group and how many existing members it had before a change. Null: no group was concerned.
  struct Change {
    const Group* group = nullptr;
    int64_t existed = 0;
    bool size_changed = false;  // The object came, or says another number; not its status alone.
  };
  void Clear();
  // The group that the pod is now in; one that it left has fewer members.
  Change SetPod(const PodRecord& pod);
  void RemovePod(const PodRecord& pod);
  // Objects of other kinds are ignored.
  Change SetObject(const v1alpha1::ClusterObject& object);
  void RemoveObject(const v1alpha1::ClusterObject& object);

  // Null: neither members nor an object.
  const Group* Find(const GroupKey& key) const;
  // What holds for a pod that says this of its group: its own words or the object's. Within one
  // call, and while `ref` is there.
  const GroupSpec& SpecFor(const GroupRef& ref) const;
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

  absl::flat_hash_map<GroupKey, std::unique_ptr<Group>> groups_;
  absl::flat_hash_map<std::string, GroupKey> key_of_pod_;  // by uid
  MalformedValues malformed_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POD_GROUP_INDEX_H_
