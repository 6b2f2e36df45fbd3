#include "shim/hosts/adapter/translation.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
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
#include "outboard/v1alpha1/cycle.pb.h"
#include "outboard/v1alpha1/filter.pb.h"
#include "outboard/v1alpha1/objects.pb.h"
#include "outboard/v1alpha1/plugin_host.pb.h"
#include "outboard/v1alpha1/post_filter.pb.h"
#include "outboard/v1beta1/call.pb.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "outboard/v1beta1/pre_bind.pb.h"
#include "proto/call_errors/call_errors.h"
#include "proto/call_errors/rpc_status.pb.h"
#include "shim/hosts/adapter/units.h"

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
constexpr char kDrain[] = "/outboard.v1beta1.PluginHostService/Drain";
constexpr char kEndSession[] = "/outboard.v1beta1.PluginHostService/EndSession";
constexpr char kConfigure[] = "/outboard.v1beta1.PluginHostService/Configure";
constexpr char kSync[] = "/outboard.v1beta1.ClusterStateService/Sync";
constexpr char kFilter[] = "/outboard.v1beta1.FilterService/Filter";
constexpr char kPostFilter[] = "/outboard.v1beta1.PostFilterService/PostFilter";
constexpr char kCycle[] = "/outboard.v1beta1.CycleService/Cycle";
// Cycle of v1alpha1.
constexpr char kPlan[] = "/outboard.v1beta1.PlanService/Plan";

enum class Direction { kToOld, kFromOld };

// The same bytes as another message.
template <typename To, typename From>
bool Reread(const From& from, To* to) {
  return to->ParseFromString(from.SerializeAsString());
}

// v1alpha1 has some amounts of time as 32 bits.
uint32_t Narrow(int64_t amount) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(amount, 0, std::numeric_limits<uint32_t>::max()));
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

// v1alpha1 names an object by a ClusterObject in which only the name is set.
std::string ObjectReferenceToOld(const Message& message) {
  const auto& reference = static_cast<const v1beta1::ObjectReference&>(message);
  const std::string& kind = reference.kind();
  // The contract's names follow C++ style, whereas Kubernetes writes CSI in capitals.
  const std::string type =
      absl::StartsWith(kind, "CSI") ? absl::StrCat("Csi", kind.substr(3)) : kind;
  const Descriptor* kinds = v1alpha1::ClusterObject::descriptor();
  // Also for a kind of a later contract: the host does not know the object then.
  const FieldDescriptor* held = kinds->FindFieldByName("custom_object");
  for (int i = 0; i < kinds->field_count(); ++i) {
    if (kinds->field(i)->message_type()->name() == type) held = kinds->field(i);
  }
  if (kind == "ReplicationController" || kind == "ReplicaSet" || kind == "StatefulSet")
    held = kinds->FindFieldByName("workload");
  v1alpha1::ClusterObject old;
  Message* object = old.GetReflection()->MutableMessage(&old, held);
  const auto set = [&](const char* name, const std::string& text) {
    const FieldDescriptor* field = object->GetDescriptor()->FindFieldByName(name);
    if (field != nullptr) object->GetReflection()->SetString(object, field, text);
  };
  set("namespace", reference.namespace_());
  set("name", reference.name());
  set("kind", kind);
  set("resource", kind);
  return old.SerializeAsString();
}

// The bytes of the message that v1alpha1 has in this one's place.
using ToOldBytes = std::string (*)(const Message& message);

// For the messages inside requests whose fields have other numbers or types; null for others.
ToOldBytes ReshapedToOld(const Descriptor* type) {
  static const auto* const kReshaped = new std::map<const Descriptor*, ToOldBytes>{
      {v1beta1::ObjectReference::descriptor(), ObjectReferenceToOld}};
  const auto it = kReshaped->find(type);
  return it == kReshaped->end() ? nullptr : it->second;
}

// Replaces what `field` holds. Unknown fields are serialized like the others, so the host reads the
// bytes as its own message.
void Reshape(Message* message, const FieldDescriptor* field, ToOldBytes to_old) {
  const Reflection* reflection = message->GetReflection();
  google::protobuf::UnknownFieldSet* bytes = reflection->MutableUnknownFields(message);
  if (field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      bytes->AddLengthDelimited(field->number(),
                                to_old(reflection->GetRepeatedMessage(*message, field, i)));
    }
  } else if (reflection->HasField(*message, field)) {
    bytes->AddLengthDelimited(field->number(), to_old(reflection->GetMessage(*message, field)));
  }
  reflection->ClearField(message, field);
}

// Whether a message of this type may contain something to translate. Most of the bytes, pods and
// nodes, contain nothing.
bool Differs(const Descriptor* type, std::set<const Descriptor*>* visited) {
  if (ReshapedToOld(type) != nullptr) return true;
  if (type == v1beta1::CallHeader::descriptor()) return true;
  if (type == v1beta1::SortKeysChanged::descriptor()) return true;
  if (type == v1beta1::GateChanged::descriptor()) return true;
  if (!visited->insert(type).second) return false;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (IsRenumbered(field) || UnitOf(field) != nullptr) return true;
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
    if (IsRenumbered(field) || UnitOf(field) != nullptr ||
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
    header->clear_leader_epoch();
    return;
  }
  if (type == v1beta1::SortKeysChanged::descriptor())
    return SetAllPods(static_cast<v1beta1::SortKeysChanged*>(message));
  if (type == v1beta1::GateChanged::descriptor())
    return SetAllPods(static_cast<v1beta1::GateChanged*>(message));
  // v1alpha1 has no field for what plugins keep.
  if (type == v1beta1::PodPlacement::descriptor())
    static_cast<v1beta1::PodPlacement*>(message)->clear_states();
  const Reflection* reflection = message->GetReflection();
  for (const FieldDescriptor* field : DifferingFields(type)) {
    if (const Unit* unit = UnitOf(field); unit != nullptr) {
      const int64_t amount = reflection->GetInt64(*message, field);
      reflection->SetInt64(
          message, field,
          direction == Direction::kToOld ? unit->FromMicros(amount) : unit->ToMicros(amount));
    } else if (field->enum_type() != nullptr) {
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
    } else if (const ToOldBytes to_old = ReshapedToOld(field->message_type());
               to_old != nullptr && direction == Direction::kToOld) {
      Reshape(message, field, to_old);
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

absl::StatusOr<std::string> ConfigureToOld(const v1beta1::ConfigureRequest& request) {
  // The old host would configure the session. The caller can do that with a session of its own.
  if (request.validate_only())
    return absl::UnimplementedError("hosts of v1alpha1 cannot check a configuration only");
  v1alpha1::ConfigureRequest old;
  old.set_session_id(request.session_id());
  old.set_contract_version("v1alpha1");
  for (const v1beta1::ProfileConfig& profile : request.profiles())
    Reread(profile, old.add_profiles());
  old.set_cycle_deadline_millis(Narrow(request.cycle_deadline_micros() / 1000));
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

// Hosts of v1alpha1 do not serve Bind and PostBind: there the shim binds in the name of plugins at
// bind, and does not call those at postBind. It asks PreBind only about effects of Reserve.
void LimitBindPoints(v1beta1::PluginInfo* plugin) {
  auto* interests = plugin->mutable_interests();
  for (int i = interests->size() - 1; i >= 0; --i) {
    const v1beta1::ExtensionPoint point = interests->Get(i).extension_point();
    if (point == v1beta1::EXTENSION_POINT_PRE_BIND || point == v1beta1::EXTENSION_POINT_BIND ||
        point == v1beta1::EXTENSION_POINT_POST_BIND) {
      interests->DeleteSubrange(i, 1);
    }
  }
  for (const int point : plugin->extension_points()) {
    if (point != v1beta1::EXTENSION_POINT_BIND && point != v1beta1::EXTENSION_POINT_POST_BIND)
      continue;
    v1beta1::Interest* interest = interests->Add();
    interest->set_extension_point(static_cast<v1beta1::ExtensionPoint>(point));
    interest->set_no_pod(true);
  }
}

absl::StatusOr<std::string> HostInfoFromOld(const v1alpha1::GetHostInfoResponse& old) {
  v1beta1::GetHostInfoResponse info;
  for (const int capability : old.capabilities()) {
    // Unknown ones are ignored: v1alpha1 has no NODE_COLUMNS, for example.
    if (v1alpha1::Capability_IsValid(capability))
      info.add_capabilities(static_cast<v1beta1::Capability>(capability));
  }
  for (const v1alpha1::PluginInfo& plugin : old.plugins()) {
    v1beta1::PluginInfo* out = info.add_plugins();
    if (!Reread(plugin, out)) return Malformed(kGetHostInfo, "answer");
    // v1alpha1 has no points of groups.
    auto* const points = out->mutable_extension_points();
    points->erase(
        std::remove_if(points->begin(), points->end(),
                       [](int point) { return !v1alpha1::ExtensionPoint_IsValid(point); }),
        points->end());
    // The shim ignored unknown paths.
    out->mutable_optional_fields()->Swap(out->mutable_needed_fields());
    // Without fields the shim never called the plugin there.
    for (v1beta1::Interest& interest : *out->mutable_interests())
      interest.set_no_pod(interest.any_field_set().empty());
    LimitBindPoints(out);
  }
  return info.SerializeAsString();
}

// A part of a message, as the part in its place, which is the same on the wire but for what
// Translate changes.
template <typename From, typename To>
absl::Status PartToOld(From part, To* old) {
  Translate(&part, Direction::kToOld);
  return Reread(part, old) ? absl::OkStatus() : absl::InvalidArgumentError("malformed request");
}
template <typename From, typename To>
absl::Status PartFromOld(const From& old, To* part) {
  if (!Reread(old, part)) return absl::InvalidArgumentError("malformed answer");
  Translate(part, Direction::kFromOld);
  return absl::OkStatus();
}

// Which percentage of `num_nodes` nodes gives the number by v1alpha1's rule. The shim made the
// number by this rule, so there is one.
uint32_t PercentageFor(uint32_t number, uint32_t num_nodes) {
  constexpr uint64_t kFewest = 100;
  for (uint64_t percentage = 1; percentage < 100; ++percentage) {
    if (std::max(num_nodes * percentage / 100, kFewest) >= number)
      return static_cast<uint32_t>(percentage);
  }
  return 100;
}

absl::StatusOr<std::string> FilterToOld(const v1beta1::FilterRequest& request, uint32_t num_nodes) {
  v1alpha1::FilterRequest old;
  absl::Status done = PartToOld(request.header(), old.mutable_header());
  if (request.has_pod()) done.Update(PartToOld(request.pod(), old.mutable_pod()));
  for (const v1beta1::InlineNode& node : request.inline_nodes())
    done.Update(PartToOld(node, old.add_inline_nodes()));
  for (const v1beta1::SimulatedNode& node : request.simulation().nodes())
    done.Update(PartToOld(node, old.add_hypotheses()));
  if (request.has_search()) {
    const v1beta1::NodeSearch& search = request.search();
    const uint32_t number = search.num_feasible_nodes_to_find();
    if (search.has_nodes()) {
      done.Update(PartToOld(search.nodes(), old.mutable_nodes()));
      num_nodes = static_cast<uint32_t>(search.nodes().slots_size());
    }
    old.set_start_offset(search.start_offset());
    if (number == 1) {
      old.set_first_feasible_only(true);
    } else {
      old.set_percentage_of_nodes_to_score(PercentageFor(number, num_nodes));
    }
  }
  if (!done.ok()) return done;
  return old.SerializeAsString();
}

absl::StatusOr<std::string> PlanToOld(const v1beta1::PlanRequest& plan) {
  const v1beta1::CycleRequest& request = plan.cycle();
  v1alpha1::CycleRequest old;
  absl::Status done = PartToOld(request.header(), old.mutable_header());
  old.set_deadline_micros(Narrow(request.deadline_micros()));
  old.mutable_pre_filter()->set_pod_uid(request.pod_uid());
  const v1beta1::NodeSearch& search = request.search();
  v1alpha1::FilterRequest* filter = old.mutable_filter();
  if (search.has_nodes()) done.Update(PartToOld(search.nodes(), filter->mutable_nodes()));
  filter->set_start_offset(search.start_offset());
  filter->set_percentage_of_nodes_to_score(request.percentage_of_nodes_to_score());
  filter->set_first_feasible_only(search.num_feasible_nodes_to_find() == 1);
  filter->set_enough_nodes(search.num_feasible_nodes_to_find());
  old.set_score_single_node(request.score_single_node());
  old.set_explain(request.explain());
  *old.mutable_next_pod_uids() = plan.next_pod_uids();
  old.set_place_group(plan.place_group());
  if (!done.ok()) return done;
  return old.SerializeAsString();
}

// The answer to Cycle or to Plan. Only the latter has groups and placements.
template <typename Response>
absl::StatusOr<std::string> CycleFromOld(const v1alpha1::CycleResponse& old) {
  constexpr bool kPlans = std::is_same_v<Response, v1beta1::PlanResponse>;
  Response response;
  response.set_attempt_id(old.attempt_id());
  response.set_evaluation_micros(old.evaluation_micros());
  absl::Status done;
  const auto take = [&](auto* into) {
    done.Update(PartFromOld(old.pre_filter(), into->mutable_pre_filter()));
    if constexpr (kPlans) {
      if (old.has_group()) done.Update(PartFromOld(old.group(), into->mutable_group()));
    }
  };
  if (old.has_error()) {
    done.Update(PartFromOld(old.error(), response.mutable_error()));
  } else if (old.pre_filter().has_rejection()) {
    take(response.mutable_rejection());
  } else if (kPlans && !old.placements().empty()) {
    if constexpr (kPlans) {
      take(response.mutable_plan());
      for (const v1alpha1::PlannedPlacement& placement : old.placements())
        done.Update(PartFromOld(placement, response.mutable_plan()->add_placements()));
    }
  } else {
    v1beta1::CycleEvaluation* const evaluation = response.mutable_evaluation();
    done.Update(PartFromOld(old.pre_filter(), evaluation->mutable_pre_filter()));
    if (old.has_filter()) done.Update(PartFromOld(old.filter(), evaluation->mutable_filter()));
    if (old.has_pre_score())
      done.Update(PartFromOld(old.pre_score(), evaluation->mutable_pre_score()));
    if (old.has_score()) done.Update(PartFromOld(old.score(), evaluation->mutable_score()));
  }
  if (!done.ok()) return done;
  return response.SerializeAsString();
}

absl::StatusOr<std::string> PostFilterFromOld(const v1alpha1::PostFilterResponse& old) {
  v1beta1::PostFilterResponse response;
  absl::Status done;
  if (old.has_rejection()) {
    v1beta1::PreemptionRejection* const rejection = response.mutable_rejection();
    done.Update(PartFromOld(old.rejection(), rejection->mutable_status()));
    rejection->set_clear_nomination(old.clear_nomination());
  } else if (!old.questions().empty()) {
    for (const v1alpha1::PreemptionQuestion& question : old.questions())
      done.Update(PartFromOld(question, response.mutable_questions()->add_questions()));
  } else if (!old.candidates().empty()) {
    for (const v1alpha1::PreemptionCandidate& candidate : old.candidates())
      done.Update(PartFromOld(candidate, response.mutable_candidates()->add_candidates()));
  } else {
    response.mutable_none();
  }
  if (!done.ok()) return done;
  return response.SerializeAsString();
}

}  // namespace

std::optional<uint32_t> NumNodesAfter(absl::string_view method, absl::string_view bytes) {
  if (method != kSync) return std::nullopt;
  v1beta1::SyncRequest request;
  if (!Parse(bytes, &request) || !request.has_node_order()) return std::nullopt;
  return static_cast<uint32_t>(request.node_order().slots_size());
}

std::optional<std::string> InstanceAfter(absl::string_view method, absl::string_view bytes) {
  v1beta1::ConfigureRequest request;
  if (method != kConfigure || !Parse(bytes, &request)) return std::nullopt;
  return request.instance();
}

std::string OldMethod(absl::string_view method) {
  if (method == kHandshake) method = kGetHostInfo;
  // Drain of v1alpha1 has a session, and is what EndSession is now.
  if (method == kDrain) return "";
  if (method == kEndSession) return "/outboard.v1alpha1.PluginHostService/Drain";
  if (method == kPlan) method = kCycle;
  if (!absl::ConsumePrefix(&method, "/outboard.v1beta1.")) return "";
  return absl::StrCat("/outboard.v1alpha1.", method);
}

absl::StatusOr<std::string> RequestToOld(absl::string_view method, absl::string_view bytes,
                                         uint32_t num_nodes) {
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
  if (method == kFilter) {
    v1beta1::FilterRequest request;
    if (!Parse(bytes, &request)) return Malformed(method, "request");
    return FilterToOld(request, num_nodes);
  }
  if (method == kCycle) {
    v1beta1::PlanRequest request;
    if (!Parse(bytes, request.mutable_cycle())) return Malformed(method, "request");
    return PlanToOld(request);
  }
  if (method == kPlan) {
    v1beta1::PlanRequest request;
    if (!Parse(bytes, &request)) return Malformed(method, "request");
    return PlanToOld(request);
  }
  const MethodDescriptor* found = FindMethod(method);
  if (found == nullptr) return Malformed(method, "method");
  return Translated(method, found->input_type(), bytes, Direction::kToOld);
}

void AddInstance(absl::string_view method, const std::string& instance, std::string* old_request) {
  const MethodDescriptor* const found = FindMethod(method);
  if (instance.empty() || found == nullptr) return;
  const FieldDescriptor* const header = found->input_type()->FindFieldByName("header");
  const bool has_header =
      header != nullptr && header->message_type() == v1beta1::CallHeader::descriptor();
  if (!has_header && method != kPlan) return;  // Plan becomes Cycle, which has one.
  // A message that occurs twice in the bytes is merged. The header is field 1 of all requests.
  v1alpha1::FilterRequest addition;
  addition.mutable_header()->set_host_instance(instance);
  absl::StrAppend(old_request, addition.SerializeAsString());
}

absl::StatusOr<std::string> ResponseFromOld(absl::string_view method, absl::string_view bytes) {
  if (method == kHandshake || method == kGetHostInfo) {
    v1alpha1::GetHostInfoResponse old;
    if (!Parse(bytes, &old)) return Malformed(method, "answer");
    return method == kHandshake ? IdentityFromOld(old) : HostInfoFromOld(old);
  }
  if (method == kCycle || method == kPlan) {
    v1alpha1::CycleResponse old;
    if (!Parse(bytes, &old)) return Malformed(method, "answer");
    return method == kPlan ? CycleFromOld<v1beta1::PlanResponse>(old)
                           : CycleFromOld<v1beta1::CycleResponse>(old);
  }
  if (method == kPostFilter) {
    v1alpha1::PostFilterResponse old;
    if (!Parse(bytes, &old)) return Malformed(method, "answer");
    return PostFilterFromOld(old);
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
