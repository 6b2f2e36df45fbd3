#include "plugin_host/sdk/pod_group_index.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/cluster_objects.h"
#include "plugin_host/sdk/pod_group_objects.h"

namespace outboard::sdk {
namespace {

std::string About(const PodRecord& pod) {
  return absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name());
}

std::string About(const GroupKey& key) {
  return absl::StrCat(key.dialect == GroupDialect::kJobName ? "Job of " : "PodGroup of ",
                      key.Text());
}

const GroupSpec& NotFound() {
  static const GroupSpec& spec = *[] {
    auto* spec = new GroupSpec();
    spec->not_found = true;
    return spec;
  }();
  return spec;
}

// For pods that ask for a gang: the gang of one Job would start without the others.
const GroupSpec& PartOfJobSet() {
  static const GroupSpec& spec = *[] {
    auto* spec = new GroupSpec();
    spec->fault = "its JobSet has several Jobs, which are one gang: give its pods a PodGroup";
    return spec;
  }();
  return spec;
}

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
  key_of_job_.clear();
  sees_jobs_ = false;
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
  if (object.generic_object().resource() == kJobs) return SetJob(object.generic_object());
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
  if (object.generic_object().resource() == kJobs) {
    RemoveJob(object.generic_object().namespace_(), object.generic_object().name());
    return;
  }
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
  if (ref.key.dialect == GroupDialect::kJobName) return JobSpecFor(ref);
  if (GroupResource(ref.key.dialect).empty()) return ref.own;
  const Group* group = Find(ref.key);
  return group != nullptr && group->object ? *group->object : NotFound();
}

bool PodGroupIndex::HasStarted(const GroupRef& ref, const GroupSpec& spec) const {
  if (!spec.only_first_start) return false;
  const Group* group = Find(ref.key);
  return group != nullptr && group->count(MemberState::kBound) > 0;
}

// The pod's own number comes first. Of the labels, the pod's decides, then the Job's, then the
// namespace's; without a label the arguments.
const GroupSpec& PodGroupIndex::JobSpecFor(const GroupRef& ref) const {
  const bool has_number = ref.own.min || !ref.own.fault.empty();
  if (has_number || !ref.job.owned || !jobs_.Covers(ref.key.ns)) return ref.own;
  const Group* group = Find(ref.key);
  const bool is_known = group != nullptr && group->object;
  std::optional<bool> wants = ref.job.wants_gang;
  if (!wants && is_known) wants = group->job_wants_gang;
  const bool asks = wants.value_or(false);
  // Pods may be seen before their Job, which may have the label.
  if (!wants && !is_known && sees_jobs_) return NotFound();
  if (!wants) wants = NamespaceWantsGangs(ref.key.ns);
  if (!wants.value_or(jobs_.which == JobGangs::kAll)) return ref.own;
  if (ref.job.of_several_jobs) return asks ? PartOfJobSet() : ref.own;
  return is_known ? *group->object : NotFound();
}

std::optional<bool> PodGroupIndex::NamespaceWantsGangs(const std::string& ns) const {
  const auto* labels = cluster_ ? cluster_->NamespaceLabels(ns) : nullptr;
  if (labels == nullptr) return std::nullopt;
  const auto label = labels->find(kGangLabel);
  return label == labels->end() ? std::nullopt : ParseBool(label->second);
}

PodGroupIndex::Change PodGroupIndex::SetJob(const v1beta1::GenericObject& object) {
  if (!jobs_.Covers(object.namespace_())) return {};
  sees_jobs_ = true;
  JobObject read = ReadJob(object);
  const std::string name = NamespacedKey(object.namespace_(), object.name());
  const auto known = key_of_job_.find(name);
  // Another Job of the same name.
  if (known != key_of_job_.end() && known->second != read.key)
    RemoveJob(object.namespace_(), object.name());
  key_of_job_.insert_or_assign(name, read.key);
  Group& group = Get(read.key);
  Change change{&group, group.existing()};
  change.job_decided = !group.object || group.job_wants_gang != read.wants_gang;
  change.size_changed = !group.object || !SaySame(*group.object, read.spec);
  group.object = std::move(read.spec);
  group.job_wants_gang = read.wants_gang;
  if (read.malformed.empty()) malformed_.Forget(About(read.key));
  Warn(About(read.key), read.malformed);
  return change;
}

void PodGroupIndex::RemoveJob(const std::string& ns, const std::string& name) {
  const auto known = key_of_job_.find(NamespacedKey(ns, name));
  if (known == key_of_job_.end()) return;
  const GroupKey key = known->second;
  key_of_job_.erase(known);
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  found->second->object.reset();
  found->second->job_wants_gang.reset();
  malformed_.Forget(About(key));
  DropIfEmpty(key);
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
