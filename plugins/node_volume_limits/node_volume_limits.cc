#include "plugins/node_volume_limits/node_volume_limits.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/volumes.h"

namespace outboard::node_volume_limits {
namespace {

// `driver/handle` to driver.
using VolumeSet = absl::flat_hash_map<std::string, std::string>;

// A volume as the CSI driver identifies it.
struct AttachableVolume {
  absl::string_view driver;
  std::string handle;
};

// Whether the pod has a volume that a driver may have to attach.
bool HasAttachableVolume(const v1beta1::Pod& pod) {
  return std::any_of(pod.volumes().begin(), pod.volumes().end(), [](const auto& volume) {
    return sdk::IsClaimVolume(volume) || volume.has_migrated();
  });
}

bool IsAttachable(const v1beta1::CsiVolume& csi) {
  return csi.in_tree_plugin().empty() || sdk::IsMigratedPlugin(csi.in_tree_plugin());
}

// The volume that will be provisioned for a claim, derived from its class. No driver uses such a
// handle.
std::optional<AttachableVolume> FutureVolume(const v1beta1::PersistentVolumeClaim& claim,
                                             const sdk::ClusterObjects& objects) {
  if (claim.storage_class_name().empty()) return std::nullopt;
  const auto* storage_class = objects.Find<v1beta1::StorageClass>(claim.storage_class_name());
  if (storage_class == nullptr) return std::nullopt;
  const absl::string_view provisioner = storage_class->provisioner();
  const absl::string_view driver = sdk::DriverOfProvisioner(provisioner).value_or(provisioner);
  if (driver.empty()) return std::nullopt;
  return AttachableVolume{driver, absl::StrCat("\n", claim.namespace_(), "/", claim.name())};
}

// nullopt: the claim has no volume that counts.
std::optional<AttachableVolume> VolumeOfClaim(const v1beta1::PersistentVolumeClaim& claim,
                                              const sdk::ClusterObjects& objects) {
  const v1beta1::PersistentVolume* volume =
      claim.volume_name().empty() ? nullptr
                                  : objects.Find<v1beta1::PersistentVolume>(claim.volume_name());
  if (volume == nullptr) return FutureVolume(claim, objects);
  const v1beta1::CsiVolume& csi = volume->csi();
  if (csi.driver().empty() || csi.volume_handle().empty() || !IsAttachable(csi)) {
    return std::nullopt;
  }
  return AttachableVolume{csi.driver(), csi.volume_handle()};
}

std::string UniqueName(absl::string_view driver, absl::string_view handle) {
  return absl::StrCat(driver, "/", handle);
}

// Adds the attachable volumes of a pod. A missing claim is an error for the new pod, and is ignored
// for other pods.
sdk::Verdict AddVolumes(const v1beta1::Pod& pod, bool is_new, const sdk::ClusterObjects& objects,
                        VolumeSet* volumes) {
  for (const v1beta1::Volume& volume : pod.volumes()) {
    const std::optional<sdk::PodClaim> named = sdk::ClaimOfVolume(pod, volume);
    if (!named) {
      const v1beta1::CsiVolume& csi = volume.migrated();
      if (volume.has_migrated() && IsAttachable(csi)) {
        volumes->try_emplace(UniqueName(csi.driver(), csi.volume_handle()), csi.driver());
      }
      continue;
    }
    if (named->name.empty()) return sdk::Verdict::Error("PersistentVolumeClaim had no name");
    const auto* claim = sdk::FindClaim(objects, pod.namespace_(), named->name);
    if (claim == nullptr) {
      if (!is_new) continue;
      return sdk::Verdict::Unresolvable(
          absl::StrCat("looking up PVC ", pod.namespace_(), "/", named->name, ": ",
                       sdk::NotFoundText("persistentvolumeclaim", named->name)));
    }
    if (named->ephemeral) {
      if (auto text = sdk::NotCreatedForPod(pod, *claim)) return sdk::Verdict::Error(*text);
    }
    if (std::optional<AttachableVolume> found = VolumeOfClaim(*claim, objects)) {
      volumes->try_emplace(UniqueName(found->driver, found->handle), std::string(found->driver));
    }
  }
  return sdk::Verdict::Success();
}

bool HasLimits(const v1beta1::CsiNode& node) {
  return std::any_of(node.drivers().begin(), node.drivers().end(),
                     [](const auto& driver) { return driver.has_allocatable_count(); });
}

// Whether the volume's in-tree plugin is migrated to a CSI driver; true even if the volume's name
// cannot be translated.
bool IsMigratable(const v1beta1::Volume& volume) {
  return volume.has_migrated() || volume.source() == "awsElasticBlockStore";
}

// Whether a deleted pod had a node, and a volume there that may have counted.
bool FreesVolumes(const v1beta1::Pod& gone) {
  if (gone.node_name().empty() && gone.nominated_node_name().empty()) return false;
  return std::any_of(gone.volumes().begin(), gone.volumes().end(), [](const auto& volume) {
    return sdk::IsClaimVolume(volume) || IsMigratable(volume);
  });
}

// Whether the detached volume may belong to a driver that the pod needs. For a pod with a claim the
// driver is not checked.
bool ConcernsPod(const v1beta1::VolumeAttachment& gone, const v1beta1::Pod& pod) {
  return std::any_of(pod.volumes().begin(), pod.volumes().end(), [&](const auto& volume) {
    if (volume.source() == "persistentVolumeClaim") return true;
    if (!IsMigratable(volume)) return false;
    return !volume.has_migrated() || volume.migrated().driver() == gone.attacher();
  });
}

// Whether the limit of a driver grew. As in kube-scheduler, a driver without a limit counts as 0.
bool AnyLimitGrew(const v1beta1::CsiNode& before, const v1beta1::CsiNode& after) {
  absl::flat_hash_map<absl::string_view, int32_t> limits;
  for (const auto& driver : before.drivers()) limits[driver.name()] = driver.allocatable_count();
  return std::any_of(after.drivers().begin(), after.drivers().end(), [&](const auto& driver) {
    const auto old = limits.find(driver.name());
    return driver.allocatable_count() > (old == limits.end() ? 0 : old->second);
  });
}

struct NewVolumes : sdk::AttemptState {
  sdk::Verdict verdict;  // If not success: the verdict on every node.
  VolumeSet volumes;
};

class NodeVolumeLimits : public sdk::Plugin,
                         public sdk::PreFilterPlugin,
                         public sdk::FilterPlugin,
                         public sdk::QueueingHintPlugin,
                         public sdk::ClusterObserver {
 public:
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    if (!HasAttachableVolume(attempt.pod().proto())) return sdk::Verdict::Skip();
    Collect(attempt);
    return sdk::Verdict::Success();
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* state = attempt.filter_state<NewVolumes>();
    if (state == nullptr) state = &Collect(attempt);  // The profile may have no PreFilter.
    if (!state->verdict.ok()) {
      block.ForEach([&](int i, sdk::Slot) { sink.RejectWith(i, state->verdict); });
      return;
    }
    if (state->volumes.empty()) return;
    const sdk::ClusterObjects& objects = attempt.cluster().objects();
    block.ForEach([&](int i, sdk::Slot slot) {
      const sdk::NodeView node = attempt.cluster().node(slot);
      const auto* csi_node = objects.Find<v1beta1::CsiNode>(node.name());
      if (csi_node == nullptr || !HasLimits(*csi_node)) return;
      const sdk::Verdict verdict = EvaluateNode(*state, node, *csi_node, objects);
      if (!verdict.ok()) sink.RejectWith(i, verdict);
    });
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    return Helps(pod.proto(), change) ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override { attachments_.clear(); }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    if (!object.has_volume_attachment()) return;
    if (old != nullptr) OnObjectRemoved(*old);
    const v1beta1::VolumeAttachment& attachment = object.volume_attachment();
    attachments_[attachment.node_name()].insert(attachment.name());
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (!object.has_volume_attachment()) return;
    auto node = attachments_.find(object.volume_attachment().node_name());
    if (node == attachments_.end()) return;
    node->second.erase(object.volume_attachment().name());
    if (node->second.empty()) attachments_.erase(node);
  }

 private:
  static bool Helps(const v1beta1::Pod& pod, const sdk::ObjectChange& change) {
    if (change.old_pod != nullptr) return FreesVolumes(*change.old_pod);
    const v1beta1::ClusterObject* before = change.old_object;
    const v1beta1::ClusterObject* after = change.new_object;
    if (after == nullptr) return ConcernsPod(before->volume_attachment(), pod);
    if (after->has_persistent_volume_claim()) {
      return sdk::UsesClaim(pod, after->persistent_volume_claim());
    }
    return before == nullptr || AnyLimitGrew(before->csi_node(), after->csi_node());
  }

  static NewVolumes& Collect(const sdk::Attempt& attempt) {
    auto& state = attempt.NewFilterState<NewVolumes>();
    state.verdict = AddVolumes(attempt.pod().proto(), /*is_new=*/true, attempt.cluster().objects(),
                               &state.volumes);
    return state;
  }

  // Recounts the pods of each node, so that pods of a hypothesis count.
  sdk::Verdict EvaluateNode(const NewVolumes& wanted, const sdk::NodeView& node,
                            const v1beta1::CsiNode& csi_node,
                            const sdk::ClusterObjects& objects) const {
    VolumeSet attached;
    for (const sdk::PodRecord* pod : node.pods()) {
      sdk::Verdict verdict = AddVolumes(pod->pod, /*is_new=*/false, objects, &attached);
      if (!verdict.ok()) return verdict;
    }
    absl::flat_hash_map<absl::string_view, int64_t> counts;  // By driver.
    for (const auto& [name, driver] : attached) ++counts[driver];
    // Volumes that are attached although no known pod uses them (yet, or any more).
    VolumeSet others;
    AddAttachments(node.name(), objects, attached, &others);
    for (const auto& [name, driver] : others) ++counts[driver];

    absl::flat_hash_map<absl::string_view, int64_t> new_counts;
    for (const auto& [name, driver] : wanted.volumes) {
      if (!attached.contains(name)) ++new_counts[driver];
    }
    for (const v1beta1::CsiNodeDriver& driver : csi_node.drivers()) {
      if (!driver.has_allocatable_count()) continue;
      auto more = new_counts.find(driver.name());
      if (more == new_counts.end()) continue;
      auto have = counts.find(driver.name());
      const int64_t sum = more->second + (have == counts.end() ? 0 : have->second);
      if (sum > driver.allocatable_count()) return exceeded_;
    }
    return sdk::Verdict::Success();
  }

  void AddAttachments(const std::string& node_name, const sdk::ClusterObjects& objects,
                      const VolumeSet& known, VolumeSet* out) const {
    auto names = attachments_.find(node_name);
    if (names == attachments_.end()) return;
    for (const std::string& name : names->second) {
      const auto* attachment = objects.Find<v1beta1::VolumeAttachment>(name);
      if (attachment == nullptr || attachment->attacher().empty()) continue;
      const auto* volume =
          objects.Find<v1beta1::PersistentVolume>(attachment->persistent_volume_name());
      // As in kube-scheduler, translated volumes are ignored here.
      if (volume == nullptr || !volume->has_csi() || !volume->csi().in_tree_plugin().empty()) {
        continue;
      }
      std::string unique = UniqueName(attachment->attacher(), volume->csi().volume_handle());
      if (!known.contains(unique)) out->try_emplace(std::move(unique), attachment->attacher());
    }
  }

  // Names of VolumeAttachments by node.
  absl::flat_hash_map<std::string, absl::flat_hash_set<std::string>> attachments_;
  const sdk::Verdict exceeded_ = sdk::Verdict::Unschedulable("node(s) exceed max volume count");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = "NodeVolumeLimits";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER};
  d.wake_up_events = {sdk::WakeOn("CSINode", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}),
                      sdk::WakeOn("Pod", {Event::ACTION_DELETE}),
                      sdk::WakeOn("PersistentVolumeClaim", {Event::ACTION_ADD}),
                      sdk::WakeOn("VolumeAttachment", {Event::ACTION_DELETE})};
  d.signature = {{"metadata.namespace", "spec.volumes"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NodeVolumeLimits>();
  };
  return d;
}

}  // namespace outboard::node_volume_limits
