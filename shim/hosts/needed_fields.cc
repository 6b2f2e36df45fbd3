#include "shim/hosts/needed_fields.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/inline_content.h"

namespace outboard::hosts {
namespace {

using Fields = cache::ChangeEncoder::Fields;

constexpr FieldForm<Fields> kFieldForms[] = {
    {"Pod.metadata.annotations['KEY']",
     [](absl::string_view key, Fields* fields) {
       fields->pod_annotations.insert(std::string(key));
     }},
    {"Node.metadata.annotations['KEY']",
     [](absl::string_view key, Fields* fields) {
       fields->node_annotations.insert(std::string(key));
     }},
    {"Pod.spec.containers[*].command",
     [](absl::string_view, Fields* fields) { fields->command = true; }},
    {"Pod.spec.containers[*].args", [](absl::string_view, Fields* fields) { fields->args = true; }},
    {"Pod.spec.containers[*].env['NAME']",
     [](absl::string_view key, Fields* fields) { fields->variables.insert(std::string(key)); }},
    {"Pod.metadata.resourceVersion",
     [](absl::string_view, Fields* fields) { fields->resource_version = true; }},
    {"Pod.spec.serviceAccountName",
     [](absl::string_view, Fields* fields) { fields->service_account_name = true; }},
    {"Pod.spec.priorityClassName",
     [](absl::string_view, Fields* fields) { fields->priority_class_name = true; }},
    {"Pod.spec.runtimeClassName",
     [](absl::string_view, Fields* fields) { fields->runtime_class_name = true; }},
    {"Pod.status.phase", [](absl::string_view, Fields* fields) { fields->phase = true; }},
    {"Pod.status.conditions['TYPE']",
     [](absl::string_view type, Fields* fields) {
       fields->pod_conditions.insert(std::string(type));
     }},
    {"Node.status.capacity", [](absl::string_view, Fields* fields) { fields->capacity = true; }},
    {"Node.status.conditions",
     [](absl::string_view, Fields* fields) { fields->node_conditions = true; }},
    {"Node.status.addresses", [](absl::string_view, Fields* fields) { fields->addresses = true; }},
};

constexpr absl::string_view kVariables = "Pod.spec.containers[*].env['NAME']";

template <typename Visit>
void ForEachPath(const v1beta1::PluginInfo& plugin, Visit&& visit) {
  for (const std::string& path : plugin.needed_fields()) visit(path);
  for (const std::string& path : plugin.optional_fields()) visit(path);
}

}  // namespace

std::optional<absl::string_view> KeyOf(absl::string_view path, absl::string_view form) {
  const size_t quote = form.find("['");
  if (quote == absl::string_view::npos)
    return path == form ? std::make_optional(absl::string_view()) : std::nullopt;
  if (!absl::ConsumePrefix(&path, form.substr(0, quote + 2)) || !absl::ConsumeSuffix(&path, "']"))
    return std::nullopt;
  return path;
}

Fields NeededFields(const v1beta1::GetHostInfoResponse& info) {
  Fields fields;
  for (const v1beta1::PluginInfo& plugin : info.plugins()) {
    ForEachPath(plugin,
                [&](const std::string& path) { AddField<Fields>(kFieldForms, path, &fields); });
    for (const v1beta1::DeclaredResource& resource : plugin.declared_resources())
      fields.custom_resources.insert(resource.resource());
  }
  return fields;
}

std::vector<std::string> NeededFieldForms() {
  std::vector<std::string> forms;
  for (const FieldForm<Fields>& form : kFieldForms) forms.emplace_back(form.form);
  forms.emplace_back(kQueueAttempts);
  return forms;
}

std::string NeededFieldProblem(const v1beta1::PluginInfo& plugin,
                               const std::vector<std::string>& allowed_variables) {
  const std::vector<std::string> node_forms = InlineFieldForms();
  const std::vector<std::string> forms = NeededFieldForms();
  const auto is_known = [](const std::string& path, const std::vector<std::string>& of) {
    return absl::c_any_of(of, [&](const std::string& form) { return KeyOf(path, form); });
  };
  for (const std::string& path : plugin.needed_fields()) {
    if (!is_known(path, forms) && !is_known(path, node_forms)) {
      return absl::StrCat("needs field ", framework::CutText(path),
                          ", which this shim cannot send");
    }
    const std::optional<absl::string_view> name = KeyOf(path, kVariables);
    if (name.has_value() && !absl::c_linear_search(allowed_variables, *name)) {
      return absl::StrCat("needs field ", framework::CutText(path),
                          ", which allowedEnvironmentVariables does not allow; add the name to it");
    }
  }
  return "";
}

}  // namespace outboard::hosts
