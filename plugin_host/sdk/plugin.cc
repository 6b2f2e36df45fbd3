#include "plugin_host/sdk/plugin.h"

namespace outboard::sdk {

v1alpha1::ClusterEvent WakeOn(std::string resource,
                              std::initializer_list<v1alpha1::ClusterEvent::Action> actions) {
  v1alpha1::ClusterEvent event;
  event.set_resource(std::move(resource));
  for (auto action : actions) event.add_actions(action);
  return event;
}

v1alpha1::CustomResource UsesResource(std::string resource,
                                      std::initializer_list<v1alpha1::CustomResource::Verb> verbs) {
  v1alpha1::CustomResource used;
  used.set_resource(std::move(resource));
  for (const v1alpha1::CustomResource::Verb verb : verbs) used.add_verbs(verb);
  return used;
}

v1alpha1::Interest InterestIn(ExtensionPoint point, std::initializer_list<std::string> fields) {
  v1alpha1::Interest interest;
  interest.set_extension_point(point);
  for (const auto& field : fields) interest.add_any_field_set(field);
  return interest;
}

}  // namespace outboard::sdk
