// What plugins keep for a pod from Reserve until it is bound.
#ifndef OUTBOARD_SHIM_FRAMEWORK_KEPT_STATES_H_
#define OUTBOARD_SHIM_FRAMEWORK_KEPT_STATES_H_

#include <string>
#include <vector>

#include "outboard/v1beta1/reserve.pb.h"

namespace outboard::framework {

// What is wrong with the states of a host's answer; empty: nothing. `plugins`: the host's at
// reserve. Pure.
std::string FaultOfStates(const google::protobuf::RepeatedPtrField<v1beta1::PluginState>& states,
                          const std::vector<std::string>& plugins);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_KEPT_STATES_H_
