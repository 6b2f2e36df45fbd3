#include "shim/hosts/needed_fields.h"

#include "absl/strings/strip.h"

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
};

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
    for (const std::string& path : plugin.needed_fields())
      AddField<Fields>(kFieldForms, path, &fields);
    for (const v1beta1::DeclaredResource& resource : plugin.declared_resources())
      fields.custom_resources.insert(resource.resource());
  }
  return fields;
}

std::vector<std::string> NeededFieldForms() {
  std::vector<std::string> forms;
  for (const FieldForm<Fields>& form : kFieldForms) forms.emplace_back(form.form);
  return forms;
}

}  // namespace outboard::hosts
