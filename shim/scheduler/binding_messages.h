// The texts of failed binds, in kube-scheduler's words.
#ifndef OUTBOARD_SHIM_SCHEDULER_BINDING_MESSAGES_H_
#define OUTBOARD_SHIM_SCHEDULER_BINDING_MESSAGES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outboard::scheduler {

inline constexpr char kDefaultBinder[] = "DefaultBinder";

// Pure.
inline std::string BindFailure(absl::string_view plugin, absl::string_view message) {
  return absl::StrCat("binding rejected: running Bind plugin \"", plugin, "\": ", message);
}

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_BINDING_MESSAGES_H_
