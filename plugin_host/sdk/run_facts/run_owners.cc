#include "plugin_host/sdk/run_facts/run_owners.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "plugin_host/sdk/cluster_objects.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/run_facts/run_facts.h"
#include "plugin_host/sdk/run_facts/run_labels.h"

namespace outboard::sdk {
namespace {

using nlohmann::json;

// A whole number from `min` to kMaxRunSeconds.
std::optional<int64_t> NumberAt(const json& whole, JsonPath path, int64_t min) {
  const json* value = JsonAt(whole, path);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  // Above the range of int64_t it would be read as negative.
  if (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{kMaxRunSeconds})
    return std::nullopt;
  const int64_t number = value->get<int64_t>();
  if (number < min || number > kMaxRunSeconds) return std::nullopt;
  return number;
}
std::optional<absl::Duration> SecondsAt(const json& whole, JsonPath path, int64_t min) {
  const std::optional<int64_t> seconds = NumberAt(whole, path, min);
  if (!seconds) return std::nullopt;
  return absl::Seconds(*seconds);
}
std::optional<absl::Time> TimeAt(const json& whole, JsonPath path) {
  const std::optional<std::string> text = TextAt(whole, path);
  return text ? ParseTimestamp(*text) : std::nullopt;
}
std::optional<absl::Duration> AmountAt(const json& whole, JsonPath path, absl::Duration unit) {
  const std::optional<std::string> text = TextAt(whole, path);
  const std::optional<int64_t> count =
      text ? ParseCount(*text, kMaxRunSeconds / absl::ToInt64Seconds(unit)) : std::nullopt;
  if (!count || *count == 0) return std::nullopt;
  return *count * unit;
}

void ReadTrainJob(const json& whole, RunOwner* owner) {
  owner->run_limit = SecondsAt(whole, {"spec", "activeDeadlineSeconds"}, 1);
  const json* status = JsonAt(whole, {"status", "trainerStatus"});
  if (status == nullptr) return;
  owner->reports_progress = NumberAt(*status, {"progressPercentage"}, 0).has_value();
  const auto left = SecondsAt(*status, {"estimatedRemainingSeconds"}, 0);
  const auto updated = TimeAt(*status, {"lastUpdatedTime"});
  if (left && updated) owner->estimated_end = *updated + *left;
}

std::optional<RunOwner> ReadOwner(const v1beta1::GenericObject& object) {
  const std::string& resource = object.resource();
  const bool job = resource == run_labels::kJobs;
  const bool job_set = resource == run_labels::kJobSets;
  if (!job && !job_set && resource != run_labels::kTrainJobs) return std::nullopt;
  const json whole = ParseCustomObject(object);
  RunOwner owner;
  owner.uid = object.uid();
  owner.kueue_limit =
      AmountAt(whole, {"metadata", "labels", run_labels::kKueueSeconds}, absl::Seconds(1));
  owner.slurm_limit =
      AmountAt(whole, {"metadata", "annotations", run_labels::kSlurmMinutes}, absl::Minutes(1));
  if (job) {
    const auto started = TimeAt(whole, {"status", "startTime"});
    const auto deadline = SecondsAt(whole, {"spec", "activeDeadlineSeconds"}, 1);
    if (started && deadline) owner.deadline = *started + *deadline;
  } else if (job_set) {
    const int64_t used = NumberAt(whole, {"status", "restartsCountTowardsMax"}, 0).value_or(0);
    const auto most = NumberAt(whole, {"spec", "failurePolicy", "maxRestarts"}, 0);
    owner.has_restarts_left = most && *most > used;
    const json* references = JsonAt(whole, {"metadata", "ownerReferences"});
    for (const json& reference :
         references != nullptr && references->is_array() ? *references : json::array()) {
      if (TextAt(reference, {"kind"}) == "TrainJob")
        owner.train_job = TextAt(reference, {"name"}).value_or("");
    }
  } else {
    ReadTrainJob(whole, &owner);
  }
  return owner;
}

std::string KeyOf(const v1beta1::GenericObject& object) {
  return CustomKey(object.resource(), object.namespace_(), object.name());
}
bool HasJob(const v1beta1::Pod& pod) { return pod.controller().kind() == "Job"; }
std::string JobKey(const v1beta1::Pod& pod) {
  return CustomKey(run_labels::kJobs, pod.namespace_(), pod.controller().name());
}
// Null: the pod belongs to no JobSet.
const std::string* JobSetName(const v1beta1::Pod& pod) {
  return FindValue(pod.labels(), run_labels::kJobSetName);
}

}  // namespace

std::vector<v1beta1::DeclaredResource> RunOwnerResources() {
  std::vector<v1beta1::DeclaredResource> resources;
  for (const char* name : {run_labels::kJobs, run_labels::kJobSets, run_labels::kTrainJobs}) {
    v1beta1::DeclaredResource& resource = resources.emplace_back();
    resource.set_resource(name);
    resource.set_optional(true);
  }
  return resources;
}

const RunOwner* RunOwners::Find(const std::string& key) const {
  const auto known = owners_.find(key);
  return known == owners_.end() ? nullptr : &known->second;
}

std::vector<std::string> RunOwners::PodsOf(const std::string& key) const {
  std::vector<std::string> uids;
  if (const auto known = pods_.find(key); known != pods_.end())
    uids.assign(known->second.begin(), known->second.end());
  std::sort(uids.begin(), uids.end());
  return uids;
}

std::vector<std::string> RunOwners::Set(const v1beta1::ClusterObject& object) {
  if (!object.has_generic_object()) return {};
  std::optional<RunOwner> owner = ReadOwner(object.generic_object());
  if (!owner) return {};
  const std::string key = KeyOf(object.generic_object());
  const auto [it, added] = owners_.try_emplace(key);
  // Most updates of a Job change nothing here.
  if (!added && it->second == *owner) return {};
  it->second = *std::move(owner);
  return PodsOf(key);
}

std::vector<std::string> RunOwners::Remove(const v1beta1::ClusterObject& object) {
  if (!object.has_generic_object()) return {};
  const std::string key = KeyOf(object.generic_object());
  if (owners_.erase(key) == 0) return {};
  return PodsOf(key);
}

void RunOwners::SetPod(const v1beta1::Pod& pod) {
  std::vector<std::string> keys;
  if (HasJob(pod)) keys.push_back(JobKey(pod));
  if (const std::string* name = JobSetName(pod)) {
    keys.push_back(CustomKey(run_labels::kJobSets, pod.namespace_(), *name));
    keys.push_back(CustomKey(run_labels::kTrainJobs, pod.namespace_(), *name));
  }
  const auto known = owners_of_pod_.find(pod.uid());
  if (known != owners_of_pod_.end() && known->second == keys) return;
  RemovePod(pod.uid());
  if (keys.empty()) return;
  for (const std::string& key : keys) pods_[key].insert(pod.uid());
  owners_of_pod_.emplace(pod.uid(), std::move(keys));
}

void RunOwners::RemovePod(const std::string& uid) {
  const auto known = owners_of_pod_.find(uid);
  if (known == owners_of_pod_.end()) return;
  for (const std::string& key : known->second) {
    const auto pods = pods_.find(key);
    pods->second.erase(uid);
    if (pods->second.empty()) pods_.erase(pods);
  }
  owners_of_pod_.erase(known);
}

void RunOwners::Clear() {
  owners_.clear();
  pods_.clear();
  owners_of_pod_.clear();
}

const RunOwner* RunOwners::JobOf(const v1beta1::Pod& pod) const {
  if (owners_.empty() || !HasJob(pod)) return nullptr;
  const RunOwner* job = Find(JobKey(pod));
  // A Job that was created again under the same name has other pods.
  return job == nullptr || job->uid != pod.controller().uid() ? nullptr : job;
}

const RunOwner* RunOwners::JobSetOf(const v1beta1::Pod& pod) const {
  const std::string* name = owners_.empty() ? nullptr : JobSetName(pod);
  if (name == nullptr) return nullptr;
  return Find(CustomKey(run_labels::kJobSets, pod.namespace_(), *name));
}

const RunOwner* RunOwners::TrainJobOf(const v1beta1::Pod& pod) const {
  const std::string* name = owners_.empty() ? nullptr : JobSetName(pod);
  if (name == nullptr) return nullptr;
  // Anyone may give a JobSet the name of a TrainJob.
  const RunOwner* job_set = JobSetOf(pod);
  if (job_set != nullptr && job_set->train_job != *name) return nullptr;
  return Find(CustomKey(run_labels::kTrainJobs, pod.namespace_(), *name));
}

}  // namespace outboard::sdk
