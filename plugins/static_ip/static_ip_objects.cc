#include "plugins/static_ip/static_ip_objects.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"

namespace outboard::static_ip {
namespace {

using nlohmann::json;

constexpr char kAsks[] = "outboard/static-ip";
constexpr char kRelease[] = "outboard/static-ip-release";
constexpr char kGalaxyRelease[] = "k8s.v1.cni.galaxy.io/release-policy";
constexpr char kHybridnetRetain[] = "networking.alibaba.com/ip-retain";
constexpr char kManagedBy[] = "app.kubernetes.io/managed-by";
constexpr char kOutboard[] = "outboard";
constexpr size_t kMaxRanges = 1024;

bool IsObjectName(absl::string_view text) {
  const auto is_plain = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  return !text.empty() && text.size() <= 253 && is_plain(text.front()) && is_plain(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_plain(c) || c == '-' || c == '.'; });
}

// Returns the fault of the first invalid entry; empty if all are valid.
std::string ReadRanges(const json& spec, const char* key, const Range& cidr,
                       std::vector<Range>* ranges) {
  const json* list = sdk::JsonAt(spec, {key});
  if (list == nullptr || list->is_null()) return "";
  if (!list->is_array() || list->size() > kMaxRanges)
    return absl::StrCat("spec.", key, ": must be at most ", kMaxRanges, " strings");
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    const std::optional<Range> range =
        entry.is_string() ? ParseRange(entry.get_ref<const std::string&>()) : std::nullopt;
    if (!range || !cidr.Contains(range->first) || !cidr.Contains(range->last)) {
      return absl::StrCat("spec.", key, "[", i,
                          "]: must be an IP, FIRST-LAST or a CIDR, within spec.cidr");
    }
    ranges->push_back(*range);
  }
  return "";
}

}  // namespace

absl::string_view PolicyName(ReleasePolicy policy) {
  switch (policy) {
    case ReleasePolicy::kNever:
      return "Never";
    case ReleasePolicy::kOnScaleDown:
      return "OnScaleDown";
    case ReleasePolicy::kOnDelete:
      return "OnDelete";
  }
  return "";
}

std::optional<ReleasePolicy> ParsePolicy(absl::string_view text) {
  for (const auto policy :
       {ReleasePolicy::kNever, ReleasePolicy::kOnScaleDown, ReleasePolicy::kOnDelete}) {
    if (text == PolicyName(policy)) return policy;
  }
  return std::nullopt;
}

IpRequest IpRequestOf(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) {
  IpRequest request;
  const auto complain = [&](const char* key, const std::string& value, const char* wanted) {
    if (malformed == nullptr) return;
    malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), key, value, wanted);
  };
  // The annotation, else the label.
  bool says = false;
  for (const sdk::StringMap* values : {&pod.annotations(), &pod.labels()}) {
    const std::string* asks = says ? nullptr : sdk::FindValue(*values, kAsks);
    if (asks == nullptr) continue;
    const std::optional<bool> yes = sdk::ParseBool(*asks);
    says = yes || IsObjectName(*asks);
    if (!says) complain(kAsks, *asks, "true, false or the name of a StaticIPPool");
    request.wants_ip = says && yes.value_or(true);
    if (says && !yes) request.pool = *asks;
  }
  if (const std::string* galaxy = sdk::FindValue(pod.annotations(), kGalaxyRelease)) {
    if (*galaxy == "immutable" || *galaxy == "never") {
      request.wants_ip |= !says;
      request.policy = *galaxy == "never" ? ReleasePolicy::kNever : ReleasePolicy::kOnScaleDown;
    } else if (!galaxy->empty()) {
      complain(kGalaxyRelease, *galaxy, "immutable or never");
    }
  }
  if (const std::string* retain = sdk::FindValue(pod.annotations(), kHybridnetRetain)) {
    const std::optional<bool> yes = sdk::ParseBool(*retain);
    if (!yes) complain(kHybridnetRetain, *retain, "true or false");
    request.wants_ip |= !says && yes.value_or(false);
  }
  if (const std::string* release = sdk::FindValue(pod.annotations(), kRelease)) {
    const std::optional<ReleasePolicy> policy = ParsePolicy(*release);
    if (!policy) complain(kRelease, *release, "Never, OnScaleDown or OnDelete");
    if (policy) request.policy = policy;
  }
  return request;
}

PoolSpec ReadPool(const v1beta1::GenericObject& object) {
  PoolSpec pool;
  const json whole = sdk::ParseCustomObject(object);
  const json* spec = sdk::JsonAt(whole, {"spec"});
  const std::optional<std::string> cidr = sdk::TextAt(whole, {"spec", "cidr"});
  const std::optional<Range> parsed = cidr ? ParseCidr(*cidr) : std::nullopt;
  if (!parsed) {
    pool.fault = "spec.cidr: must be a CIDR such as 10.0.0.0/24, without host bits";
    return pool;
  }
  pool.cidr = *parsed;
  std::vector<Range> ranges, excluded;
  pool.fault = ReadRanges(*spec, "ranges", *parsed, &ranges);
  if (pool.fault.empty()) pool.fault = ReadRanges(*spec, "excluded", *parsed, &excluded);
  if (const json* policy = sdk::JsonAt(*spec, {"releasePolicy"});
      policy != nullptr && !policy->is_null()) {
    pool.policy = ParsePolicy(sdk::TextAt(*spec, {"releasePolicy"}).value_or(""));
    if (!pool.policy) pool.fault = "spec.releasePolicy: must be Never, OnScaleDown or OnDelete";
  }
  pool.node_selector = sdk::StringsAt(*spec, {"nodeSelector"});
  if (const json* selector = sdk::JsonAt(*spec, {"nodeSelector"});
      selector != nullptr && !selector->is_null() &&
      (!selector->is_object() || selector->size() != pool.node_selector.size())) {
    pool.fault = "spec.nodeSelector: must be a map of strings";
  }
  if (!pool.fault.empty()) return pool;
  if (ranges.empty()) {
    pool.allowed.Add(*parsed);
    // The network address, and for IPv4 the broadcast address.
    const absl::uint128 size = parsed->last.value - parsed->first.value;
    if (size > 1) pool.allowed.Remove(parsed->first);
    if (size > 1 && !parsed->first.v6) pool.allowed.Remove(parsed->last);
  }
  for (const Range& range : ranges) pool.allowed.Add(range);
  for (const Range& range : excluded) pool.allowed.Remove(range);
  return pool;
}

Reservation ReadReservation(const v1beta1::GenericObject& object) {
  Reservation read;
  const json whole = sdk::ParseCustomObject(object);
  const auto text = [&](sdk::JsonPath path) { return sdk::TextAt(whole, path).value_or(""); };
  read.name = object.name();
  read.uid = object.uid();
  read.deleting = object.deleting();
  read.address = AddressOfName(object.name());
  const std::optional<Address> ip = ParseAddress(text({"spec", "ip"}));
  if (!read.address) {
    read.fault = "the object's name is not an IP; the name for 10.0.0.5 is 10-0-0-5";
  } else if (!ip || !(*ip == *read.address)) {
    read.fault =
        absl::StrCat("spec.ip is not ", ToText(*read.address), ", the IP in the object's name");
  }
  read.pool = text({"spec", "pool"});
  read.owner = {text({"spec", "owner", "namespace"}), text({"spec", "owner", "pod"}),
                text({"spec", "owner", "podUID"}), text({"spec", "owner", "statefulSet"})};
  if (read.owner.ns.empty() != read.owner.pod.empty() && read.fault.empty())
    read.fault = "spec.owner needs both namespace and pod";
  read.node = text({"spec", "node"});
  const std::string policy = text({"spec", "releasePolicy"});
  read.policy = ParsePolicy(policy);
  if (const json* finalizers = sdk::JsonAt(whole, {"metadata", "finalizers"});
      finalizers != nullptr && finalizers->is_array()) {
    read.has_finalizer =
        std::any_of(finalizers->begin(), finalizers->end(),
                    [](const json& finalizer) { return finalizer == json(kFinalizer); });
  }
  read.made_by_plugin = sdk::TextAt(whole, {"metadata", "labels", kManagedBy}) == kOutboard;
  read.created = text({"metadata", "creationTimestamp"});
  read.phase = text({"status", "phase"});
  read.user_uid = text({"status", "podUID"});
  const json* status = sdk::JsonAt(whole, {"status"});
  if (status == nullptr) return read;
  read.was_accepted = sdk::IsConditionTrue(*status, "Accepted");
  if (const json* accepted = sdk::FindCondition(*status, "Accepted"))
    read.message = sdk::TextAt(*accepted, {"message"}).value_or("");
  read.deletion_waits = sdk::IsConditionTrue(*status, "DeletionPending");
  return read;
}

json MakeReservation(const Address& address, const std::string& pool, const Owner& owner,
                     const std::string& node, ReleasePolicy policy) {
  json whole = {
      {"apiVersion", "accelerator.sched.io/v1alpha1"},
      {"kind", "StaticIPReservation"},
      {"metadata", {{"labels", {{kManagedBy, kOutboard}}}}},
      {"spec",
       {{"ip", ToText(address)},
        {"pool", pool},
        {"node", node},
        {"releasePolicy", std::string(PolicyName(policy))},
        {"owner", {{"namespace", owner.ns}, {"pod", owner.pod}, {"podUID", owner.pod_uid}}}}}};
  whole["metadata"]["finalizers"] = json::array({kFinalizer});
  if (!owner.stateful_set.empty()) whole["spec"]["owner"]["statefulSet"] = owner.stateful_set;
  return whole;
}

}  // namespace outboard::static_ip
