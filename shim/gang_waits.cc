#include "shim/gang_waits.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/workloads/pod_group_name.h"

namespace outboard::shim {
namespace {

constexpr size_t kMaxNamespaces = 100;

bool HasSize(const v1beta1::Pod& pod) {
  for (const char* key : workloads::kJobSizeAnnotations) {
    if (pod.annotations().contains(key)) return true;
  }
  return false;
}

}  // namespace

std::string GangWaits::KeyOf(const v1beta1::Pod& pod, bool* counts) const {
  const auto key = [&](absl::string_view kind, absl::string_view name, absl::string_view owner) {
    // None of these can contain a line break.
    return absl::StrCat(kind, "\n", pod.namespace_(), "\n", name, "\n", owner);
  };
  *counts = true;
  const std::optional<workloads::PodGroupName> group = workloads::PodGroupNameOf(pod);
  if (group && group->source != workloads::GroupSource::kJobName)
    return key(absl::StrCat(static_cast<int>(group->source)), group->name, "");
  if (group) {
    *counts = HasSize(pod);
    // A recreated controller of the same name has other pods.
    return key(absl::StrCat(static_cast<int>(group->source)), group->name, pod.controller().uid());
  }
  *counts = false;
  for (const std::string& label : job_labels_) {
    const auto found = pod.labels().find(label);
    if (found != pod.labels().end() && !found->second.empty()) return key(label, found->second, "");
  }
  return "";
}

void GangWaits::OnQueued(const v1beta1::Pod& pod, absl::Time now) {
  // Another component still holds a pod with gates: a quota, for example.
  if (!pod.scheduling_gates().empty() || key_of_pod_.contains(pod.uid())) return;
  bool counts = false;
  const std::string key = KeyOf(pod, &counts);
  if (key.empty()) return;
  key_of_pod_[pod.uid()] = key;
  Group& group = groups_[key];
  if (group.waiting.empty()) {
    group.ns = pod.namespace_();
    group.began = now;
  }
  group.counts = group.counts || counts;
  group.waiting.try_emplace(pod.uid());
}

GangWaits::Group* GangWaits::Find(const std::string& uid) {
  const auto key = key_of_pod_.find(uid);
  return key == key_of_pod_.end() ? nullptr : &groups_.at(key->second);
}

void GangWaits::OnTried(const std::string& uid) {
  if (Group* const group = Find(uid)) group->tried = true;
}

void GangWaits::OnPermitWaitEnd(const std::string& uid, bool allowed, absl::Time now) {
  Group* const group = Find(uid);
  if (group == nullptr) return;
  group->tried = group->counts = true;
  if (allowed) return;
  Member& member = group->waiting[uid];
  // All members of a round are rejected one after the other; the first one stands for the round.
  if (member.failed_in_round == group->round) {
    ++group->round;
    Observe(*group, "failed", now);
  }
  member.failed_in_round = group->round;
}

void GangWaits::OnBound(const std::string& uid, BoundBy by) {
  Group* const group = Find(uid);
  if (group == nullptr) return;
  group->waiting[uid].bound = true;
  group->bound_here = group->bound_here || by == BoundBy::kUs;
}

void GangWaits::OnLeft(const std::string& uid, absl::Time now) {
  const auto key = key_of_pod_.find(uid);
  if (key == key_of_pod_.end()) return;
  const auto found = groups_.find(key->second);
  Group& group = found->second;
  const bool bound = group.waiting[uid].bound;
  group.waiting.erase(uid);
  key_of_pod_.erase(key);
  if (!group.waiting.empty()) return;
  if (group.counts && bound && group.bound_here) {
    Observe(group, "bound", now);
  } else if (group.counts && !bound && group.tried) {
    Observe(group, "deleted", now);
  }
  groups_.erase(found);
}

void GangWaits::Observe(const Group& group, absl::string_view result, absl::Time now) {
  const bool has_own_value =
      namespaces_.contains(group.ns) ||
      (namespaces_.size() < kMaxNamespaces && namespaces_.insert(group.ns).second);
  metrics::Observe(metrics_->gang_wait.With({has_own_value ? group.ns : "other", result}),
                   now - group.began);
}

}  // namespace outboard::shim
