// Two builds of one plugin for the benchmark: it prefers nodes with an even or an odd number.
#include <memory>

#include "plugin_host/sdk/shared_object.h"

namespace {

#if defined(PREFERENCE_even)
constexpr char kLast[] = "02468";
#else
constexpr char kLast[] = "13579";
#endif

class Preference : public outboard::sdk::Plugin, public outboard::sdk::NodeScorePlugin {
 public:
  int64_t ScoreNode(const outboard::sdk::Attempt& attempt,
                    const outboard::sdk::NodeView& node) const override {
    const absl::string_view name = node.name();
    return absl::string_view(kLast).find(name.back()) == absl::string_view::npos
               ? 0
               : outboard::sdk::kMaxScore;
  }
};

outboard::sdk::PluginDescriptor Descriptor() {
  outboard::sdk::PluginDescriptor descriptor;
  descriptor.name = "Preference";
  descriptor.extension_points = {outboard::v1beta1::EXTENSION_POINT_SCORE};
  descriptor.create = [](const outboard::sdk::PluginContext&)
      -> absl::StatusOr<std::unique_ptr<outboard::sdk::Plugin>> {
    return std::make_unique<Preference>();
  };
  return descriptor;
}

}  // namespace

OUTBOARD_PLUGIN_OBJECT(&Descriptor);
