// Which writes of objects of declared resources plugins may request.
#ifndef OUTBOARD_SHIM_FRAMEWORK_CUSTOM_RESOURCES_H_
#define OUTBOARD_SHIM_FRAMEWORK_CUSTOM_RESOURCES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::framework {

// What the configuration allows for one resource.
struct CustomResourceRule {
  std::string resource;
  std::vector<v1beta1::DeclaredResource::Verb> verbs;
  std::vector<std::string> namespaces;  // empty: all
};

// Whether the write of an object is complete, of a resource that its plugin declared, and allowed.
// An event about an object needs no verb. OK for other kinds of effects. Pure.
// Errors: INTERNAL, as for every unusable answer; PERMISSION_DENIED if it is not allowed but the
// plugin declared it optional, which is not a fault.
absl::Status CheckObjectWrite(const v1beta1::Effect& effect,
                              const v1beta1::GetHostInfoResponse& host,
                              const std::vector<CustomResourceRule>& rules);

// Whether the effect writes an object of a declared resource. Plugins may also request these
// outside of an attempt. Pure.
bool IsObjectWrite(const v1beta1::Effect& effect);
// Whether the effect is an event about such an object. Plugins may record these, too, outside of an
// attempt. Pure.
bool IsObjectEvent(const v1beta1::Effect& effect);
// The object's name; empty for other kinds of effects. Pure.
const std::string& WrittenObject(const v1beta1::Effect& effect);

// Whether the plugin may request writes of objects.
bool WritesObjects(const v1beta1::PluginInfo& plugin);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_CUSTOM_RESOURCES_H_
