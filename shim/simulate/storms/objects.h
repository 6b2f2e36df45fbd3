// A storm's gangs and nodes as Kubernetes objects.
#ifndef OUTBOARD_SHIM_SIMULATE_STORMS_OBJECTS_H_
#define OUTBOARD_SHIM_SIMULATE_STORMS_OBJECTS_H_

#include <string>

#include "absl/time/time.h"
#include "shim/kube/objects.h"
#include "shim/simulate/storms/plan.h"

namespace outboard::simulate::storms {

// A member's pod; `incarnation` tells it from those that were there before it, `life` its gang.
kube::PodPtr PodOf(const Gang& gang, int life, size_t member, int incarnation, absl::Time now);
// Its gang's object; null: the dialect has none.
kube::ClusterObjectPtr ObjectOf(const Gang& gang, int life, absl::Time now);
kube::NodePtr NodeOf(size_t index, int incarnation, const Amounts& amounts);
std::string NodeName(size_t index);

}  // namespace outboard::simulate::storms

#endif  // OUTBOARD_SHIM_SIMULATE_STORMS_OBJECTS_H_
