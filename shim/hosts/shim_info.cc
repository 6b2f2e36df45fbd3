#include "shim/hosts/shim_info.h"

#include <google/protobuf/descriptor.h>

#include <string>

#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/hosts/inline_content.h"
#include "shim/hosts/needed_fields.h"
#include "shim/queue/cluster_event.h"

namespace outboard::hosts {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::OneofDescriptor;

bool IsCalled(int point) { return point != v1beta1::EXTENSION_POINT_UNSPECIFIED; }

// The shim carries out every effect and reads every push of the contract that it was built with.
template <typename Message>
void AddCases(const char* oneof, google::protobuf::RepeatedPtrField<std::string>* names) {
  const OneofDescriptor* cases = Message::descriptor()->FindOneofByName(oneof);
  for (int i = 0; i < cases->field_count(); ++i) *names->Add() = cases->field(i)->name();
}

v1beta1::ShimInfo MakeShimInfo() {
  v1beta1::ShimInfo info;
  const EnumDescriptor* points = v1beta1::ExtensionPoint_descriptor();
  for (int i = 0; i < points->value_count(); ++i) {
    const int point = points->value(i)->number();
    if (IsCalled(point)) info.add_extension_points(static_cast<v1beta1::ExtensionPoint>(point));
  }
  AddCases<v1beta1::Effect>("action", info.mutable_effects());
  AddCases<v1beta1::SyncResponse>("push", info.mutable_pushes());
  const EnumDescriptor* actions = v1beta1::ClusterEvent::Action_descriptor();
  for (int i = 0; i < actions->value_count(); ++i) {
    const int action = actions->value(i)->number();
    if (queue::IsKnownAction(action))
      info.add_event_actions(static_cast<v1beta1::ClusterEvent::Action>(action));
  }
  for (std::string& form : NeededFieldForms()) info.add_needed_fields(std::move(form));
  for (std::string& form : InlineFieldForms()) info.add_needed_fields(std::move(form));
  return info;
}

}  // namespace

const v1beta1::ShimInfo& ThisShim() {
  static const auto* const info = new v1beta1::ShimInfo(MakeShimInfo());
  return *info;
}

}  // namespace outboard::hosts
