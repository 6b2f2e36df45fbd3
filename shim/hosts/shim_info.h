// What this build of the shim tells hosts about itself.
#ifndef OUTBOARD_SHIM_HOSTS_SHIM_INFO_H_
#define OUTBOARD_SHIM_HOSTS_SHIM_INFO_H_

#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::hosts {

// ConfigureRequest.shim of this build; always the same.
const v1beta1::ShimInfo& ThisShim();

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_SHIM_INFO_H_
