#include "plugin_host/sdk/tolerations.h"

namespace outboard::sdk {

bool Tolerates(const v1alpha1::Toleration& toleration, const v1alpha1::Taint& taint) {
  if (toleration.effect() != v1alpha1::TAINT_EFFECT_UNSPECIFIED &&
      toleration.effect() != taint.effect()) {
    return false;
  }
  if (!toleration.key().empty() && toleration.key() != taint.key()) return false;
  switch (toleration.operator_()) {
    case v1alpha1::Toleration::OPERATOR_UNSPECIFIED:
    case v1alpha1::Toleration::EQUAL:
      return toleration.value() == taint.value();
    case v1alpha1::Toleration::EXISTS:
      return true;
    default:
      return false;
  }
}

bool ToleratesAny(const Tolerations& tolerations, const v1alpha1::Taint& taint) {
  for (const v1alpha1::Toleration& toleration : tolerations) {
    if (Tolerates(toleration, taint)) return true;
  }
  return false;
}

namespace {

template <typename Taints>
const v1alpha1::Taint* Find(const Taints& taints, const Tolerations& tolerations) {
  for (const v1alpha1::Taint& taint : taints) {
    if (TaintFilters(taint) && !ToleratesAny(tolerations, taint)) return &taint;
  }
  return nullptr;
}

}  // namespace

const v1alpha1::Taint* FindUntoleratedTaint(const std::vector<v1alpha1::Taint>& taints,
                                            const Tolerations& tolerations) {
  return Find(taints, tolerations);
}

const v1alpha1::Taint* FindUntoleratedTaint(
    const google::protobuf::RepeatedPtrField<v1alpha1::Taint>& taints,
    const Tolerations& tolerations) {
  return Find(taints, tolerations);
}

}  // namespace outboard::sdk
