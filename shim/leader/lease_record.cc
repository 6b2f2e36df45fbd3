#include "shim/leader/lease_record.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace outboard::leader {
namespace {

using nlohmann::json;

std::string Text(const json& object, const char* name) {
  auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

int Number(const json& object, const char* name) {
  auto it = object.find(name);
  return it != object.end() && it->is_number_integer() ? it->get<int>() : 0;
}

// 0: not a positive decimal number.
int64_t Decimal(const std::string& text) {
  int64_t number = 0;
  const bool is_decimal =
      !text.empty() &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  return is_decimal && absl::SimpleAtoi(text, &number) ? number : 0;
}

void SetSpec(const LeaseRecord& record, json* spec) {
  (*spec)["holderIdentity"] = record.holder;
  (*spec)["leaseDurationSeconds"] = record.duration_seconds;
  (*spec)["acquireTime"] = record.acquire_time;
  (*spec)["renewTime"] = record.renew_time;
  (*spec)["leaseTransitions"] = record.transitions;
}

// Replaces invalid UTF-8, for which the default throws.
std::string Dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<Lease> ParseLease(absl::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || Text(object, "kind") != "Lease") {
    return absl::InvalidArgumentError("the answer is not a JSON Lease");
  }
  Lease lease;
  lease.json = std::string(text);
  if (auto metadata = object.find("metadata"); metadata != object.end() && metadata->is_object())
    lease.resource_version = Decimal(Text(*metadata, "resourceVersion"));
  auto spec = object.find("spec");
  if (spec == object.end() || !spec->is_object()) return lease;
  lease.record.holder = Text(*spec, "holderIdentity");
  lease.record.duration_seconds = Number(*spec, "leaseDurationSeconds");
  lease.record.acquire_time = Text(*spec, "acquireTime");
  lease.record.renew_time = Text(*spec, "renewTime");
  lease.record.transitions = Number(*spec, "leaseTransitions");
  return lease;
}

std::string NewLeaseJson(absl::string_view lease_namespace, absl::string_view name,
                         const LeaseRecord& record) {
  json object = {
      {"apiVersion", "coordination.k8s.io/v1"},
      {"kind", "Lease"},
      {"metadata", {{"namespace", std::string(lease_namespace)}, {"name", std::string(name)}}}};
  SetSpec(record, &object["spec"]);
  return Dump(object);
}

std::string UpdatedLeaseJson(const Lease& base, const LeaseRecord& record) {
  json object = json::parse(base.json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) object = json::object();
  if (object.find("spec") == object.end() || !object["spec"].is_object()) {
    object["spec"] = json::object();
  }
  SetSpec(record, &object["spec"]);
  return Dump(object);
}

std::string FormatMicroTime(absl::Time time) {
  return absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E6S", time, absl::UTCTimeZone()), "Z");
}

}  // namespace outboard::leader
