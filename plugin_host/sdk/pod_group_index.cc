#include "plugin_host/sdk/pod_group_index.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/pod_group_objects.h"

namespace outboard::sdk {
namespace {

std::string About(const PodRecord& pod) {
  return absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name());
}

std::string About(const GroupKey& key) { return absl::StrCat("PodGroup of ", key.Text()); }

bool SaySame(const GroupSpec& a, const GroupSpec& b) {
  return a.fault == b.fault && a.min.has_value() == b.min.has_value() &&
         (!a.min || a.min->value == b.min->value);
}

}  // namespace

MemberState StateOf(const PodRecord& pod) {
  if (pod.pod.deletion_unix_seconds() != 0) return MemberState::kTerminating;
  switch (pod.place) {
    case Place::kBound:
      return MemberState::kBound;
    case Place::kAssumed:
      return MemberState::kAssumed;
    case Place::kWaiting:
      return MemberState::kWaiting;
    case Place::kNone:
    case Place::kNominated:
      break;
  }
  return pod.pod.scheduling_gates().empty() ? MemberState::kPending : MemberState::kGated;
}

void PodGroupIndex::Clear() {
  groups_.clear();
  key_of_pod_.clear();
  malformed_.Clear();
}

PodGroupIndex::Change PodGroupIndex::SetPod(const PodRecord& pod) {
  const std::string& uid = pod.pod.uid();
  const auto known = key_of_pod_.find(uid);
  std::optional<GroupRef> ref = GroupOf(pod.pod);
  if (known != key_of_pod_.end() && (!ref || known->second != ref->key)) {
    const GroupKey left = known->second;
    key_of_pod_.erase(known);
    Leave(left, uid);
    malformed_.Forget(About(pod));
  }
  if (!ref) return {};
  Group& group = Get(ref->key);
  Change change{&group, group.existing()};
  key_of_pod_.insert_or_assign(uid, ref->key);
  const auto [member, is_new] = group.members.try_emplace(uid);
  if (!is_new) --group.counts[static_cast<size_t>(member->second.state)];
  member->second.state = StateOf(pod);
  member->second.sub_group = std::move(ref->sub_group);
  ++group.counts[static_cast<size_t>(member->second.state)];
  Warn(About(pod), ref->malformed);
  return change;
}

void PodGroupIndex::RemovePod(const PodRecord& pod) {
  const auto known = key_of_pod_.find(pod.pod.uid());
  if (known == key_of_pod_.end()) return;
  const GroupKey left = known->second;
  key_of_pod_.erase(known);
  Leave(left, pod.pod.uid());
  malformed_.Forget(About(pod));
}

PodGroupIndex::Change PodGroupIndex::SetObject(const v1beta1::ClusterObject& object) {
  if (!object.has_generic_object()) return {};
  std::optional<PodGroupObject> read = ReadPodGroup(object.generic_object());
  if (!read) return {};
  Group& group = Get(read->key);
  Change change{&group, group.existing()};
  change.size_changed = !group.object || !SaySame(*group.object, read->spec);
  group.object = std::move(read->spec);
  // A corrected value may become malformed again.
  if (read->malformed.empty()) malformed_.Forget(About(read->key));
  Warn(About(read->key), read->malformed);
  return change;
}

void PodGroupIndex::RemoveObject(const v1beta1::ClusterObject& object) {
  if (!object.has_generic_object()) return;
  const std::optional<GroupDialect> dialect = DialectOfResource(object.generic_object().resource());
  if (!dialect) return;
  const GroupKey key{*dialect, object.generic_object().namespace_(), object.generic_object().name(),
                     ""};
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  found->second->object.reset();
  malformed_.Forget(About(key));
  DropIfEmpty(key);
}

const Group* PodGroupIndex::Find(const GroupKey& key) const {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : found->second.get();
}

const GroupSpec& PodGroupIndex::SpecFor(const GroupRef& ref) const {
  if (GroupResource(ref.key.dialect).empty()) return ref.own;
  const Group* group = Find(ref.key);
  if (group != nullptr && group->object) return *group->object;
  static const GroupSpec& not_found = *[] {
    auto* spec = new GroupSpec();
    spec->not_found = true;
    return spec;
  }();
  return not_found;
}

Group& PodGroupIndex::Get(const GroupKey& key) {
  std::unique_ptr<Group>& group = groups_[key];
  if (group == nullptr) {
    group = std::make_unique<Group>();
    group->key = key;
  }
  return *group;
}

void PodGroupIndex::Leave(const GroupKey& key, const std::string& uid) {
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  Group& group = *found->second;
  const auto member = group.members.find(uid);
  if (member != group.members.end()) {
    --group.counts[static_cast<size_t>(member->second.state)];
    group.members.erase(member);
  }
  DropIfEmpty(key);
}

void PodGroupIndex::DropIfEmpty(const GroupKey& key) {
  const auto found = groups_.find(key);
  if (found != groups_.end() && found->second->members.empty() && !found->second->object)
    groups_.erase(found);
}

void PodGroupIndex::Warn(const std::string& about, const std::vector<MalformedValue>& values) {
  for (const MalformedValue& value : values)
    malformed_.Warn(about, value.from, value.value, value.wanted);
}

}  // namespace outboard::sdk
