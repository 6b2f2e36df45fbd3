// The group that a pod declares, for the shim's own checks.
#ifndef OUTBOARD_SHIM_FRAMEWORK_POD_GROUP_H_
#define OUTBOARD_SHIM_FRAMEWORK_POD_GROUP_H_

#include <string>

#include "outboard/v1beta1/types.pb.h"

namespace outboard::framework {

// Equal for pods of one group, different for others; empty: the pod declares none. Knows all
// dialects that plugins support (proto/workloads/pod_group_name.h). `pod` has all annotations.
// Pure.
std::string DeclaredGroup(const v1beta1::Pod& pod);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_POD_GROUP_H_
