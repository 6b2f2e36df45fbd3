#include "plugins/volume_zone/volume_zone.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/validation.h"
#include "plugin_host/sdk/volumes.h"

namespace outboard::volume_zone {
namespace {

// A zone or region label, and its name since Kubernetes 1.17.
struct TopologyLabel {
  absl::string_view key;
  absl::string_view current_key;
};
constexpr absl::string_view kWaitForFirstConsumer = "WaitForFirstConsumer";
constexpr absl::string_view kZone = "topology.kubernetes.io/zone";
constexpr absl::string_view kRegion = "topology.kubernetes.io/region";
constexpr std::array<TopologyLabel, 4> kTopologyLabels = {{
    {"failure-domain.beta.kubernetes.io/zone", kZone},
    {"failure-domain.beta.kubernetes.io/region", kRegion},
    {kZone, kZone},
    {kRegion, kRegion},
}};

// Values of one label of a volume; the node must have one of them.
struct VolumeTopology {
  TopologyLabel label;
  std::vector<std::string> values;
};

struct TopologyState : sdk::AttemptState {
  std::vector<VolumeTopology> topologies;
};

// `a__b`: both zones. nullopt if one of them is empty; the label is ignored then.
std::optional<std::vector<std::string>> ParseZones(absl::string_view text) {
  std::vector<std::string> zones;
  for (absl::string_view part : absl::StrSplit(text, "__")) {
    const absl::string_view zone = absl::StripAsciiWhitespace(part);
    if (zone.empty()) return std::nullopt;
    zones.emplace_back(zone);
  }
  return zones;
}

void AddTopologies(const v1beta1::PersistentVolume& volume, std::vector<VolumeTopology>* out) {
  for (const TopologyLabel& label : kTopologyLabels) {
    auto it = volume.labels().find(std::string(label.key));
    if (it == volume.labels().end()) continue;
    std::optional<std::vector<std::string>> zones = ParseZones(it->second);
    if (zones) out->push_back({label, *std::move(zones)});
  }
}

// Whether both have the same values, in any order.
bool SameTopologies(const v1beta1::PersistentVolume& a, const v1beta1::PersistentVolume& b) {
  const auto values_of = [](const v1beta1::PersistentVolume& volume) {
    std::vector<VolumeTopology> topologies;
    AddTopologies(volume, &topologies);
    std::map<absl::string_view, std::set<std::string>> values;
    for (const VolumeTopology& topology : topologies) {
      values[topology.label.key].insert(topology.values.begin(), topology.values.end());
    }
    return values;
  };
  return values_of(a) == values_of(b);
}

class VolumeZone : public sdk::Plugin,
                   public sdk::PreFilterPlugin,
                   public sdk::FilterPlugin,
                   public sdk::QueueingHintPlugin {
 public:
  // A node helps if it is new or if any label changed.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_object == nullptr) return sdk::Hint::kQueue;
    return Helps(pod.proto(), change.old_object, *change.new_object) ? sdk::Hint::kQueue
                                                                     : sdk::Hint::kSkip;
  }

  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    std::vector<VolumeTopology> topologies;
    sdk::Verdict verdict = Collect(attempt, &topologies);
    if (!verdict.ok()) return verdict;
    if (topologies.empty()) return sdk::Verdict::Skip();
    attempt.NewFilterState<TopologyState>().topologies = std::move(topologies);
    return verdict;
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* state = attempt.filter_state<TopologyState>();
    if (state == nullptr) {  // The profile may have no PreFilter.
      auto& made = attempt.NewFilterState<TopologyState>();
      sdk::Verdict verdict = Collect(attempt, &made.topologies);
      if (!verdict.ok()) {
        block.ForEach([&](int i, sdk::Slot) { sink.RejectWith(i, verdict); });
        return;
      }
      state = &made;
    }
    block.ForEach([&](int i, sdk::Slot slot) {
      if (!Matches(state->topologies, attempt.cluster().node(slot))) sink.Reject(i, conflict_);
    });
  }

 private:
  static bool Helps(const v1beta1::Pod& pod, const v1beta1::ClusterObject* before,
                    const v1beta1::ClusterObject& after) {
    if (after.has_persistent_volume_claim()) {
      return sdk::NamesClaim(pod, after.persistent_volume_claim());
    }
    if (after.has_persistent_volume()) {
      return before == nullptr ||
             !SameTopologies(before->persistent_volume(), after.persistent_volume());
    }
    return after.storage_class().volume_binding_mode() == kWaitForFirstConsumer;
  }

  static sdk::Verdict Collect(const sdk::Attempt& attempt, std::vector<VolumeTopology>* out) {
    const v1beta1::Pod& pod = attempt.pod().proto();
    for (const v1beta1::Volume& volume : pod.volumes()) {
      if (volume.source() != "persistentVolumeClaim") continue;
      sdk::Verdict verdict =
          CollectOfClaim(attempt.cluster().objects(), pod.namespace_(), volume.claim_name(), out);
      if (!verdict.ok()) return verdict;
    }
    return sdk::Verdict::Success();
  }

  static sdk::Verdict CollectOfClaim(const sdk::ClusterObjects& objects,
                                     const std::string& namespace_name, const std::string& name,
                                     std::vector<VolumeTopology>* out) {
    using sdk::Verdict;
    if (name.empty()) return Verdict::Unresolvable("PersistentVolumeClaim had no name");
    const auto* claim = sdk::FindClaim(objects, namespace_name, name);
    if (claim == nullptr) {
      return Verdict::Unresolvable(sdk::NotFoundText("persistentvolumeclaim", name));
    }
    if (claim->volume_name().empty()) return CheckUnbound(objects, *claim);
    const auto* volume = objects.Find<v1beta1::PersistentVolume>(claim->volume_name());
    if (volume == nullptr) {
      return Verdict::Unresolvable(sdk::NotFoundText("persistentvolume", claim->volume_name()));
    }
    AddTopologies(*volume, out);
    return Verdict::Success();
  }

  // A claim without a volume passes if the scheduler will choose its volume.
  static sdk::Verdict CheckUnbound(const sdk::ClusterObjects& objects,
                                   const v1beta1::PersistentVolumeClaim& claim) {
    using sdk::Verdict;
    const std::string& class_name = claim.storage_class_name();
    if (class_name.empty()) {
      return Verdict::Unresolvable("PersistentVolumeClaim had no pv name and storageClass name");
    }
    const auto* storage_class = objects.Find<v1beta1::StorageClass>(class_name);
    if (storage_class == nullptr) {
      return Verdict::Unresolvable(sdk::NotFoundText("storageclass.storage.k8s.io", class_name));
    }
    if (storage_class->volume_binding_mode().empty()) {
      return Verdict::Unresolvable(
          absl::StrCat("VolumeBindingMode not set for StorageClass ", sdk::Quote(class_name)));
    }
    if (storage_class->volume_binding_mode() == kWaitForFirstConsumer) return Verdict::Success();
    return Verdict::Unresolvable("PersistentVolume had no name");
  }

  static bool Matches(const std::vector<VolumeTopology>& topologies, const sdk::NodeView& node) {
    // A cluster with one zone may have no labels.
    const bool anywhere =
        std::none_of(kTopologyLabels.begin(), kTopologyLabels.end(),
                     [&](const TopologyLabel& label) { return node.Label(label.key).has_value(); });
    if (anywhere) return true;
    return std::all_of(topologies.begin(), topologies.end(), [&](const VolumeTopology& topology) {
      std::optional<absl::string_view> value = node.Label(topology.label.key);
      if (!value) value = node.Label(topology.label.current_key);
      return value && std::find(topology.values.begin(), topology.values.end(), *value) !=
                          topology.values.end();
    });
  }

  const sdk::Verdict conflict_ = sdk::Verdict::Unresolvable("node(s) had no available volume zone");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = "VolumeZone";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER};
  d.wake_up_events = {
      sdk::WakeOn("StorageClass", {Event::ACTION_ADD}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_LABEL}),
      sdk::WakeOn("PersistentVolumeClaim", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}),
      sdk::WakeOn("PersistentVolume", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER})};
  d.signature = {{"metadata.namespace", "spec.volumes"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<VolumeZone>();
  };
  return d;
}

}  // namespace outboard::volume_zone
