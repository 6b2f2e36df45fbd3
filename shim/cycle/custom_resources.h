// What plugins may have done with objects of custom resources.
#ifndef OUTBOARD_SHIM_CYCLE_CUSTOM_RESOURCES_H_
#define OUTBOARD_SHIM_CYCLE_CUSTOM_RESOURCES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/outboard/v1alpha1/effect.pb.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"

namespace outboard::cycle {

// What the configuration allows for one resource.
struct CustomResourceRule {
  std::string resource;
  std::vector<v1alpha1::CustomResource::Verb> verbs;
  std::vector<std::string> namespaces;  // empty: everywhere
};

// Whether a write of an object is complete, of a resource that its plugin declared, and allowed.
// OK for effects of other kinds. Threading: pure. Errors: INTERNAL, as for every answer that is of
// no use; PERMISSION_DENIED where the plugin declared that it can do without, which is none.
absl::Status CheckObjectWrite(const v1alpha1::Effect& effect,
                              const v1alpha1::GetHostInfoResponse& host,
                              const std::vector<CustomResourceRule>& rules);

// Whether the effect writes an object of a declared resource: what a plugin may want of its own
// accord, too. Pure.
bool IsObjectWrite(const v1alpha1::Effect& effect);
// Its name; empty for effects of other kinds. Pure.
const std::string& WrittenObject(const v1alpha1::Effect& effect);

// Whether the plugin may want objects written.
bool KeepsObjects(const v1alpha1::PluginInfo& plugin);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_CUSTOM_RESOURCES_H_
