#include "shim/framework/pod_effects.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/custom_resources.h"
#include "shim/kube/wire/name_rules.h"

namespace outboard::framework {
namespace {

constexpr size_t kMaxPodKeys = 256;
// The API server's limit for all annotations of an object.
constexpr size_t kMaxAnnotationBytes = 256 << 10;
constexpr size_t kMaxReasonBytes = 128;
constexpr size_t kMaxKindBytes = 63;

absl::Status Wrong(const v1beta1::Effect& effect, absl::string_view what) {
  return WrongAnswer(absl::StrCat("Effect \"", CutText(effect.key(), 100), "\" of ",
                                  CutText(effect.plugin(), 100), ": ", what));
}

bool IsCamelCase(absl::string_view text, size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes &&
         absl::ascii_isupper(static_cast<unsigned char>(text[0])) &&
         absl::c_all_of(text, [](unsigned char c) { return absl::ascii_isalnum(c); });
}

// The fault of what one answer changes in the metadata of a pod; "" if there is none.
class MetadataCheck {
 public:
  explicit MetadataCheck(const std::vector<std::string>& allowed_keys)
      : allowed_keys_(allowed_keys) {}

  std::string SetAnnotations(const google::protobuf::Map<std::string, std::string>& annotations) {
    size_t bytes = 0;
    for (const auto& [key, value] : annotations) {
      bytes += key.size() + value.size();
      if (std::string fault = ChangeAnnotation(key); !fault.empty()) return fault;
    }
    if (bytes > kMaxAnnotationBytes) return absl::StrCat("annotations of ", bytes, " bytes");
    return "";
  }
  std::string ChangeAnnotation(const std::string& key) {
    // The API server reads the prefix of an annotation in lower case.
    return Change(key, absl::AsciiStrToLower(key), &annotations_);
  }
  std::string ChangeLabel(const std::string& key) { return Change(key, key, &labels_); }

 private:
  // `seen` holds the keys of the same map. `read_as` is the key as the API server reads it.
  std::string Change(const std::string& key, const std::string& read_as,
                     absl::flat_hash_set<std::string>* seen) const {
    if (std::string fault = kube::CheckQualifiedName(read_as); !fault.empty())
      return absl::StrCat("key \"", CutText(key, 100), "\" ", fault);
    if (BelongsToKubernetes(read_as) && !absl::c_linear_search(allowed_keys_, key)) {
      return absl::StrCat("key ", key,
                          " belongs to Kubernetes, and allowedPodKeys in the configuration of the "
                          "shim do not name it");
    }
    if (!seen->insert(key).second) return absl::StrCat("key ", key, " is named twice");
    return "";
  }

  const std::vector<std::string>& allowed_keys_;
  absl::flat_hash_set<std::string> annotations_;
  absl::flat_hash_set<std::string> labels_;
};

absl::Status CheckPatchPod(const v1beta1::Effect& effect,
                           const std::vector<std::string>& allowed_keys) {
  const v1beta1::PatchPod& patch = effect.patch_pod();
  const size_t keys = patch.set_annotations().size() + patch.set_labels().size() +
                      static_cast<size_t>(patch.remove_annotations_size()) +
                      static_cast<size_t>(patch.remove_labels_size());
  if (keys == 0) return Wrong(effect, "a patch of the pod without a change");
  if (keys > kMaxPodKeys)
    return Wrong(effect, absl::StrCat("a patch of the pod with ", keys, " keys"));
  MetadataCheck check(allowed_keys);
  std::string fault = check.SetAnnotations(patch.set_annotations());
  for (const auto& [key, value] : patch.set_labels()) {
    if (fault.empty()) fault = check.ChangeLabel(key);
    if (!fault.empty()) break;
    fault = kube::CheckLabelValue(value);
    if (!fault.empty()) fault = absl::StrCat("the value of label ", key, " ", fault);
  }
  for (const std::string& key : patch.remove_annotations()) {
    if (fault.empty()) fault = check.ChangeAnnotation(key);
  }
  for (const std::string& key : patch.remove_labels()) {
    if (fault.empty()) fault = check.ChangeLabel(key);
  }
  return fault.empty() ? absl::OkStatus() : Wrong(effect, fault);
}

absl::Status CheckCondition(const v1beta1::Effect& effect) {
  const v1beta1::SetPodCondition& condition = effect.set_pod_condition();
  const std::string& type = condition.type();
  if (std::string fault = kube::CheckQualifiedName(type); !fault.empty())
    return Wrong(effect, absl::StrCat("condition type \"", CutText(type, 100), "\" ", fault));
  // Kubernetes' own types have no prefix, and new ones come with its versions.
  if (!absl::StrContains(type, '/') || BelongsToKubernetes(type))
    return Wrong(effect, absl::StrCat("condition type ", type, " belongs to Kubernetes"));
  switch (condition.status()) {
    case v1beta1::CONDITION_STATUS_TRUE:
    case v1beta1::CONDITION_STATUS_FALSE:
    case v1beta1::CONDITION_STATUS_UNKNOWN:
      break;
    default:
      return Wrong(effect, absl::StrCat("condition ", type, " without a status"));
  }
  if (!IsCamelCase(condition.reason(), kMaxReasonBytes))
    return Wrong(effect, absl::StrCat("condition ", type, " without a reason in CamelCase"));
  if (condition.message().size() > kMaxMessageBytes)
    return Wrong(effect, absl::StrCat("the message of condition ", type, " is too long"));
  return absl::OkStatus();
}

absl::Status CheckEvent(const v1beta1::Effect& effect) {
  const v1beta1::RecordEvent& event = effect.record_event();
  if (IsObjectEvent(effect)) {
    if (event.uid().empty() || !IsCamelCase(event.kind(), kMaxKindBytes))
      return Wrong(effect, "an event about an object without its uid or kind");
  } else if (!event.namespace_().empty() || !event.name().empty() || !event.uid().empty() ||
             !event.kind().empty()) {
    return Wrong(effect, "an event about an object without its resource");
  }
  if (event.type() != v1beta1::RecordEvent::TYPE_NORMAL &&
      event.type() != v1beta1::RecordEvent::TYPE_WARNING) {
    return Wrong(effect, "an event without a type");
  }
  if (!IsCamelCase(event.reason(), kMaxReasonBytes) ||
      !IsCamelCase(event.action(), kMaxReasonBytes)) {
    return Wrong(effect, "an event without a reason or an action in CamelCase");
  }
  if (event.note().empty() || event.note().size() > kMaxMessageBytes)
    return Wrong(effect, "an event without a note, or with a note that is too long");
  return absl::OkStatus();
}

}  // namespace

bool IsPodEffect(const v1beta1::Effect& effect) {
  return effect.has_patch_pod() || effect.has_set_pod_condition() || effect.has_record_event();
}

bool BelongsToKubernetes(absl::string_view key) {
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return false;
  const absl::string_view prefix = key.substr(0, slash);
  return prefix == "kubernetes.io" || prefix == "k8s.io" ||
         absl::EndsWith(prefix, ".kubernetes.io") || absl::EndsWith(prefix, ".k8s.io");
}

std::string FaultOfAnnotations(const google::protobuf::Map<std::string, std::string>& annotations,
                               const std::vector<std::string>& allowed_keys) {
  if (annotations.size() > kMaxPodKeys) return absl::StrCat(annotations.size(), " annotations");
  return MetadataCheck(allowed_keys).SetAnnotations(annotations);
}

absl::Status CheckPodEffect(const v1beta1::Effect& effect,
                            const std::vector<std::string>& allowed_keys) {
  if (effect.has_patch_pod()) return CheckPatchPod(effect, allowed_keys);
  if (effect.has_set_pod_condition()) return CheckCondition(effect);
  if (effect.has_record_event()) return CheckEvent(effect);
  return absl::OkStatus();
}

}  // namespace outboard::framework
