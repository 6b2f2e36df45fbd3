// The forms of PluginInfo.needed_fields that the shim knows, and what hosts get because of them.
#ifndef OUTBOARD_SHIM_HOSTS_NEEDED_FIELDS_H_
#define OUTBOARD_SHIM_HOSTS_NEEDED_FIELDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/cache/change_log.h"

namespace outboard::hosts {

// A form as the contract writes it, with 'KEY' or 'NAME' for what differs, and what a path of this
// form adds to the parts that a host gets.
template <typename Parts>
struct FieldForm {
  absl::string_view form;
  // `key` is the text in quotes; empty if the form has none.
  void (*add)(absl::string_view key, Parts* parts);
};

// The text in quotes of a path of this form (empty if the form has none); nullopt: another form.
std::optional<absl::string_view> KeyOf(absl::string_view path, absl::string_view form);

// Adds one path; false if it has none of these forms.
template <typename Parts>
bool AddField(absl::Span<const FieldForm<Parts>> forms, absl::string_view path, Parts* parts) {
  for (const FieldForm<Parts>& form : forms) {
    if (const std::optional<absl::string_view> key = KeyOf(path, form.form)) {
      form.add(*key, parts);
      return true;
    }
  }
  return false;
}

// What the host's plugins read in addition to what every host receives. Ignores paths that have
// none of the forms (optional ones may). Pure.
cache::ChangeEncoder::Fields NeededFields(const v1beta1::GetHostInfoResponse& info);
// The forms that NeededFields knows, and kQueueAttempts.
std::vector<std::string> NeededFieldForms();

// The path with which a plugin at queueSort asks for SortKeysRequest.queued.
inline constexpr absl::string_view kQueueAttempts = "QueuedPodInfo.attempts";

// The first of the plugin's needed fields that this shim cannot send or may not, and why; empty:
// none. `allowed_variables`: names of environment variables that plugins may read. Pure.
std::string NeededFieldProblem(const v1beta1::PluginInfo& plugin,
                               const std::vector<std::string>& allowed_variables);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_NEEDED_FIELDS_H_
