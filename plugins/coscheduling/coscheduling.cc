#include "plugins/coscheduling/coscheduling.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/pod_group_objects.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/sort_key.h"

namespace outboard::coscheduling {
namespace {

using sdk::GroupKey;
using sdk::GroupRef;

constexpr size_t kNameBytes = 44;

// FNV-1a: hosts that replace each other must agree, and absl::Hash differs by process.
uint64_t Digest(absl::string_view text) {
  uint64_t digest = 14695981039346656037u;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return digest;
}

// The digest distinguishes names that are equal within the key's length, so that groups do not mix.
void AppendName(const GroupKey& group, std::string* key) {
  std::string name = absl::StrCat(group.ns, "/", group.name);
  const uint64_t digest = Digest(absl::StrCat(group.Text(), " ", group.controller_uid));
  name.resize(kNameBytes);
  key->append(name);
  sdk::AppendBigEndian(digest, 8, key);
}

absl::Time CreationOf(const v1beta1::Pod& pod) {
  return absl::FromUnixSeconds(pod.creation_unix_seconds());
}

class Coscheduling : public sdk::Plugin,
                     public sdk::QueueSortPlugin,
                     public sdk::PostFilterPlugin,
                     public sdk::ClusterObserver {
 public:
  explicit Coscheduling(sdk::ShimNotifier* pushes) : pushes_(pushes) {}

  std::string SortKey(const sdk::PodView& pod, const sdk::ClusterView&) const override {
    std::string key;
    sdk::AppendPriority(pod.priority(), &key);
    const std::optional<GroupRef> ref = sdk::GroupOf(pod.proto());
    if (!ref) {
      sdk::AppendTime(CreationOf(pod.proto()), &key);
      return key;
    }
    sdk::AppendTime(TimeOf(ref->key), &key);
    AppendName(ref->key, &key);
    return key;
  }

  // A member found no node. The plugin cannot make room, but the group's turn changes.
  sdk::Verdict PostFilter(const sdk::Attempt& attempt, sdk::DryRun&,
                          sdk::PostFilterAnswer*) const override {
    if (const auto ref = sdk::GroupOf(attempt.pod().proto())) NoteFailure(ref->key);
    return sdk::Verdict(v1beta1::CODE_UNSCHEDULABLE, std::vector<std::string>{});
  }

  void OnReset() override {
    groups_.clear();
    members_.clear();
    changed_.clear();
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    const std::string& uid = pod.pod.uid();
    const std::optional<GroupRef> ref = sdk::GroupOf(pod.pod);
    bool had_place = false;
    if (const auto known = members_.find(uid); known != members_.end()) {
      had_place = known->second.has_place;
      if (!ref || known->second.group != ref->key) Leave(uid);
    }
    if (!ref) return;
    const bool leaves = pod.pod.deletion_unix_seconds() != 0;
    const bool is_bound = pod.place == sdk::Place::kBound;
    const bool has_place = pod.place == sdk::Place::kWaiting || pod.place == sdk::Place::kAssumed;
    members_.insert_or_assign(uid, Member{ref->key, has_place});
    Group& group = groups_[ref->key];
    const absl::Time before = group.time();
    group.oldest = std::min(group.oldest, CreationOf(pod.pod));
    if (group.time() != before && !group.members.empty()) changed_.insert(ref->key);
    group.members.insert_or_assign(uid, !is_bound && !leaves);
    // The pod lost its place before it was bound.
    if (had_place && !has_place && !is_bound && !leaves) NoteFailure(ref->key);
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override { Leave(pod.pod.uid()); }
  void OnObjectChanged(const v1beta1::ClusterObject*,
                       const v1beta1::ClusterObject& object) override {
    if (!object.has_generic_object()) return;
    const std::optional<sdk::PodGroupObject> read = sdk::ReadPodGroup(object.generic_object());
    if (!read) return;
    Group& group = groups_[read->key];
    group.has_object = true;
    const absl::Time before = group.time();
    group.created.reset();
    if (const auto& created = read->spec.created) group.created = created->value;
    if (group.time() != before && !group.members.empty()) changed_.insert(read->key);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (!object.has_generic_object()) return;
    const v1beta1::GenericObject& removed = object.generic_object();
    const auto dialect = sdk::DialectOfResource(removed.resource());
    if (!dialect) return;
    const GroupKey key{*dialect, removed.namespace_(), removed.name(), ""};
    const auto group = groups_.find(key);
    if (group == groups_.end()) return;
    group->second.has_object = false;
    if (std::exchange(group->second.created, std::nullopt)) changed_.insert(key);
    DropIfEmpty(key);
  }
  void OnTick(absl::Time now) override {
    now_ = now;
    for (const GroupKey& key : std::exchange(changed_, {})) {
      const auto group = groups_.find(key);
      if (group != groups_.end()) AskAgain(group->second);
    }
  }

 private:
  struct Group {
    // By uid; false: in no queue any more. Pods with a place may return to the queue with their old
    // key.
    absl::flat_hash_map<std::string, bool> members;
    bool has_object = false;
    std::optional<absl::Time> created;           // of the object
    absl::Time oldest = absl::InfiniteFuture();  // of all past and present members
    std::optional<absl::Time> failed;
    absl::Time noted = absl::InfinitePast();  // the tick of the last failure

    absl::Time time() const { return failed ? *failed : created ? *created : oldest; }
  };
  struct Member {
    GroupKey group;
    bool has_place = false;  // which it may lose
  };
  absl::Time TimeOf(const GroupKey& key) const {
    const auto group = groups_.find(key);
    return group == groups_.end() ? sdk::LastKeyTime() : group->second.time();
  }

  // At most once a tick, about a second: the members of a group fail one after the other, and each
  // note makes the shim request all their keys again.
  void NoteFailure(const GroupKey& key) const {
    const auto found = groups_.find(key);
    if (found == groups_.end() || now_ == absl::InfinitePast()) return;
    Group& group = found->second;
    if (group.noted == now_) return;
    group.noted = now_;
    // Unique times: the group that failed first comes first.
    last_failure_ = std::max(now_, last_failure_ + absl::Nanoseconds(1));
    group.failed = last_failure_;
    AskAgain(group);
  }

  void AskAgain(const Group& group) const {
    std::vector<std::string> queued;
    for (const auto& [uid, may_be_queued] : group.members) {
      if (may_be_queued) queued.push_back(uid);
    }
    if (queued.empty()) return;
    std::sort(queued.begin(), queued.end());
    pushes_->SortKeysChanged(queued);
  }

  void Leave(const std::string& uid) {
    const auto member = members_.find(uid);
    if (member == members_.end()) return;
    const GroupKey key = member->second.group;
    members_.erase(member);
    groups_[key].members.erase(uid);
    DropIfEmpty(key);
  }
  void DropIfEmpty(const GroupKey& key) {
    const auto group = groups_.find(key);
    if (group->second.members.empty() && !group->second.has_object) groups_.erase(group);
  }

  sdk::ShimNotifier* const pushes_;
  // PostFilter records failures here. They are the only state that a restart of the host loses.
  mutable absl::flat_hash_map<GroupKey, Group> groups_;
  absl::flat_hash_map<std::string, Member> members_;  // by uid
  // Groups whose creation time changed since the last tick: while members arrive one by one, each
  // may be the oldest.
  absl::flat_hash_set<GroupKey> changed_;
  mutable absl::Time last_failure_ = absl::InfinitePast();
  absl::Time now_ = absl::InfinitePast();
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "Coscheduling";
  d.extension_points = {v1beta1::EXTENSION_POINT_QUEUE_SORT, v1beta1::EXTENSION_POINT_POST_FILTER};
  d.needed_fields = sdk::GroupAnnotationFields();
  d.declared_resources = sdk::PodGroupResources();
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<Coscheduling>(context.pushes);
  };
  return d;
}

}  // namespace outboard::coscheduling
