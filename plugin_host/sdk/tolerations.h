// Taints and tolerations with Kubernetes' semantics.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TOLERATIONS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TOLERATIONS_H_

#include <vector>

#include "google/protobuf/repeated_field.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::sdk {

using Tolerations = google::protobuf::RepeatedPtrField<v1alpha1::Toleration>;

// True if the toleration covers the taint: effect (unset: all), key (empty: all), then operator.
bool Tolerates(const v1alpha1::Toleration& toleration, const v1alpha1::Taint& taint);
bool ToleratesAny(const Tolerations& tolerations, const v1alpha1::Taint& taint);

// Whether a taint keeps pods away (NoSchedule, NoExecute).
inline bool TaintFilters(const v1alpha1::Taint& taint) {
  return taint.effect() == v1alpha1::NO_SCHEDULE || taint.effect() == v1alpha1::NO_EXECUTE;
}

// The first taint that filters and that no toleration covers; null if none.
const v1alpha1::Taint* FindUntoleratedTaint(const std::vector<v1alpha1::Taint>& taints,
                                            const Tolerations& tolerations);
const v1alpha1::Taint* FindUntoleratedTaint(
    const google::protobuf::RepeatedPtrField<v1alpha1::Taint>& taints,
    const Tolerations& tolerations);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TOLERATIONS_H_
