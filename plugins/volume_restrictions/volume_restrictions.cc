#include "plugins/volume_restrictions/volume_restrictions.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/volumes.h"

namespace outboard::volume_restrictions {
namespace {

constexpr char kReadWriteOncePod[] = "ReadWriteOncePod";

bool IsRestrictedDisk(const v1beta1::Volume& volume) {
  const std::string& source = volume.source();
  return source == "gcePersistentDisk" || source == "awsElasticBlockStore" || source == "rbd" ||
         source == "iscsi";
}

bool HasRestrictedDisk(const v1beta1::Pod& pod) {
  return std::any_of(pod.volumes().begin(), pod.volumes().end(), IsRestrictedDisk);
}

bool ShareMonitor(const v1beta1::Volume& a, const v1beta1::Volume& b) {
  return std::any_of(a.monitors().begin(), a.monitors().end(), [&](const std::string& monitor) {
    return std::find(b.monitors().begin(), b.monitors().end(), monitor) != b.monitors().end();
  });
}

// Whether two pods on one node must not use these volumes.
bool Conflict(const v1beta1::Volume& a, const v1beta1::Volume& b) {
  if (a.source() != b.source() || !IsRestrictedDisk(a) || a.disk() != b.disk()) return false;
  if (a.source() == "awsElasticBlockStore") return true;  // Not even for reading.
  if (a.read_only() && b.read_only()) return false;
  return a.source() != "rbd" || (a.pool() == b.pool() && ShareMonitor(a, b));
}

// Whether two pods must not share a node.
bool ConflictOfPods(const v1beta1::Pod& pod, const v1beta1::Pod& other) {
  for (const v1beta1::Volume& volume : pod.volumes()) {
    if (!IsRestrictedDisk(volume)) continue;
    for (const v1beta1::Volume& theirs : other.volumes()) {
      if (Conflict(volume, theirs)) return true;
    }
  }
  return false;
}

// Whether both pods name the same claim; as in kube-scheduler, access modes are ignored.
bool ShareClaim(const v1beta1::Pod& pod, const v1beta1::Pod& other) {
  absl::flat_hash_set<absl::string_view> names;
  for (const v1beta1::Volume& volume : pod.volumes()) {
    if (volume.source() == "persistentVolumeClaim") names.insert(volume.claim_name());
  }
  return std::any_of(other.volumes().begin(), other.volumes().end(), [&](const auto& volume) {
    return volume.source() == "persistentVolumeClaim" && names.contains(volume.claim_name());
  });
}

bool ConflictOnNode(const v1beta1::Pod& pod, const sdk::NodeView& node) {
  return std::any_of(node.pods().begin(), node.pods().end(),
                     [&](const sdk::PodRecord* other) { return ConflictOfPods(pod, other->pod); });
}

struct ClaimsState : sdk::AttemptState {
  // Names of the pod's ReadWriteOncePod claims.
  absl::flat_hash_set<std::string> exclusive;
  // Uses of these claims, counted as in kube-scheduler.
  int users = 0;
  bool has_disks = false;

  std::unique_ptr<sdk::AttemptState> Clone() const override {
    return std::make_unique<ClaimsState>(*this);
  }
  // As in kube-scheduler, compares only names, although the pod may be in another namespace.
  int Users(const v1beta1::Pod& pod) const {
    int count = 0;
    for (const v1beta1::Volume& volume : pod.volumes()) {
      if (volume.source() == "persistentVolumeClaim" && exclusive.contains(volume.claim_name())) {
        ++count;
      }
    }
    return count;
  }
};

class VolumeRestrictions : public sdk::Plugin,
                           public sdk::PreFilterPlugin,
                           public sdk::FilterPlugin,
                           public sdk::QueueingHintPlugin,
                           public sdk::ClusterObserver {
 public:
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    ClaimsState state;
    state.has_disks = HasRestrictedDisk(pod);
    for (const v1beta1::Volume& volume : pod.volumes()) {
      if (volume.source() != "persistentVolumeClaim") continue;
      const v1beta1::PersistentVolumeClaim* claim =
          sdk::FindClaim(attempt.cluster().objects(), pod.namespace_(), volume.claim_name());
      if (claim == nullptr) {
        return sdk::Verdict::Unresolvable(
            sdk::NotFoundText("persistentvolumeclaim", volume.claim_name()));
      }
      const auto& modes = claim->access_modes();
      if (std::find(modes.begin(), modes.end(), kReadWriteOncePod) == modes.end()) continue;
      if (!state.exclusive.insert(claim->name()).second) continue;
      if (users_.contains(sdk::NamespacedKey(pod.namespace_(), claim->name()))) ++state.users;
    }
    if (!state.has_disks && state.users == 0) return sdk::Verdict::Skip();
    attempt.NewFilterState<ClaimsState>(std::move(state));
    return sdk::Verdict::Success();
  }

  sdk::Verdict AddPod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                      const sdk::NodeView& node) const override {
    return Recount(attempt, pod, 1);
  }
  sdk::Verdict RemovePod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                         const sdk::NodeView& node) const override {
    return Recount(attempt, pod, -1);
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* state = attempt.filter_state<ClaimsState>();
    const v1beta1::Pod& pod = attempt.pod().proto();
    if (state == nullptr || state->has_disks) {
      block.ForEach([&](int i, sdk::Slot slot) {
        if (ConflictOnNode(pod, attempt.cluster().node(slot))) sink.Reject(i, disk_conflict_);
      });
    }
    if (state == nullptr) {
      block.ForEach([&](int i, sdk::Slot slot) { sink.RejectWith(i, no_state_); });
    } else if (state->users > 0) {
      sink.RejectAll(block.candidates, claim_in_use_);
    }
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    bool helps = true;  // Every new node helps.
    if (change.old_pod != nullptr) {
      const v1beta1::Pod& gone = *change.old_pod;
      helps = gone.namespace_() == pod.namespace_name() &&
              (ConflictOfPods(pod.proto(), gone) || ShareClaim(pod.proto(), gone));
    } else if (change.new_object != nullptr) {
      helps = sdk::NamesClaim(pod.proto(), change.new_object->persistent_volume_claim());
    }
    return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override { users_.clear(); }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    for (const v1beta1::Volume& volume : pod.pod.volumes()) {
      if (volume.source() != "persistentVolumeClaim") continue;
      ++users_[sdk::NamespacedKey(pod.pod.namespace_(), volume.claim_name())];
    }
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    for (const v1beta1::Volume& volume : pod.pod.volumes()) {
      if (volume.source() != "persistentVolumeClaim") continue;
      auto it = users_.find(sdk::NamespacedKey(pod.pod.namespace_(), volume.claim_name()));
      if (it != users_.end() && --it->second == 0) users_.erase(it);
    }
  }

 private:
  sdk::Verdict Recount(const sdk::Attempt& attempt, const sdk::PodView& pod, int sign) const {
    auto* state = attempt.filter_state<ClaimsState>();
    if (state == nullptr) return no_state_;
    state->users += sign * state->Users(pod.proto());
    return sdk::Verdict::Success();
  }

  absl::flat_hash_map<std::string, int> users_;  // Volumes of pods on nodes, by namespace/claim.
  const sdk::Verdict disk_conflict_ = sdk::Verdict::Unschedulable("node(s) had no available disk");
  const sdk::Verdict claim_in_use_ = sdk::Verdict::Unschedulable(
      "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
      "in-use by another pod");
  // The profile may have no PreFilter.
  const sdk::Verdict no_state_ =
      sdk::Verdict::Error("cannot read \"PreFilterVolumeRestrictions\" from cycleState");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = "VolumeRestrictions";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER};
  d.wake_up_events = {sdk::WakeOn("Pod", {Event::ACTION_DELETE}),
                      sdk::WakeOn("Node", {Event::ACTION_ADD}),
                      sdk::WakeOn("PersistentVolumeClaim", {Event::ACTION_ADD})};
  d.signature = {{"metadata.namespace", "spec.volumes"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<VolumeRestrictions>();
  };
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_FILTER,
                           v1beta1::EXTENSION_POINT_PRE_FILTER);
  return d;
}

}  // namespace outboard::volume_restrictions
