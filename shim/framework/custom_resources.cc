#include "shim/framework/custom_resources.h"

#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/short_names.h"
#include "shim/kube/wire/name_rules.h"

namespace outboard::framework {
namespace {

using v1beta1::DeclaredResource;

constexpr size_t kMaxJsonBytes = 256 << 10;

// The parts that all kinds of writes share.
struct ObjectWrite {
  const std::string& resource;
  const std::string& ns;
  const std::string& name;
  DeclaredResource::Verb verb;  // unspecified: an event about the object
};

std::string VerbText(DeclaredResource::Verb verb) {
  if (verb == DeclaredResource::VERB_UNSPECIFIED) return "record an event about";
  return absl::AsciiStrToLower(ShortName(verb));
}

template <typename Verbs>
bool Has(const Verbs& verbs, DeclaredResource::Verb verb) {
  return verb == DeclaredResource::VERB_UNSPECIFIED ||
         absl::c_linear_search(verbs, static_cast<int>(verb));
}

absl::Status TooLong(const v1beta1::Effect& effect, size_t bytes) {
  return absl::InternalError(absl::StrCat(effect.plugin(), " writes an object of ", bytes,
                                          " bytes, more than ", kMaxJsonBytes));
}

absl::Status Check(const ObjectWrite& write, const v1beta1::Effect& effect,
                   const v1beta1::GetHostInfoResponse& host,
                   const std::vector<CustomResourceRule>& rules) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InternalError(absl::StrCat(effect.plugin(), " wants to ", VerbText(write.verb),
                                            " ", write.resource, " ", write.ns,
                                            write.ns.empty() ? "" : "/", write.name, ": ", what));
  };
  if (!kube::CheckSubdomain(write.name).empty()) return wrong("invalid name");
  if (!write.ns.empty() && !kube::CheckDnsLabel(write.ns).empty())
    return wrong("invalid namespace");
  const auto plugin = absl::c_find_if(
      host.plugins(), [&](const auto& known) { return known.name() == effect.plugin(); });
  if (plugin == host.plugins().end()) return wrong("the host has no such plugin");
  const auto declared = absl::c_find_if(plugin->declared_resources(), [&](const auto& known) {
    return known.resource() == write.resource;
  });
  if (declared == plugin->declared_resources().end() || !Has(declared->verbs(), write.verb)) {
    return wrong("the plugin did not declare this");
  }
  const auto rule = absl::c_find_if(
      rules, [&](const CustomResourceRule& known) { return known.resource == write.resource; });
  if (rule == rules.end() || !Has(rule->verbs, write.verb) ||
      (!rule->namespaces.empty() && !absl::c_linear_search(rule->namespaces, write.ns))) {
    const absl::Status refused =
        wrong("customResources in the configuration of the shim do not allow that");
    // The plugin declared it optional; it does not know the configuration.
    return declared->optional() ? absl::PermissionDeniedError(refused.message()) : refused;
  }
  return absl::OkStatus();
}

absl::Status CheckPatch(const v1beta1::Effect& effect, const v1beta1::GetHostInfoResponse& host,
                        const std::vector<CustomResourceRule>& rules) {
  const v1beta1::PatchObject& patch = effect.patch_object();
  if (patch.uid().empty() == patch.after().empty()) {
    return absl::InternalError(
        absl::StrCat(effect.plugin(), " patches an object without identifying it"));
  }
  if (patch.json().size() > kMaxJsonBytes) return TooLong(effect, patch.json().size());
  const nlohmann::json json =
      nlohmann::json::parse(patch.json(), nullptr, /*allow_exceptions=*/false);
  const auto metadata = json.is_object() ? json.find("metadata") : json.end();
  if (!json.is_object() || (metadata != json.end() && !metadata->is_object())) {
    return absl::InternalError(absl::StrCat(effect.plugin(), " patches ", patch.name(),
                                            " , but the patch is not a JSON object"));
  }
  const DeclaredResource::Verb verb =
      patch.status() ? DeclaredResource::VERB_PATCH_STATUS : DeclaredResource::VERB_PATCH;
  return Check({patch.resource(), patch.namespace_(), patch.name(), verb}, effect, host, rules);
}

}  // namespace

absl::Status CheckObjectWrite(const v1beta1::Effect& effect,
                              const v1beta1::GetHostInfoResponse& host,
                              const std::vector<CustomResourceRule>& rules) {
  if (effect.has_delete_object()) {
    const v1beta1::DeleteObject& del = effect.delete_object();
    if (del.uid().empty() || del.resource_version().empty())
      return absl::InternalError(
          absl::StrCat(effect.plugin(), " deletes an object without preconditions"));
    return Check({del.resource(), del.namespace_(), del.name(), DeclaredResource::VERB_DELETE},
                 effect, host, rules);
  }
  if (effect.has_patch_object()) return CheckPatch(effect, host, rules);
  if (IsObjectEvent(effect)) {
    const v1beta1::RecordEvent& event = effect.record_event();
    return Check(
        {event.resource(), event.namespace_(), event.name(), DeclaredResource::VERB_UNSPECIFIED},
        effect, host, rules);
  }
  if (!effect.has_put_object()) return absl::OkStatus();
  const v1beta1::PutObject& put = effect.put_object();
  const bool creates = put.uid().empty();
  if (creates != put.resource_version().empty() || (creates && put.status())) {
    return absl::InternalError(
        absl::StrCat(effect.plugin(), " replaces an object without all preconditions"));
  }
  if (put.json().size() > kMaxJsonBytes) return TooLong(effect, put.json().size());
  const DeclaredResource::Verb verb = creates        ? DeclaredResource::VERB_CREATE
                                      : put.status() ? DeclaredResource::VERB_UPDATE_STATUS
                                                     : DeclaredResource::VERB_UPDATE;
  return Check({put.resource(), put.namespace_(), put.name(), verb}, effect, host, rules);
}

bool IsObjectWrite(const v1beta1::Effect& effect) {
  return effect.has_put_object() || effect.has_patch_object() || effect.has_delete_object();
}

bool IsObjectEvent(const v1beta1::Effect& effect) {
  return effect.has_record_event() && !effect.record_event().resource().empty();
}

const std::string& WrittenObject(const v1beta1::Effect& effect) {
  return effect.has_put_object()     ? effect.put_object().name()
         : effect.has_record_event() ? effect.record_event().name()
         : effect.has_patch_object() ? effect.patch_object().name()
                                     : effect.delete_object().name();
}

bool WritesObjects(const v1beta1::PluginInfo& plugin) {
  return absl::c_any_of(plugin.declared_resources(),
                        [](const DeclaredResource& used) { return used.verbs_size() > 0; });
}

}  // namespace outboard::framework
