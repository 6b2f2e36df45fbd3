// Which pods of a trace are equivalent.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_EQUIVALENCE_CLASS_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_EQUIVALENCE_CLASS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "shim/kube/objects.h"

namespace outboard::simulate::trace {

// How plugins compare a pod with others.
struct EquivalenceClass {
  // For plugins, pods of one kind differ only in `amount`, creation time and names. Empty: the pod
  // is like no other.
  std::string kind;
  // Only plugins that declare `amount_field` (PluginInfo) use the amount, and the order of
  // creation. If a pod finds no node, a pod that asks for more and was created later finds none
  // either. Empty: no plugin uses an amount.
  int64_t amount = 0;
  absl::string_view amount_field;
};

// Equivalent pods differ only in names, their jobs' names, creation times and the declared run time
// (outboard/run-seconds), which is the amount. Members of groups of one size are equivalent too:
// they come and go together here. A pod that depends on other pods, volumes or claims is equivalent
// to no other. Pure.
EquivalenceClass EquivalenceClassOf(const kube::PodObject& pod);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_EQUIVALENCE_CLASS_H_
