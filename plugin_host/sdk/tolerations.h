// Taints and tolerations with Kubernetes' semantics.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TOLERATIONS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TOLERATIONS_H_

#include <vector>

#include "google/protobuf/repeated_field.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::sdk {

using Tolerations = google::protobuf::RepeatedPtrField<v1beta1::Toleration>;

// True if the toleration covers the taint: effect (unset: all), key (empty: all), then operator.
bool Tolerates(const v1beta1::Toleration& toleration, const v1beta1::Taint& taint);
bool ToleratesAny(const Tolerations& tolerations, const v1beta1::Taint& taint);

// Whether a taint keeps pods away (NoSchedule, NoExecute).
inline bool TaintFilters(const v1beta1::Taint& taint) {
  return taint.effect() == v1beta1::TAINT_EFFECT_NO_SCHEDULE ||
         taint.effect() == v1beta1::TAINT_EFFECT_NO_EXECUTE;
}

// The first taint that filters and that no toleration covers; null if none.
const v1beta1::Taint* FindUntoleratedTaint(const std::vector<v1beta1::Taint>& taints,
                                           const Tolerations& tolerations);
const v1beta1::Taint* FindUntoleratedTaint(
    const google::protobuf::RepeatedPtrField<v1beta1::Taint>& taints,
    const Tolerations& tolerations);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TOLERATIONS_H_
