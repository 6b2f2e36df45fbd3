#include "plugins/training_job_placement/job_index.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"

namespace outboard::training_job_placement {

void JobIndex::Clear() {
  jobs_.clear();
  job_of_pod_.clear();
  changed_.clear();
  malformed_.Clear();
  values_.assign(levels_.size(), {});
}

void JobIndex::SetNode(sdk::Slot slot) {
  const sdk::NodeView node = cluster_.node(slot);
  const sdk::StringTable& keys = cluster_.nodes().label_keys;
  values_.resize(levels_.size());
  bool any_changed = false;
  for (size_t level = 0; level < levels_.size(); ++level) {
    std::vector<uint32_t>& column = values_[level];
    if (slot >= column.size()) column.resize(slot + 1, sdk::StringTable::kNone);
    const uint32_t key = keys.Find(levels_[level]);
    uint32_t value =
        key == sdk::StringTable::kNone ? sdk::StringTable::kNone : node.LabelValueId(key);
    if (value != sdk::StringTable::kNone && cluster_.nodes().label_values.Text(value).empty())
      value = sdk::StringTable::kNone;
    any_changed |= std::exchange(column[slot], value) != value;
  }
  if (!any_changed) return;
  for (const sdk::PodRecord* pod : node.pods()) {
    if (const std::string key = KeyOf(pod->pod); !key.empty()) changed_.insert(key);
  }
}

void JobIndex::RemoveNode(sdk::Slot slot) {
  for (std::vector<uint32_t>& column : values_) {
    if (slot < column.size()) column[slot] = sdk::StringTable::kNone;
  }
}

std::string JobIndex::KeyOf(const v1beta1::Pod& pod) const {
  const std::string* id = sdk::FindValue(pod.labels(), kJobLabel);
  if (id == nullptr || id->empty() || pod.scheduler_name() != profile_) return "";
  return sdk::NamespacedKey(pod.namespace_(), NameOfJob(*id));
}

Job& JobIndex::Get(const v1beta1::Pod& pod, const std::string& key) {
  Job& job = jobs_[key];
  job.ns = pod.namespace_();
  job.id = pod.labels().at(kJobLabel);
  return job;
}

void JobIndex::AddToNode(const sdk::PodRecord& pod, sdk::Slot slot) {
  if (const std::string key = KeyOf(pod.pod); !key.empty()) ++Get(pod.pod, key).on_node[slot];
}

void JobIndex::RemoveFromNode(const sdk::PodRecord& pod, sdk::Slot slot) {
  const std::string key = KeyOf(pod.pod);
  const auto job = jobs_.find(key);
  if (key.empty() || job == jobs_.end()) return;
  const auto count = job->second.on_node.find(slot);
  if (count != job->second.on_node.end() && --count->second <= 0) job->second.on_node.erase(count);
}

void JobIndex::SetPod(const sdk::PodRecord& pod) {
  const std::string key = KeyOf(pod.pod);
  const auto known = job_of_pod_.find(pod.pod.uid());
  if (known != job_of_pod_.end() && known->second != key) Forget(pod.pod.uid());
  if (key.empty()) return;
  job_of_pod_[pod.pod.uid()] = key;
  Get(pod.pod, key).pods.insert(pod.pod.uid());
  changed_.insert(key);
}

void JobIndex::RemovePod(const sdk::PodRecord& pod) { Forget(pod.pod.uid()); }

void JobIndex::Forget(const std::string& pod_uid) {
  const auto known = job_of_pod_.find(pod_uid);
  if (known == job_of_pod_.end()) return;
  if (const auto job = jobs_.find(known->second); job != jobs_.end())
    job->second.pods.erase(pod_uid);
  changed_.insert(known->second);
  job_of_pod_.erase(known);
}

void JobIndex::SetObject(const v1beta1::GenericObject& object) {
  const std::string key = sdk::NamespacedKey(object.namespace_(), object.name());
  const nlohmann::json whole = sdk::ParseCustomObject(object);
  PlacementObject read = ReadPlacement(whole, levels_);
  const std::string about = absl::StrCat("TrainingJobPlacement ", key);
  if (!read.pin_fault.empty()) {
    malformed_.Warn(about, "spec.domain", sdk::JsonText(*sdk::JsonAt(whole, {"spec", "domain"})),
                    "a level of the plugin and a value");
  } else {
    malformed_.Forget(about);
  }
  if (NameOfJob(read.job_id) != object.name()) {
    malformed_.Warn(about, "spec.jobID", read.job_id,
                    "the job that the object's name stands for; the object is ignored");
    if (!jobs_.contains(key)) return;
  }
  Job& job = jobs_[key];
  job.ns = object.namespace_();
  if (job.id.empty()) job.id = read.job_id;
  job.has_object = true;
  if (const nlohmann::json* status = sdk::JsonAt(whole, {"status"});
      status != nullptr && !read.edited && status->contains("digest")) {
    job.good_status = *status;
  }
  job.object = std::move(read);
  changed_.insert(key);
}

void JobIndex::RemoveObject(const v1beta1::GenericObject& object) {
  const std::string key = sdk::NamespacedKey(object.namespace_(), object.name());
  malformed_.Forget(absl::StrCat("TrainingJobPlacement ", key));
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return;
  job->second.has_object = false;
  job->second.object = PlacementObject();
  job->second.good_status = nullptr;
  changed_.insert(key);
}

const Job* JobIndex::Find(const v1beta1::Pod& pod) const {
  const std::string key = KeyOf(pod);
  return key.empty() ? nullptr : Find(key);
}

const Job* JobIndex::Find(const std::string& key) const {
  const auto job = jobs_.find(key);
  return job == jobs_.end() ? nullptr : &job->second;
}

void JobIndex::DropIfEmpty(const std::string& key) {
  const auto job = jobs_.find(key);
  if (job != jobs_.end() && job->second.pods.empty() && job->second.on_node.empty() &&
      !job->second.has_object) {
    jobs_.erase(job);
  }
}

Observed JobIndex::Observe(const Job& job) const {
  Observed observed;
  observed.has_pods = !job.pods.empty();
  for (const std::string& uid : job.pods) {
    const sdk::PodRecord* pod = cluster_.FindPod(uid);
    if (pod == nullptr || pod->place != sdk::Place::kBound || !pod->on_node()) continue;
    PlacedPod& placed = observed.placed.emplace_back();
    placed.name = pod->pod.name();
    placed.uid = uid;
    placed.node = cluster_.node(pod->slot).name();
    for (size_t level = 0; level < levels_.size(); ++level) {
      const uint32_t value = ValueOn(level, pod->slot);
      if (value == sdk::StringTable::kNone) continue;
      placed.domains.push_back(
          {levels_[level], std::string(cluster_.nodes().label_values.Text(value))});
    }
  }
  std::sort(observed.placed.begin(), observed.placed.end(),
            [](const PlacedPod& a, const PlacedPod& b) {
              return a.name != b.name ? a.name < b.name : a.uid < b.uid;
            });
  return observed;
}

std::vector<v1beta1::ControllerReference> JobIndex::ControllersOf(const Job& job) const {
  std::map<std::string, v1beta1::ControllerReference> by_uid;
  for (const std::string& uid : job.pods) {
    const sdk::PodRecord* pod = cluster_.FindPod(uid);
    if (pod != nullptr && pod->pod.has_controller())
      by_uid[pod->pod.controller().uid()] = pod->pod.controller();
  }
  std::vector<v1beta1::ControllerReference> controllers;
  for (auto& [uid, controller] : by_uid) controllers.push_back(std::move(controller));
  return controllers;
}

}  // namespace outboard::training_job_placement
