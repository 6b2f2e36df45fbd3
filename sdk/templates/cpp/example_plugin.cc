#include "example_plugin.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "plugin_host/sdk/score.h"
#include "plugin_host/sdk/shared_object.h"
#include "plugin_host/sdk/validation.h"

namespace example_plugin {
namespace {

namespace sdk = outboard::sdk;
namespace v1beta1 = outboard::v1beta1;

// Annotation of a pod: the maximum price of its node.
constexpr char kMaxPrice[] = "example-plugin/max-price";

// The price in thousandths, so that scores are integers. nullopt if the text is not a price.
std::optional<int64_t> ReadPrice(absl::string_view text) {
  double price = 0;
  if (!absl::SimpleAtod(text, &price) || !(price >= 0) || price > 1e9) return std::nullopt;
  return std::llround(price * 1000);
}

class PricePlugin : public sdk::Plugin, public sdk::NodeFilterPlugin, public sdk::NodeScorePlugin {
 public:
  PricePlugin(std::string label, std::optional<int64_t> max_price)
      : label_(std::move(label)), max_price_(max_price) {}

  sdk::Verdict FilterNode(const sdk::Attempt& attempt, const sdk::NodeView& node) const override {
    std::optional<int64_t> limit = max_price_;
    if (const auto text = attempt.pod().Annotation(kMaxPrice)) {
      const auto wanted = ReadPrice(*text);
      if (!wanted.has_value()) return no_price_;
      limit = std::min(limit.value_or(*wanted), *wanted);
    }
    if (!limit.has_value()) return sdk::Verdict::Success();
    const std::optional<int64_t> price = PriceOf(node);
    if (!price.has_value()) return unknown_;
    return *price <= *limit ? sdk::Verdict::Success() : too_dear_;
  }

  int64_t ScoreNode(const sdk::Attempt& attempt, const sdk::NodeView& node) const override {
    return PriceOf(node).value_or(0);
  }

  // The cheapest node gets the best score; a node without a price scores like a free one.
  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                         absl::Span<int64_t> scores) const override {
    sdk::NormalizeScores(sdk::kMaxScore, /*reverse=*/true, scores);
    return sdk::Verdict::Success();
  }

 private:
  std::optional<int64_t> PriceOf(const sdk::NodeView& node) const {
    const auto text = node.Label(label_);
    return text.has_value() ? ReadPrice(*text) : std::nullopt;
  }

  const std::string label_;
  const std::optional<int64_t> max_price_;
  // Unresolvable: evicting pods does not change a node's price, so preemption cannot help.
  const sdk::Verdict no_price_ =
      sdk::Verdict::Unresolvable("the pod's annotation max-price is not a price");
  const sdk::Verdict unknown_ = sdk::Verdict::Unresolvable("node(s) had no price");
  const sdk::Verdict too_dear_ = sdk::Verdict::Unresolvable("node(s) cost too much");
};

absl::StatusOr<std::unique_ptr<sdk::Plugin>> Create(const sdk::PluginContext& context) {
  const sdk::ArgsObject args = context.args->root();
  const std::string label = args.String("label", "example-plugin/price");
  for (const std::string& error : sdk::QualifiedNameErrors(label))
    args.Problem("label", sdk::InvalidValue(label, error));
  std::optional<int64_t> max_price;
  if (args.Has("maxPrice")) {
    const double value = args.Double("maxPrice", 0);
    if (!(value > 0)) args.Problem("maxPrice", "Invalid value: must be greater than zero");
    max_price = std::llround(value * 1000);
  }
  // A reported problem rejects the configuration, and so does an unknown field.
  return std::make_unique<PricePlugin>(label, max_price);
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor descriptor;
  descriptor.name = "ExamplePlugin";
  descriptor.extension_points = {v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_SCORE};
  descriptor.args_schema = R"({
  "type": "object",
  "properties": {
    "label": {"type": "string", "description": "node label with the price", "default": "example-plugin/price"},
    "maxPrice": {"type": "number", "exclusiveMinimum": 0, "description": "maximum price of a pod's node"}
  }
})";
  // The shim sends only annotations that a plugin declares.
  descriptor.needed_fields = {"Pod.metadata.annotations['example-plugin/max-price']"};
  // Events that may make a rejected pod schedulable.
  descriptor.wake_up_events = {sdk::WakeOn(
      "Node",
      {v1beta1::ClusterEvent::ACTION_ADD, v1beta1::ClusterEvent::ACTION_UPDATE_NODE_LABEL})};
  descriptor.create = Create;
  return descriptor;
}

}  // namespace example_plugin

OUTBOARD_PLUGIN_OBJECT(&example_plugin::Descriptor);
