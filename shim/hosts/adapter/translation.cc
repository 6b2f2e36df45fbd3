#include "shim/hosts/adapter/translation.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "outboard/handshake/v1/handshake.pb.h"
#include "outboard/v1alpha1/call.pb.h"
#include "outboard/v1alpha1/cluster_state.pb.h"
#include "outboard/v1alpha1/plugin_host.pb.h"
#include "outboard/v1beta1/call.pb.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "proto/call_errors/call_errors.h"
#include "proto/call_errors/rpc_status.pb.h"

namespace outboard::hosts::adapter {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using google::protobuf::Reflection;
using handshake::v1::HandshakeRequest;
using handshake::v1::HandshakeResponse;

constexpr char kHandshake[] = "/outboard.handshake.v1.HandshakeService/Handshake";
constexpr char kGetHostInfo[] = "/outboard.v1beta1.PluginHostService/GetHostInfo";
constexpr char kConfigure[] = "/outboard.v1beta1.PluginHostService/Configure";

enum class Direction { kToOld, kFromOld };

// The same bytes as another message.
template <typename To, typename From>
bool Reread(const From& from, To* to) {
  return to->ParseFromString(from.SerializeAsString());
}

bool Parse(absl::string_view bytes, Message* message) {
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// An enum whose numbers differ, as pairs of new and old.
const std::vector<std::pair<int, int>>* NumbersOf(const google::protobuf::EnumDescriptor* type) {
  static const auto* const kNumbers =
      new std::map<const google::protobuf::EnumDescriptor*, std::vector<std::pair<int, int>>>{
          {v1beta1::Code_descriptor(),
           {{v1beta1::CODE_SUCCESS, v1alpha1::SUCCESS},
            {v1beta1::CODE_ERROR, v1alpha1::ERROR},
            {v1beta1::CODE_UNSCHEDULABLE, v1alpha1::UNSCHEDULABLE},
            {v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
             v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE},
            {v1beta1::CODE_PENDING, v1alpha1::PENDING}}},
          {v1beta1::PlacementState_descriptor(),
           {{v1beta1::PLACEMENT_STATE_UNPLACED, v1alpha1::UNPLACED},
            {v1beta1::PLACEMENT_STATE_ASSUMED, v1alpha1::ASSUMED},
            {v1beta1::PLACEMENT_STATE_WAITING, v1alpha1::WAITING},
            {v1beta1::PLACEMENT_STATE_NOMINATED, v1alpha1::NOMINATED},
            {v1beta1::PLACEMENT_STATE_BOUND, v1alpha1::BOUND}}},
          {v1beta1::SyncRequest::Phase_descriptor(),
           {{v1beta1::SyncRequest::PHASE_DELTA, v1alpha1::SyncRequest::DELTA},
            {v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN, v1alpha1::SyncRequest::SNAPSHOT_BEGIN},
            {v1beta1::SyncRequest::PHASE_SNAPSHOT_MORE, v1alpha1::SyncRequest::SNAPSHOT_MORE},
            {v1beta1::SyncRequest::PHASE_SNAPSHOT_END, v1alpha1::SyncRequest::SNAPSHOT_END}}}};
  const auto it = kNumbers->find(type);
  return it == kNumbers->end() ? nullptr : &it->second;
}

// A number without a counterpart becomes UNSPECIFIED, which the shim rejects. To old hosts only
// numbers with a counterpart go.
int Renumber(const std::vector<std::pair<int, int>>& numbers, int number, Direction direction) {
  for (const auto& [now, old] : numbers) {
    if (direction == Direction::kToOld && now == number) return old;
    if (direction == Direction::kFromOld && old == number) return now;
  }
  return 0;
}

bool IsRenumbered(const FieldDescriptor* field) {
  return field->enum_type() != nullptr && NumbersOf(field->enum_type()) != nullptr;
}

// Whether a message of this type may contain something to translate. Most of the bytes, pods and
// nodes, contain nothing.
bool Differs(const Descriptor* type, std::set<const Descriptor*>* visited) {
  if (type == v1beta1::CallHeader::descriptor()) return true;
  if (type == v1beta1::SortKeysChanged::descriptor()) return true;
  if (type == v1beta1::GateChanged::descriptor()) return true;
  if (!visited->insert(type).second) return false;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (IsRenumbered(field)) return true;
    if (field->message_type() != nullptr && Differs(field->message_type(), visited)) return true;
  }
  return false;
}

// The fields of a type that may contain something to translate. All threads share the table, which
// grows with the types that are sent.
const std::vector<const FieldDescriptor*>& DifferingFields(const Descriptor* type) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto* const known = new std::map<const Descriptor*, std::vector<const FieldDescriptor*>>();
  const absl::MutexLock lock(&mutex);
  const auto [it, added] = known->try_emplace(type);
  if (!added) return it->second;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    std::set<const Descriptor*> visited;
    if (IsRenumbered(field) ||
        (field->message_type() != nullptr && Differs(field->message_type(), &visited)))
      it->second.push_back(field);
  }
  return it->second;
}

// In v1alpha1 no pods mean all.
void SetAllPods(auto* changed) { changed->set_all_pods(changed->pod_uids().empty()); }

void Translate(Message* message, Direction direction) {
  const Descriptor* type = message->GetDescriptor();
  if (type == v1beta1::CallHeader::descriptor()) {
    // One field in v1alpha1, where the method says what it means. It has the number of
    // exact_version.
    auto* header = static_cast<v1beta1::CallHeader*>(message);
    if (header->has_min_version()) header->set_exact_version(header->min_version());
    return;
  }
  if (type == v1beta1::SortKeysChanged::descriptor())
    return SetAllPods(static_cast<v1beta1::SortKeysChanged*>(message));
  if (type == v1beta1::GateChanged::descriptor())
    return SetAllPods(static_cast<v1beta1::GateChanged*>(message));
  const Reflection* reflection = message->GetReflection();
  for (const FieldDescriptor* field : DifferingFields(type)) {
    if (field->enum_type() != nullptr) {
      const auto& numbers = *NumbersOf(field->enum_type());
      if (!field->is_repeated()) {
        reflection->SetEnumValue(
            message, field,
            Renumber(numbers, reflection->GetEnumValue(*message, field), direction));
        continue;
      }
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
        const int number = reflection->GetRepeatedEnumValue(*message, field, i);
        reflection->SetRepeatedEnumValue(message, field, i, Renumber(numbers, number, direction));
      }
    } else if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
        Translate(reflection->MutableRepeatedMessage(message, field, i), direction);
    } else if (reflection->HasField(*message, field)) {
      Translate(reflection->MutableMessage(message, field), direction);
    }
  }
}

const MethodDescriptor* FindMethod(absl::string_view method) {
  return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
      absl::StrReplaceAll(absl::StripPrefix(method, "/"), {{"/", "."}}));
}

absl::Status Malformed(absl::string_view method, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed ", what, " of ", method));
}

// The bytes as a message of this type, translated.
absl::StatusOr<std::string> Translated(absl::string_view method, const Descriptor* type,
                                       absl::string_view bytes, Direction direction) {
  const std::unique_ptr<Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  if (!Parse(bytes, message.get()))
    return Malformed(method, direction == Direction::kToOld ? "request" : "answer");
  Translate(message.get(), direction);
  return message->SerializeAsString();
}

std::string ConfigureToOld(const v1beta1::ConfigureRequest& request) {
  v1alpha1::ConfigureRequest old;
  old.set_session_id(request.session_id());
  old.set_contract_version("v1alpha1");
  for (const v1beta1::ProfileConfig& profile : request.profiles())
    Reread(profile, old.add_profiles());
  old.set_cycle_deadline_millis(request.cycle_deadline_millis());
  return old.SerializeAsString();
}

std::string IdentityFromOld(const v1alpha1::GetHostInfoResponse& old) {
  HandshakeResponse identity;
  *identity.mutable_contract_versions() = old.contract_versions();
  identity.set_instance(old.host_instance());
  identity.set_build(old.build());
  identity.set_build_digest(old.build_digest());
  identity.set_started_unix_micros(old.started_unix_micros());
  return identity.SerializeAsString();
}

absl::StatusOr<std::string> HostInfoFromOld(const v1alpha1::GetHostInfoResponse& old) {
  v1beta1::GetHostInfoResponse info;
  for (const int capability : old.capabilities())
    info.add_capabilities(static_cast<v1beta1::Capability>(capability));
  for (const v1alpha1::PluginInfo& plugin : old.plugins()) {
    v1beta1::PluginInfo* out = info.add_plugins();
    if (!Reread(plugin, out)) return Malformed(kGetHostInfo, "answer");
    // Without fields the shim never called the plugin there.
    for (v1beta1::Interest& interest : *out->mutable_interests())
      interest.set_no_pod(interest.any_field_set().empty());
  }
  return info.SerializeAsString();
}

}  // namespace

std::string OldMethod(absl::string_view method) {
  if (method == kHandshake) method = kGetHostInfo;
  if (!absl::ConsumePrefix(&method, "/outboard.v1beta1.")) return "";
  return absl::StrCat("/outboard.v1alpha1.", method);
}

absl::StatusOr<std::string> RequestToOld(absl::string_view method, absl::string_view bytes) {
  if (method == kHandshake || method == kGetHostInfo) {
    v1alpha1::GetHostInfoRequest old;
    old.add_contract_versions("v1alpha1");
    HandshakeRequest request;
    if (method == kHandshake && !Parse(bytes, &request)) return Malformed(method, "request");
    old.set_shim_build(request.build());
    return old.SerializeAsString();
  }
  if (method == kConfigure) {
    v1beta1::ConfigureRequest request;
    if (!Parse(bytes, &request)) return Malformed(method, "request");
    return ConfigureToOld(request);
  }
  const MethodDescriptor* found = FindMethod(method);
  if (found == nullptr) return Malformed(method, "method");
  return Translated(method, found->input_type(), bytes, Direction::kToOld);
}

absl::StatusOr<std::string> ResponseFromOld(absl::string_view method, absl::string_view bytes) {
  if (method == kHandshake || method == kGetHostInfo) {
    v1alpha1::GetHostInfoResponse old;
    if (!Parse(bytes, &old)) return Malformed(method, "answer");
    return method == kHandshake ? IdentityFromOld(old) : HostInfoFromOld(old);
  }
  const MethodDescriptor* found = FindMethod(method);
  if (found == nullptr) return Malformed(method, "method");
  return Translated(method, found->output_type(), bytes, Direction::kFromOld);
}

grpc::Status StatusFromOld(const grpc::Status& status) {
  if (status.ok() || status.error_details().empty()) return status;
  v1beta1::CallError error;  // The same on the wire in both versions.
  call_errors::RpcStatus details;
  if (details.ParseFromString(status.error_details())) {
    for (const call_errors::RpcStatus::Detail& detail : details.details()) {
      if (absl::EndsWith(detail.type_url(), "/outboard.v1alpha1.CallError") &&
          error.ParseFromString(detail.value()))
        return call_errors::ToGrpcStatus(error, status.error_code());
    }
  }
  // Hosts of version 0.1 send the error without a google.rpc.Status around it.
  if (error.ParseFromString(status.error_details()) &&
      call_errors::CodeOf(error.reason()) == status.error_code())
    return call_errors::ToGrpcStatus(error, status.error_code());
  return grpc::Status(status.error_code(), status.error_message());
}

}  // namespace outboard::hosts::adapter
