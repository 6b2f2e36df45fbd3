#include "plugin_host/sdk/pod_effects.h"

namespace outboard::sdk {
namespace {

constexpr size_t kMaxNoteBytes = 1024;

v1beta1::Effect Named(absl::string_view key) {
  v1beta1::Effect effect;
  effect.set_key(std::string(key));
  return effect;
}

// At a character's boundary: texts of the contract are UTF-8.
std::string CutNote(const std::string& note) {
  if (note.size() <= kMaxNoteBytes) return note;
  size_t end = kMaxNoteBytes;
  while (end > 0 && (static_cast<unsigned char>(note[end]) & 0xC0) == 0x80) --end;
  return note.substr(0, end);
}

void Fill(const Event& event, v1beta1::RecordEvent* out) {
  out->set_type(event.is_warning ? v1beta1::RecordEvent::TYPE_WARNING
                                 : v1beta1::RecordEvent::TYPE_NORMAL);
  out->set_reason(event.reason);
  out->set_action(event.action);
  out->set_note(CutNote(event.note));
}

}  // namespace

v1beta1::Effect PatchPod(absl::string_view key, const PodPatch& patch) {
  v1beta1::Effect effect = Named(key);
  v1beta1::PatchPod& out = *effect.mutable_patch_pod();
  out.mutable_set_annotations()->insert(patch.annotations.begin(), patch.annotations.end());
  out.mutable_set_labels()->insert(patch.labels.begin(), patch.labels.end());
  for (const std::string& name : patch.remove_annotations) out.add_remove_annotations(name);
  for (const std::string& name : patch.remove_labels) out.add_remove_labels(name);
  return effect;
}

v1beta1::Effect SetPodCondition(absl::string_view key, const PodCondition& condition) {
  v1beta1::Effect effect = Named(key);
  v1beta1::SetPodCondition& out = *effect.mutable_set_pod_condition();
  out.set_type(condition.type);
  out.set_status(condition.status);
  out.set_reason(condition.reason);
  out.set_message(condition.message);
  return effect;
}

v1beta1::Effect RecordPodEvent(absl::string_view key, const Event& event) {
  v1beta1::Effect effect = Named(key);
  Fill(event, effect.mutable_record_event());
  return effect;
}

v1beta1::Effect RecordObjectEvent(absl::string_view key, const v1beta1::GenericObject& object,
                                  absl::string_view kind, const Event& event) {
  v1beta1::Effect effect = Named(key);
  v1beta1::RecordEvent& out = *effect.mutable_record_event();
  out.set_resource(object.resource());
  out.set_namespace_(object.namespace_());
  out.set_name(object.name());
  out.set_uid(object.uid());
  out.set_kind(std::string(kind));
  Fill(event, &out);
  return effect;
}

}  // namespace outboard::sdk
