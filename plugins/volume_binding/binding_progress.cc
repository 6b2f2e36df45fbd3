#include "plugins/volume_binding/binding_progress.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"
#include "plugin_host/sdk/volumes.h"
#include "plugins/volume_binding/claim_matching.h"

namespace outboard::volume_binding {
namespace {

using sdk::Quote;
using sdk::Verdict;

Verdict Wait() { return Verdict(sdk::kWait, "volumes are not bound yet"); }

// Whether `a` is a later version than `b`. Versions are decimal numbers without leading zeros.
bool IsLater(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}

// nullopt: the volume can be used on the node.
std::optional<std::string> AffinityFault(const IndexedVolume& volume, const sdk::NodeView& node,
                                         const v1beta1::CsiNode* csi_node) {
  if (volume.ReachesTranslated(node, csi_node)) return std::nullopt;
  return absl::StrCat("pv ", Quote(volume.volume.name()), " node affinity doesn't match node ",
                      Quote(node.name()), ": no matching NodeSelectorTerms");
}

Verdict CheckBinding(const v1beta1::BindVolume& bind, const std::string& version,
                     const sdk::NodeView& node, const v1beta1::CsiNode* csi_node,
                     const sdk::ClusterObjects& objects, const VolumeIndex& index) {
  const IndexedVolume* volume = index.Find(bind.name());
  if (volume == nullptr) {
    return Verdict::Error(absl::StrCat("failed to check binding: ",
                                       sdk::NotFoundText("persistentvolumes", bind.name())));
  }
  const auto* claim = sdk::FindClaim(objects, bind.claim().namespace_(), bind.claim().name());
  if (claim == nullptr) {
    return Verdict::Error(absl::StrCat(
        "failed to check binding: ",
        sdk::NotFoundText("persistentvolumeclaims",
                          sdk::NamespacedKey(bind.claim().namespace_(), bind.claim().name()))));
  }
  // The cluster cache does not have the written version yet.
  if (IsLater(version, volume->volume.resource_version())) return Wait();
  if (auto fault = AffinityFault(*volume, node, csi_node)) return Verdict::Error(*fault);
  if (volume->volume.claim_ref().uid().empty()) {
    return Verdict::Error(absl::StrCat("ClaimRef got reset for pv ", Quote(bind.name())));
  }
  return IsFullyBound(*claim) ? Verdict::Success() : Wait();
}

Verdict CheckProvision(const v1beta1::SelectNode& select, const std::string& version,
                       const sdk::NodeView& node, const v1beta1::CsiNode* csi_node,
                       const sdk::ClusterObjects& objects, const VolumeIndex& index) {
  const auto* claim = sdk::FindClaim(objects, select.namespace_(), select.name());
  if (claim == nullptr) {
    return Verdict::Error(
        absl::StrCat("failed to check provisioning pvc: ",
                     sdk::NotFoundText("persistentvolumeclaims",
                                       sdk::NamespacedKey(select.namespace_(), select.name()))));
  }
  if (IsLater(version, claim->resource_version())) return Wait();
  // A provisioner that fails removes the annotation.
  if (claim->selected_node() != node.name()) {
    return Verdict::Error(absl::StrCat("provisioning failed for PVC ", Quote(claim->name())));
  }
  if (!claim->volume_name().empty()) {
    const IndexedVolume* volume = index.Find(claim->volume_name());
    if (volume == nullptr) return Wait();  // The cluster cache may be behind.
    if (auto fault = AffinityFault(*volume, node, csi_node)) return Verdict::Error(*fault);
  }
  return IsFullyBound(*claim) ? Verdict::Success() : Wait();
}

Verdict CheckAll(absl::string_view node_name, const sdk::PreBindProgress& progress,
                 const sdk::ClusterView& cluster, const VolumeIndex& index) {
  const std::optional<sdk::NodeView> node = cluster.FindNode(node_name);
  if (!node) {
    return Verdict::Error(absl::StrCat("failed to get node ", Quote(node_name), ": ",
                                       sdk::NotFoundText("node", node_name)));
  }
  const auto* csi_node = cluster.objects().Find<v1beta1::CsiNode>(node_name);
  for (size_t i = 0; i < progress.effects.size(); ++i) {
    const v1beta1::Effect& effect = *progress.effects[i];
    const std::string& version = progress.results[i]->resource_version();
    Verdict verdict;
    if (effect.has_bind_volume()) {
      verdict =
          CheckBinding(effect.bind_volume(), version, *node, csi_node, cluster.objects(), index);
    } else if (effect.has_select_node()) {
      verdict =
          CheckProvision(effect.select_node(), version, *node, csi_node, cluster.objects(), index);
    }
    if (!verdict.ok()) return verdict;
  }
  return Verdict::Success();
}

}  // namespace

Verdict CheckProgress(absl::string_view node_name, const sdk::PreBindProgress& progress,
                      const sdk::ClusterView& cluster, const VolumeIndex& index,
                      absl::Duration timeout) {
  const Verdict verdict = CheckAll(node_name, progress, cluster, index);
  if (verdict.ok()) return verdict;
  if (verdict.code() != sdk::kWait) {
    return Verdict::Error(absl::StrCat("binding volumes: ", verdict.reasons()[0]));
  }
  if (progress.elapsed < timeout) return verdict;
  return Verdict::Error("binding volumes: context deadline exceeded");
}

}  // namespace outboard::volume_binding
