#include "plugins/priority_sort/priority_sort.h"

#include <cstdint>
#include <memory>
#include <string>

namespace outboard::priority_sort {
namespace {

class PrioritySort : public sdk::Plugin, public sdk::QueueSortPlugin {
 public:
  // Four bytes, big-endian, that decrease as the priority rises. The queue orders equal keys by
  // queueing time.
  std::string SortKey(const sdk::PodView& pod, const sdk::ClusterView& cluster) const override {
    const uint32_t ascending = static_cast<uint32_t>(pod.priority()) ^ 0x80000000u;
    const uint32_t key = ~ascending;
    return {static_cast<char>(key >> 24), static_cast<char>(key >> 16), static_cast<char>(key >> 8),
            static_cast<char>(key)};
  }
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "PrioritySort";
  d.extension_points = {v1beta1::EXTENSION_POINT_QUEUE_SORT};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<PrioritySort>();
  };
  return d;
}

}  // namespace outboard::priority_sort
