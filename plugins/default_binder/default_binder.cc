#include "plugins/default_binder/default_binder.h"

#include <memory>

namespace outboard::default_binder {
namespace {

class DefaultBinder : public sdk::Plugin {};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "DefaultBinder";
  d.extension_points = {v1beta1::EXTENSION_POINT_BIND};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<DefaultBinder>();
  };
  return d;
}

}  // namespace outboard::default_binder
