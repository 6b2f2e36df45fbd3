#include "plugin_host/runtime/plugin_info.h"

#include <vector>

#include "plugin_host/runtime/wake_up_events.h"

namespace outboard::runtime {

v1beta1::PluginInfo PluginInfoOf(const sdk::PluginDescriptor& descriptor) {
  v1beta1::PluginInfo info;
  info.set_name(descriptor.name);
  for (auto point : descriptor.extension_points) info.add_extension_points(point);
  info.set_default_weight(descriptor.default_weight);
  info.set_args_schema(descriptor.args_schema);
  const std::vector<v1beta1::ClusterEvent> events = WakeUpEventsOf(descriptor);
  info.mutable_wake_up_events()->Add(events.begin(), events.end());
  for (const std::string& field : descriptor.needed_fields) info.add_needed_fields(field);
  for (const std::string& field : descriptor.optional_fields) info.add_optional_fields(field);
  info.mutable_interests()->Add(descriptor.interests.begin(), descriptor.interests.end());
  for (v1beta1::Interest& interest : *info.mutable_interests())
    interest.set_no_pod(interest.any_field_set().empty() && !interest.every_pod());
  info.mutable_declared_resources()->Add(descriptor.declared_resources.begin(),
                                         descriptor.declared_resources.end());
  return info;
}

}  // namespace outboard::runtime
