// What plugins need and a shim does not offer.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_SHIM_PROBLEMS_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_SHIM_PROBLEMS_H_

#include <google/protobuf/repeated_field.h>

#include <vector>

#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::runtime {

// Warnings about a plugin of the profile, one for each of these that the shim does not offer:
//   - a point of the plugin in this profile; bind and postBind belong to the shim itself,
//   - an action of its wake-up events,
//   - a form of its needed fields,
//   - an effect that a verb of its declared resources needs, and the push for writes in the
//     background. An optional resource needs nothing.
// Pure.
std::vector<v1beta1::ConfigProblem> ShimProblems(const v1beta1::ProfileConfig& profile,
                                                 const v1beta1::PluginInfo& plugin,
                                                 const v1beta1::ShimInfo& shim);

// How many problems refuse the configuration: all but warnings do.
int CountErrors(const google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem>& problems);
inline bool HasErrors(const google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem>& problems) {
  return CountErrors(problems) > 0;
}

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_SHIM_PROBLEMS_H_
