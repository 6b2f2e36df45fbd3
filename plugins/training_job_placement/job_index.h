// Jobs with their pods and objects, and the domains of nodes, updated by the cluster cache.
#ifndef OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_JOB_INDEX_H_
#define OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_JOB_INDEX_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/views.h"
#include "plugins/training_job_placement/placement_object.h"

namespace outboard::training_job_placement {

// A job: pods with its label in a namespace, its object, or both.
struct Job {
  std::string ns, id;  // id empty: only an object is known, and it has no id
  // Uids of the job's pods of this profile.
  absl::flat_hash_set<std::string> pods;
  absl::flat_hash_map<sdk::Slot, int64_t> on_node;  // bound, assumed and waiting
  bool has_object = false;
  PlacementObject object;
  nlohmann::json good_status;  // the last observed status that the plugin wrote
};

// Threading: thread-compatible; called on the cluster cache's thread.
// Lifetime:  results are valid until the next change.
// Errors:    none; an invalid value counts as absent, with one warning.
class JobIndex {
 public:
  JobIndex(std::string profile, std::vector<std::string> levels, sdk::ClusterView cluster)
      : profile_(std::move(profile)), levels_(std::move(levels)), cluster_(cluster) {}

  void Clear();
  void SetNode(sdk::Slot slot);
  void RemoveNode(sdk::Slot slot);
  void AddToNode(const sdk::PodRecord& pod, sdk::Slot slot);
  void RemoveFromNode(const sdk::PodRecord& pod, sdk::Slot slot);
  void SetPod(const sdk::PodRecord& pod);
  void RemovePod(const sdk::PodRecord& pod);
  void SetObject(const v1beta1::GenericObject& object);
  void RemoveObject(const v1beta1::GenericObject& object);

  // Null if there is none.
  const Job* Find(const v1beta1::Pod& pod) const;
  // The value id of a node's label for a level; StringTable::kNone without one.
  uint32_t ValueOn(size_t level, sdk::Slot slot) const { return values_[level][slot]; }
  const std::vector<std::string>& levels() const { return levels_; }

  // Keys of changed jobs. The caller erases a key after it found nothing to do for the job.
  absl::flat_hash_set<std::string>& changed() { return changed_; }
  const Job* Find(const std::string& key) const;
  // Drops a job without pods and object.
  void DropIfEmpty(const std::string& key);
  // The current state of the job's pods.
  Observed Observe(const Job& job) const;
  std::vector<v1beta1::ControllerReference> ControllersOf(const Job& job) const;

 private:
  // The key of the pod's job; empty if the pod has no job or another profile.
  std::string KeyOf(const v1beta1::Pod& pod) const;
  Job& Get(const v1beta1::Pod& pod, const std::string& key);
  void Forget(const std::string& pod_uid);

  const std::string profile_;
  const std::vector<std::string> levels_;
  const sdk::ClusterView cluster_;
  absl::flat_hash_map<std::string, Job> jobs_;                // by namespace and name of the object
  std::vector<std::vector<uint32_t>> values_;                 // by level and slot
  absl::flat_hash_map<std::string, std::string> job_of_pod_;  // by uid
  absl::flat_hash_set<std::string> changed_;
  sdk::MalformedValues malformed_{"TrainingJobPlacement"};
};

}  // namespace outboard::training_job_placement

#endif  // OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_JOB_INDEX_H_
