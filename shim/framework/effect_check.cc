// Checks of effects: what hosts want written.
#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/custom_resources.h"
#include "shim/framework/pod_effects.h"
#include "shim/kube/wire/name_rules.h"

namespace outboard::framework {
namespace {

constexpr size_t kMaxKeyBytes = 63;
constexpr int kMaxRequestMappings = 4096;
constexpr int kMaxEffects = 256;
// Of names, UIDs and resource versions.
constexpr size_t kMaxEffectBytes = 8 << 10;

// A patch of an object that the same answer creates must come after its creation.
absl::Status CheckOrder(const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects,
                        absl::string_view point, const v1beta1::Effect& effect) {
  const v1beta1::PatchObject& patch = effect.patch_object();
  if (!effect.has_patch_object() || patch.after().empty()) return absl::OkStatus();
  for (const v1beta1::Effect& earlier : effects) {
    if (&earlier == &effect) break;
    const v1beta1::PutObject& put = earlier.put_object();
    if (earlier.key() == patch.after() && earlier.has_put_object() && put.uid().empty() &&
        put.resource() == patch.resource() && put.namespace_() == patch.namespace_() &&
        put.name() == patch.name()) {
      return absl::OkStatus();
    }
  }
  return WrongAnswer(absl::StrCat(point, " patches ", patch.name(), ", which effect \"",
                                  patch.after(), "\" before it does not create"));
}

// A claim in the pod's status is the pod's: it has it already, or an earlier effect creates it.
absl::Status CheckReport(const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects,
                         absl::string_view point,
                         const v1beta1::ReportExtendedResourceClaim& report,
                         const v1beta1::Pod& pod) {
  // Whether a container of this name requests the resource.
  const auto requests = [&](const std::string& name, const std::string& resource) {
    const auto is_it = [&](const v1beta1::Container& container) {
      return container.name() == name && container.requests().scalar().contains(resource);
    };
    return absl::c_any_of(pod.containers(), is_it) || absl::c_any_of(pod.init_containers(), is_it);
  };
  bool is_pods = report.claim_name() == pod.extended_resource_claim();
  for (const v1beta1::Effect& earlier : effects) {
    if (&earlier.report_extended_resource_claim() == &report) break;
    const v1beta1::PutObject& put = earlier.put_object();
    is_pods |= earlier.has_put_object() && put.uid().empty() &&
               absl::StartsWith(put.resource(), "resourceclaims.") &&
               absl::EndsWith(put.resource(), ".resource.k8s.io") &&
               put.namespace_() == pod.namespace_() && put.name() == report.claim_name();
  }
  if (report.claim_name().empty() || report.request_mappings().empty() ||
      report.request_mappings_size() > kMaxRequestMappings) {
    return WrongAnswer(
        absl::StrCat(point, " reports a claim without a name, or with no or too many mappings"));
  }
  if (!is_pods)
    return WrongAnswer(
        absl::StrCat(point, " reports claim \"", report.claim_name(), "\", not the pod's"));
  for (const auto& mapping : report.request_mappings()) {
    if (!requests(mapping.container_name(), mapping.resource_name()) ||
        mapping.request_name().empty()) {
      return WrongAnswer(
          absl::StrCat(point, " reports a claim for container \"", mapping.container_name(),
                       "\", which does not request the resource, or a name is missing"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEffectSize(const v1beta1::Effect& effect) {
  // These have bounds of their own.
  if (effect.has_report_extended_resource_claim() || effect.has_patch_pod())
    return absl::OkStatus();
  // The bodies of objects have a bound of their own.
  const size_t rest = effect.ByteSizeLong() - effect.put_object().json().size() -
                      effect.patch_object().json().size();
  if (rest <= kMaxEffectBytes) return absl::OkStatus();
  return WrongAnswer(absl::StrCat("An effect of ", CutText(effect.plugin(), 100), " has ", rest,
                                  " bytes of names and versions"));
}

bool HasKey(const v1beta1::Effect& effect) {
  return !effect.key().empty() && effect.key().size() <= kMaxKeyBytes;
}

absl::Status CheckEffects(const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects,
                          absl::string_view point, const v1beta1::Pod& pod,
                          const std::string& node_name) {
  const auto is_claim_of_pod = [&](const std::string& name_space, const std::string& name) {
    return name_space == pod.namespace_() &&
           std::any_of(pod.volumes().begin(), pod.volumes().end(), [&](const auto& volume) {
             if (volume.source() == "ephemeral") {
               return name == absl::StrCat(pod.name(), "-", volume.name());
             }
             return volume.source() == "persistentVolumeClaim" && name == volume.claim_name();
           });
  };
  if (effects.size() > kMaxEffects)
    return WrongAnswer(absl::StrCat(point, " names ", effects.size(), " effects"));
  absl::flat_hash_set<std::string> keys;
  absl::flat_hash_set<std::string> claims;
  for (const v1beta1::Effect& effect : effects) {
    if (effect.plugin().empty() || !HasKey(effect) || !keys.insert(effect.key()).second) {
      return WrongAnswer(absl::StrCat(point, " names an effect without a plugin or a unique key"));
    }
    if (absl::Status bounded = CheckEffectSize(effect); !bounded.ok()) return bounded;
    if (IsObjectWrite(effect)) {
      if (absl::Status wrong = CheckOrder(effects, point, effect); !wrong.ok()) return wrong;
      continue;
    }
    if (IsPodEffect(effect)) continue;
    if (effect.has_report_extended_resource_claim()) {
      if (absl::Status wrong =
              CheckReport(effects, point, effect.report_extended_resource_claim(), pod);
          !wrong.ok()) {
        return wrong;
      }
      continue;
    }
    if (!effect.has_bind_volume() && !effect.has_select_node()) {
      return WrongAnswer(absl::StrCat(point, " of ", CutText(effect.plugin(), 100),
                                      " names effect \"", CutText(effect.key(), 100),
                                      "\", of a kind that this shim does not know"));
    }
    const std::string& claim = effect.has_bind_volume() ? effect.bind_volume().claim().name()
                                                        : effect.select_node().name();
    if (!claims.insert(claim).second)
      return WrongAnswer(absl::StrCat(point, " names two effects on one claim of the pod"));
    if (effect.has_bind_volume()) {
      const v1beta1::BindVolume& bind = effect.bind_volume();
      if (bind.uid().empty() || bind.resource_version().empty() || bind.claim().uid().empty())
        return WrongAnswer(absl::StrCat(point, " binds a volume without preconditions"));
      // A name that is not one would lead to another path of the API.
      if (std::string wrong = kube::CheckSubdomain(bind.name()); !wrong.empty())
        return WrongAnswer(absl::StrCat(point, " binds a volume whose name ", wrong));
      if (!is_claim_of_pod(bind.claim().namespace_(), bind.claim().name())) {
        return WrongAnswer(absl::StrCat(point, " binds volume ", bind.name(),
                                        " to a claim that is not the pod's"));
      }
    } else if (effect.has_select_node()) {
      const v1beta1::SelectNode& select = effect.select_node();
      if (select.uid().empty() || select.resource_version().empty()) {
        return WrongAnswer(
            absl::StrCat(point, " selects a node for a claim without preconditions"));
      }
      if (select.node_name() != node_name || !is_claim_of_pod(select.namespace_(), select.name())) {
        return WrongAnswer(absl::StrCat(point, " selects node ", select.node_name(), " for claim ",
                                        select.name(),
                                        ", but the node or the claim is not the pod's"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace outboard::framework
