#include "plugin_host/sdk/tolerations.h"

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outboard::sdk {
namespace {

// As upstream, stricter than a parser of integers: no plus sign, no leading zero, no "-0".
std::optional<int64_t> CanonicalInteger(absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || absl::AlphaNum(value).Piece() != text) return std::nullopt;
  return value;
}

// Compares the taint's value with the toleration's.
template <typename Compare>
bool ComparesTo(const v1beta1::Taint& taint, const v1beta1::Toleration& toleration,
                Compare compare) {
  const std::optional<int64_t> of_taint = CanonicalInteger(taint.value());
  const std::optional<int64_t> of_toleration = CanonicalInteger(toleration.value());
  return of_taint.has_value() && of_toleration.has_value() && compare(*of_taint, *of_toleration);
}

}  // namespace

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
    case v1beta1::Toleration::OPERATOR_LT:
      return ComparesTo(taint, toleration, std::less<>());
    case v1beta1::Toleration::OPERATOR_GT:
      return ComparesTo(taint, toleration, std::greater<>());
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
