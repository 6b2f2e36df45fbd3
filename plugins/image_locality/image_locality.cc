#include "plugins/image_locality/image_locality.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "plugin_host/sdk/node_local_plugin.h"

namespace outboard::image_locality {
namespace {

constexpr int64_t kMebibyte = 1024 * 1024;
constexpr int64_t kMinThreshold = 23 * kMebibyte;
constexpr int64_t kMaxContainerThreshold = 1000 * kMebibyte;

// Adds `:latest` as runtimes do; a name with a tag or a digest stays unchanged.
std::string NormalizedImageName(std::string name) {
  const size_t colon = name.rfind(':');
  const size_t slash = name.rfind('/');
  const bool tagged = colon != std::string::npos && (slash == std::string::npos || colon > slash);
  if (!tagged) name += ":latest";
  return name;
}

// An image of the pod that some nodes have, and the amount that it adds to the sum of such a node.
struct KnownImage {
  uint32_t id;
  int64_t score;
};

class ImageLocality : public sdk::Plugin, public sdk::NodeLocalPlugin, public sdk::ScorePlugin {
 public:
  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    const sdk::NodeTable& table = attempt.cluster().nodes();
    std::vector<KnownImage> images;
    // An image that two containers use counts twice.
    for (const v1beta1::Container& container : pod.init_containers()) {
      AddImage(table, container.image(), &images);
    }
    for (const v1beta1::Container& container : pod.containers()) {
      AddImage(table, container.image(), &images);
    }
    for (const v1beta1::Volume& volume : pod.volumes()) {
      if (volume.source() == "image") AddImage(table, volume.image_reference(), &images);
    }
    const int64_t max_threshold =
        kMaxContainerThreshold * (pod.init_containers_size() + pod.containers_size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      const sdk::NodeView node = attempt.cluster().node(nodes[i]);
      int64_t sum = 0;
      for (const KnownImage& image : images) {
        if (node.HasImage(image.id)) sum += image.score;
      }
      if (sum < kMinThreshold) {
        sum = kMinThreshold;
      } else if (sum > max_threshold) {
        sum = max_threshold;
      }
      raw[i] = sdk::kMaxScore * (sum - kMinThreshold) / (max_threshold - kMinThreshold);
    }
    return sdk::Verdict::Success();
  }

 private:
  // An image on few nodes counts less, so that these nodes do not attract all pods.
  static void AddImage(const sdk::NodeTable& table, const std::string& name,
                       std::vector<KnownImage>* images) {
    const uint32_t id = table.image_names.Find(NormalizedImageName(name));
    if (id == sdk::StringTable::kNone) return;
    const sdk::ImageState& state = table.image_states[id];
    const double spread =
        static_cast<double>(state.node_count) / static_cast<double>(table.order.size());
    images->push_back({id, static_cast<int64_t>(static_cast<double>(state.size_bytes) * spread)});
  }
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "ImageLocality";
  d.extension_points = {v1beta1::EXTENSION_POINT_SCORE};
  d.signature = {{"spec.containers", "spec.volumes"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<ImageLocality>();
  };
  return d;
}

}  // namespace outboard::image_locality
