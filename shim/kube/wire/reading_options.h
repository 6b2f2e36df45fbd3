// What the administrator decides about reading pods.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_READING_OPTIONS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_READING_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace outboard::kube {

// Names of variables that give a number of cooperating processes: none of them holds a secret.
std::vector<std::string> DefaultEnvironmentVariables();

struct ReadingOptions {
  // Environment variables of containers that are read, if they have a literal value. Others are
  // never in the shim's memory, because environments hold secrets.
  absl::flat_hash_set<std::string> environment_variables;
  // Kubernetes' feature gate TaintTolerationComparisonOperators: tolerations with the operators Lt
  // and Gt are read. Without it their operator is unknown, so that they tolerate nothing.
  bool comparison_operators = false;
};

// Sets the options of the process. An object keeps what was read of it, so this comes before the
// first object is read.
//
// Threading: only while no other thread reads objects.
void SetReading(ReadingOptions options);
// Threading: any thread. Lifetime: until the next SetReading.
const ReadingOptions& Reading();

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_READING_OPTIONS_H_
