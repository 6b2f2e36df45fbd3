#include "shim/hosts/host_info_check.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/short_names.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/host_client.h"
#include "shim/queue/cluster_event.h"

namespace outboard::hosts {
namespace {

using v1beta1::GetHostInfoResponse;
using v1beta1::PluginInfo;

constexpr size_t kMaxBuildBytes = 256;
constexpr size_t kMaxDigestBytes = 128;
constexpr size_t kMaxVersionBytes = 64;
constexpr size_t kMaxNameBytes = 253;
constexpr size_t kMaxPathBytes = 512;
constexpr size_t kMaxSchemaBytes = 64 << 10;
constexpr int kMaxVersions = 16;
constexpr int kMaxPlugins = 256;
constexpr int kMaxEnums = 64;   // of one field: capabilities, points, actions, verbs
constexpr int kMaxParts = 256;  // of one plugin's events, fields, interests, resources

// Collects the first violation.
class Bounds {
 public:
  explicit Bounds(std::string where) : where_(std::move(where)) {}
  void Count(const char* what, int count, int limit) {
    if (count > limit) Refuse(absl::StrCat(count, " ", what, ", more than ", limit));
  }
  void Length(const char* what, const std::string& text, size_t limit) {
    if (text.size() > limit)
      Refuse(absl::StrCat(what, " of ", text.size(), " bytes, more than ", limit));
  }
  template <typename Texts>
  void Lengths(const char* what, const Texts& texts, int count_limit, size_t limit) {
    Count(what, texts.size(), count_limit);
    if (!status_.ok()) return;
    for (const std::string& text : texts) Length(what, text, limit);
  }
  void Refuse(absl::string_view what) {
    if (status_.ok()) status_ = absl::FailedPreconditionError(absl::StrCat(where_, " has ", what));
  }
  const absl::Status& status() const { return status_; }

 private:
  const std::string where_;
  absl::Status status_;
};

// Plan answers as Cycle does, and the shim calls the plugins of such a host in no other way. A host
// with INLINE_NODES can have none of them; CheckInlineInfo says so.
void CheckFused(const GetHostInfoResponse& info, Bounds* bounds) {
  if (framework::HasCapability(info, v1beta1::CAPABILITY_FUSED_CYCLE) ||
      framework::HasCapability(info, v1beta1::CAPABILITY_INLINE_NODES))
    return;
  for (const auto capability : {v1beta1::CAPABILITY_BATCH, v1beta1::CAPABILITY_GROUP_PLAN}) {
    if (!framework::HasCapability(info, capability)) continue;
    bounds->Refuse(absl::StrCat("the capability ", ShortName(capability),
                                ", which requires the capability FUSED_CYCLE"));
  }
}

bool IsAtPreBind(const v1beta1::Interest& interest) {
  return interest.extension_point() == v1beta1::EXTENSION_POINT_PRE_BIND;
}

absl::Status CheckPlugin(const PluginInfo& plugin) {
  Bounds bounds(absl::StrCat("plugin \"", framework::CutText(plugin.name(), 100), "\""));
  if (plugin.name().empty()) bounds.Refuse("no name");
  bounds.Length("a name", plugin.name(), kMaxNameBytes);
  bounds.Count("extension points", plugin.extension_points_size(), kMaxEnums);
  bounds.Length("a schema", plugin.args_schema(), kMaxSchemaBytes);
  bounds.Count("events", plugin.wake_up_events_size(), kMaxParts);
  bounds.Count("interests", plugin.interests_size(), kMaxParts);
  bounds.Count("custom resources", plugin.declared_resources_size(), kMaxParts);
  bounds.Lengths("needed fields", plugin.needed_fields(), kMaxParts, kMaxPathBytes);
  bounds.Lengths("optional fields", plugin.optional_fields(), kMaxParts, kMaxPathBytes);
  if (!bounds.status().ok()) return bounds.status();
  for (const v1beta1::ClusterEvent& event : plugin.wake_up_events()) {
    bounds.Length("an event's resource", event.resource(), kMaxPathBytes);
    bounds.Count("actions of an event", event.actions_size(), kMaxEnums);
  }
  for (const v1beta1::Interest& interest : plugin.interests()) {
    bounds.Lengths("fields of an interest", interest.any_field_set(), kMaxParts, kMaxPathBytes);
    bounds.Length("a reason", interest.post_filter_reason(), framework::kMaxMessageBytes);
    // At other points it means nothing.
    const bool every_pod = interest.every_pod() && IsAtPreBind(interest);
    if (interest.any_field_set().empty() != (interest.no_pod() || every_pod))
      bounds.Refuse("an interest that names fields and no_pod, or neither");
    if (interest.no_pod() && every_pod) bounds.Refuse("an interest in no pod and in every pod");
  }
  for (const v1beta1::DeclaredResource& resource : plugin.declared_resources()) {
    bounds.Length("a custom resource", resource.resource(), kMaxPathBytes);
    bounds.Count("verbs", resource.verbs_size(), kMaxEnums);
  }
  return bounds.status();
}

}  // namespace

absl::Status CheckIdentity(const handshake::v1::HandshakeResponse& identity) {
  Bounds bounds("the host");
  bounds.Lengths("contract versions", identity.contract_versions(), kMaxVersions, kMaxVersionBytes);
  bounds.Length("a build", identity.build(), kMaxBuildBytes);
  bounds.Length("a build_digest", identity.build_digest(), kMaxDigestBytes);
  return bounds.status();
}

absl::Status CheckHostInfo(const GetHostInfoResponse& info) {
  Bounds bounds("the host");
  bounds.Count("plugins", info.plugins_size(), kMaxPlugins);
  bounds.Count("capabilities", info.capabilities_size(), kMaxEnums);
  CheckFused(info, &bounds);
  if (!bounds.status().ok()) return bounds.status();
  for (const PluginInfo& plugin : info.plugins()) {
    if (absl::Status checked = CheckPlugin(plugin); !checked.ok()) return checked;
  }
  return absl::OkStatus();
}

std::string UnknownActions(const GetHostInfoResponse& info) {
  std::vector<std::string> unknown;
  for (const PluginInfo& plugin : info.plugins()) {
    for (const v1beta1::ClusterEvent& event : plugin.wake_up_events()) {
      for (const int action : event.actions()) {
        if (queue::IsKnownAction(action)) continue;
        unknown.push_back(absl::StrCat("action ", action, " on ", event.resource(), " of plugin ",
                                       plugin.name()));
      }
    }
  }
  if (unknown.empty()) return "";
  return absl::StrCat("this shim does not know these registered events, and reads them as every ",
                      "action on the resource: ", absl::StrJoin(unknown, ", "));
}

}  // namespace outboard::hosts
