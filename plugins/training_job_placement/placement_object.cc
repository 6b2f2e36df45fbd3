#include "plugins/training_job_placement/placement_object.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/custom_objects.h"

namespace outboard::training_job_placement {
namespace {

using nlohmann::json;

constexpr char kManagedBy[] = "app.kubernetes.io/managed-by";
constexpr char kOutboard[] = "outboard";
constexpr char kKeptBy[] = "accelerator.sched.io/kept-by";
// An effect may have 256 KiB; a pod needs at most one KiB.
constexpr size_t kMaxListed = 200;
constexpr size_t kMaxOwners = 32;
// Keys of status that only the plugin may change.
constexpr const char* kOwnKeys[] = {"placements", "podsNotListed", "domains",
                                    "summary",    "pods",          "nodes"};

bool IsDnsLabel(absl::string_view text) {
  const auto is_plain = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  return !text.empty() && text.size() <= 63 && is_plain(text.front()) && is_plain(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_plain(c) || c == '-'; });
}

// FNV-1a: detects accidental edits, not malicious ones.
std::string DigestOf(const json& status) {
  uint64_t hash = 14695981039346656037u;
  for (const char* key : kOwnKeys) {
    const json* part = sdk::JsonAt(status, {key});
    for (const char c : part == nullptr ? std::string("-") : sdk::JsonText(*part)) {
      hash ^= static_cast<unsigned char>(c);
      hash *= 1099511628211u;
    }
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

std::map<Domain, int64_t> ReadDomains(const json& status) {
  std::map<Domain, int64_t> domains;
  const json* list = sdk::JsonAt(status, {"domains"});
  if (list == nullptr || !list->is_array()) return domains;
  for (const json& entry : *list) {
    const auto level = sdk::TextAt(entry, {"level"});
    const auto value = sdk::TextAt(entry, {"value"});
    const json* pods = sdk::JsonAt(entry, {"pods"});
    if (!level || !value || pods == nullptr || !pods->is_number_integer()) continue;
    const int64_t count = pods->get<int64_t>();
    if (count > 0 && count <= 1'000'000) domains[{*level, *value}] = count;
  }
  return domains;
}

json ListPods(const std::vector<PlacedPod>& placed) {
  json list = json::array();
  for (const PlacedPod& pod : placed) {
    if (list.size() == kMaxListed) break;
    json domains = json::object();
    for (const Domain& domain : pod.domains) domains[domain.level] = domain.value;
    list.push_back(
        {{"pod", pod.name}, {"uid", pod.uid}, {"node", pod.node}, {"domains", std::move(domains)}});
  }
  return list;
}

// The domain with most pods of the tightest level, and the number of pods that share the level.
std::string Summary(const std::vector<PlacedPod>& placed) {
  for (const PlacedPod& pod : placed) {
    if (pod.domains.empty()) continue;
    const std::string& level = pod.domains.front().level;
    std::map<std::string, int64_t> counts;
    for (const PlacedPod& other : placed) {
      for (const Domain& domain : other.domains) {
        if (domain.level == level) ++counts[domain.value];
      }
    }
    const auto most = std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) {
      return a.second != b.second ? a.second < b.second : a.first > b.first;
    });
    std::string text = absl::StrCat(level, "=", most->first);
    if (counts.size() > 1) absl::StrAppend(&text, " and ", counts.size() - 1, " more");
    return text;
  }
  return "";
}

void SetPlaced(const std::vector<PlacedPod>& placed, json* status) {
  (*status)["placements"] = ListPods(placed);
  status->erase("podsNotListed");
  if (placed.size() > kMaxListed) (*status)["podsNotListed"] = placed.size() - kMaxListed;
  std::map<Domain, int64_t> counts;
  for (const PlacedPod& pod : placed) {
    for (const Domain& domain : pod.domains) ++counts[domain];
  }
  json domains = json::array();
  for (const auto& [domain, pods] : counts)
    domains.push_back({{"level", domain.level}, {"value", domain.value}, {"pods", pods}});
  (*status)["domains"] = std::move(domains);
  (*status)["summary"] = Summary(placed);
}

}  // namespace

std::string NameOfJob(absl::string_view job_id) {
  if (IsDnsLabel(job_id)) return std::string(job_id);
  std::string readable;
  for (const char c : job_id) {
    const char lower = absl::ascii_tolower(c);
    readable += absl::ascii_isalnum(lower) ? lower : '-';
  }
  while (!readable.empty() && readable.front() == '-') readable.erase(0, 1);
  while (!readable.empty() && readable.back() == '-') readable.pop_back();
  return absl::StrCat(readable.empty() ? "job" : readable, ".", absl::BytesToHexString(job_id));
}

PlacementObject ReadPlacement(const json& whole, const std::vector<std::string>& levels) {
  PlacementObject object;
  object.job_id = sdk::TextAt(whole, {"spec", "jobID"}).value_or("");
  object.keeper = sdk::TextAt(whole, {"metadata", "annotations", kKeptBy}).value_or("");
  object.made_by_plugin = sdk::TextAt(whole, {"metadata", "labels", kManagedBy}) == kOutboard;
  if (const json* domain = sdk::JsonAt(whole, {"spec", "domain"});
      domain != nullptr && !domain->is_null()) {
    const auto level = sdk::TextAt(*domain, {"level"});
    const auto value = sdk::TextAt(*domain, {"value"});
    if (!level || !value || value->empty()) {
      object.pin_fault = "spec.domain needs a level and a value, both strings";
    } else if (std::find(levels.begin(), levels.end(), *level) == levels.end()) {
      object.pin_fault = absl::StrCat("spec.domain.level: \"", level->substr(0, 317),
                                      "\" is none of ", absl::StrJoin(levels, ", "));
    } else {
      object.pinned = Domain{*level, *value};
    }
  }
  const json* status = sdk::JsonAt(whole, {"status"});
  if (status == nullptr || !status->is_object()) return object;
  const bool has_contents = std::any_of(std::begin(kOwnKeys), std::end(kOwnKeys),
                                        [&](const char* key) { return status->contains(key); });
  object.edited = has_contents && sdk::TextAt(*status, {"digest"}) != DigestOf(*status);
  if (!object.edited) object.domains = ReadDomains(*status);
  return object;
}

json MakeObject(const std::string& job_id, const Ownership& ownership) {
  json whole = {{"apiVersion", "accelerator.sched.io/v1alpha1"},
                {"kind", "TrainingJobPlacement"},
                {"metadata", {{"labels", {{kJobLabel, job_id}, {kManagedBy, kOutboard}}}}},
                {"spec", {{"jobID", job_id}}}};
  Own(ownership, &whole);
  return whole;
}

bool Own(const Ownership& ownership, json* whole) {
  bool changed = false;
  json& metadata = (*whole)["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  json& annotations = metadata["annotations"];
  if (!annotations.is_object()) annotations = json::object();
  if (sdk::TextAt(annotations, {kKeptBy}) != ownership.keeper) {
    annotations[kKeptBy] = ownership.keeper;
    changed = true;
  }
  json& owners = metadata["ownerReferences"];
  if (!owners.is_array()) owners = json::array();
  for (const v1beta1::ControllerReference& controller : ownership.controllers) {
    const bool known = std::any_of(owners.begin(), owners.end(), [&](const json& owner) {
      return sdk::TextAt(owner, {"uid"}) == controller.uid();
    });
    if (known || controller.uid().empty() || owners.size() >= kMaxOwners) continue;
    owners.push_back({{"apiVersion", controller.api_version()},
                      {"kind", controller.kind()},
                      {"name", controller.name()},
                      {"uid", controller.uid()}});
    changed = true;
  }
  if (owners.empty()) metadata.erase("ownerReferences");
  return changed;
}

json MakeStatus(const json& whole, const PlacementObject& object, const Observed& observed,
                const json& good, absl::Time now) {
  const json* present = sdk::JsonAt(whole, {"status"});
  json status = present != nullptr && present->is_object() ? *present : json::object();
  if (!observed.placed.empty()) {
    SetPlaced(observed.placed, &status);
  } else if (object.edited || !status.contains("placements")) {
    SetPlaced({}, &status);
    for (const char* key : {"placements", "podsNotListed", "domains", "summary"}) {
      if (const json* known = sdk::JsonAt(good, {key})) status[key] = *known;
    }
  }
  status["pods"] = observed.placed.size();
  std::set<absl::string_view> nodes;
  for (const PlacedPod& pod : observed.placed) nodes.insert(pod.node);
  status["nodes"] = nodes.size();
  status["digest"] = DigestOf(status);
  sdk::SetCondition({"Active", observed.has_pods, observed.has_pods ? "HasPods" : "NoPods",
                     observed.has_pods ? "the job has pods" : "the job has no pods"},
                    now, &status);
  if (object.edited) {
    sdk::RemoveCondition("StatusEdited", &status);  // another edit, another time
    sdk::SetCondition({"StatusEdited", true, "Replaced",
                       "status was edited; it reports where the pods are, so the plugin replaced "
                       "it"},
                      now, &status);
  }
  if (object.pinned) {
    sdk::SetCondition({"DomainHonoured", true, "Pinned",
                       absl::StrCat("nodes with ", object.pinned->level, "=", object.pinned->value,
                                    " score highest")},
                      now, &status);
  } else if (!object.pin_fault.empty()) {
    sdk::SetCondition({"DomainHonoured", false, "Invalid", object.pin_fault}, now, &status);
  } else {
    sdk::RemoveCondition("DomainHonoured", &status);
  }
  return status;
}

}  // namespace outboard::training_job_placement
