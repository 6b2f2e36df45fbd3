#include "plugin_host/sdk/tolerations.h"

namespace outboard::sdk {

bool Tolerates(const v1beta1::Toleration& toleration, const v1beta1::Taint& taint) {
  if (toleration.effect() != v1beta1::TAINT_EFFECT_UNSPECIFIED &&
      toleration.effect() != taint.effect()) {
    return false;
  }
  if (!toleration.key().empty() && toleration.key() != taint.key()) return false;
  switch (toleration.operator_()) {
    case v1beta1::Toleration::OPERATOR_UNSPECIFIED:
    case v1beta1::Toleration::OPERATOR_EQUAL:
      return toleration.value() == taint.value();
    case v1beta1::Toleration::OPERATOR_EXISTS:
      return true;
    default:
      return false;
  }
}

bool ToleratesAny(const Tolerations& tolerations, const v1beta1::Taint& taint) {
  for (const v1beta1::Toleration& toleration : tolerations) {
    if (Tolerates(toleration, taint)) return true;
  }
  return false;
}

namespace {

template <typename Taints>
const v1beta1::Taint* Find(const Taints& taints, const Tolerations& tolerations) {
  for (const v1beta1::Taint& taint : taints) {
    if (TaintFilters(taint) && !ToleratesAny(tolerations, taint)) return &taint;
  }
  return nullptr;
}

}  // namespace

const v1beta1::Taint* FindUntoleratedTaint(const std::vector<v1beta1::Taint>& taints,
                                           const Tolerations& tolerations) {
  return Find(taints, tolerations);
}

const v1beta1::Taint* FindUntoleratedTaint(
    const google::protobuf::RepeatedPtrField<v1beta1::Taint>& taints,
    const Tolerations& tolerations) {
  return Find(taints, tolerations);
}

}  // namespace outboard::sdk
