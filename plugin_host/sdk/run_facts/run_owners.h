// The Jobs, JobSets and TrainJobs of pods, and what they say about their pods' runs.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_OWNERS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_OWNERS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::sdk {

// For PluginDescriptor::declared_resources: read-only and optional; the plugin gets these objects
// where the shim's configuration names their resources, and works without them.
std::vector<v1beta1::DeclaredResource> RunOwnerResources();

// What one owner says. Missing and malformed values are absent.
struct RunOwner {
  std::string uid;
  // Of a JobSet: the name of the TrainJob that controls it; empty: none.
  std::string train_job;
  std::optional<absl::Time> deadline;       // Job: spec.activeDeadlineSeconds.
  std::optional<absl::Duration> run_limit;  // TrainJob: spec.activeDeadlineSeconds.
  std::optional<absl::Duration> kueue_limit;
  std::optional<absl::Duration> slurm_limit;
  std::optional<absl::Time> estimated_end;  // TrainJob: status.trainerStatus.
  bool reports_progress = false;            // TrainJob: status.trainerStatus.
  bool has_restarts_left = false;           // JobSet: spec.failurePolicy.maxRestarts.

  friend bool operator==(const RunOwner&, const RunOwner&) = default;
};

// Threading: thread-compatible; the cache's thread.
// Lifetime:  a pointer is valid until the next change.
// Errors:    none; what cannot be read counts as absent.
class RunOwners {
 public:
  // Return the uids of pods about which the object now says something else, in order.
  std::vector<std::string> Set(const v1beta1::ClusterObject& object);
  std::vector<std::string> Remove(const v1beta1::ClusterObject& object);
  // Only pods that were set are in these results.
  void SetPod(const v1beta1::Pod& pod);
  void RemovePod(const std::string& uid);
  void Clear();

  // Null: the pod has none, or it is not known (yet). Pods need not have been set.
  const RunOwner* JobOf(const v1beta1::Pod& pod) const;
  const RunOwner* JobSetOf(const v1beta1::Pod& pod) const;
  const RunOwner* TrainJobOf(const v1beta1::Pod& pod) const;

 private:
  const RunOwner* Find(const std::string& key) const;
  std::vector<std::string> PodsOf(const std::string& key) const;

  absl::flat_hash_map<std::string, RunOwner> owners_;                         // By CustomKey.
  absl::flat_hash_map<std::string, absl::flat_hash_set<std::string>> pods_;   // Uids, by owner.
  absl::flat_hash_map<std::string, std::vector<std::string>> owners_of_pod_;  // Keys, by uid.
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_OWNERS_H_
