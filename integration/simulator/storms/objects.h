// A storm's gangs and nodes as Kubernetes objects.
#ifndef OUTBOARD_INTEGRATION_SIMULATOR_STORMS_OBJECTS_H_
#define OUTBOARD_INTEGRATION_SIMULATOR_STORMS_OBJECTS_H_

#include <string>

#include "absl/time/time.h"
#include "integration/simulator/storms/plan.h"
#include "shim/kube/objects.h"

namespace outboard::simulate::storms {

// A member's pod; `incarnation` distinguishes it from its predecessors, `life` distinguishes its
// gang's.
kube::PodPtr PodOf(const Gang& gang, int life, size_t member, int incarnation, absl::Time now);
// Its gang's object; null: the dialect has no object.
kube::ClusterObjectPtr ObjectOf(const Gang& gang, int life, absl::Time now);
kube::NodePtr NodeOf(size_t index, int incarnation, const Amounts& amounts);
std::string NodeName(size_t index);

}  // namespace outboard::simulate::storms

#endif  // OUTBOARD_INTEGRATION_SIMULATOR_STORMS_OBJECTS_H_
