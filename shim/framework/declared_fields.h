// Which fields on request plugins declare.
#ifndef OUTBOARD_SHIM_FRAMEWORK_DECLARED_FIELDS_H_
#define OUTBOARD_SHIM_FRAMEWORK_DECLARED_FIELDS_H_

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::framework {

// Whether the host's plugin of this name declares the path, as needed or as optional. Pure.
inline bool DeclaresField(const v1beta1::GetHostInfoResponse& host, absl::string_view plugin,
                          absl::string_view path) {
  return absl::c_any_of(host.plugins(), [&](const v1beta1::PluginInfo& its) {
    return its.name() == plugin && (absl::c_linear_search(its.needed_fields(), path) ||
                                    absl::c_linear_search(its.optional_fields(), path));
  });
}

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_DECLARED_FIELDS_H_
