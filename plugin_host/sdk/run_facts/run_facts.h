// What is known of a pod's run: start, end, restarts, checkpoints; and who says so.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_FACTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/node_facts/facts.h"
#include "plugin_host/sdk/run_facts/run_owners.h"

namespace outboard::sdk {

// Longer run times count as unlimited. Ten years: sums with times of this century do not overflow.
inline constexpr int64_t kMaxRunSeconds = int64_t{10} * 365 * 24 * 3600;

// Who says it, the most trusted first. A fact comes from the first source that has it; a limit
// comes from the source with the earliest.
enum class RunSource {
  kNone,             // Unknown.
  kOwn,              // Our annotations of the pod.
  kPod,              // The pod's spec and status.
  kOtherScheduler,   // Labels and annotations of KAI, Volcano, Kueue, slurm-bridge on the pod.
  kTrainingService,  // HyperPod's annotation of the pod.
  kTrainJob,         // The TrainJob; status.trainerStatus is measured by the training itself.
  kJobSet,
  kJob,
};
// `annotation`, `pod`, `TrainJob`, …; `unknown` for kNone.
const char* RunSourceName(RunSource source);

template <typename T>
using RunFact = Fact<T, RunSource>;

// Independent of the current time, so that plugins can keep it until the pod or an owner changes.
struct RunFacts {
  // The start of the pod's work, as annotated: not before the pod's creation, which would be the
  // work of another pod; may be in the future.
  RunFact<absl::Time> declared_start;
  // When the kubelet started the pod: the last start, because a restarted job has other pods.
  RunFact<absl::Time> pod_start;
  // Declared: the annotated end, or the training's own estimate. May be wrong.
  RunFact<absl::Time> estimated_end;
  // Declared, from the start on.
  RunFact<absl::Duration> run_time;
  // Another component ends the pod at the latest then: this long after the pod's start, and at this
  // time (a Job's deadline).
  RunFact<absl::Duration> run_limit;
  RunFact<absl::Time> deadline;
  // Whether the pod declares that it writes checkpoints.
  RunFact<bool> checkpointing;
  // Times of checkpoints, the most trusted first; they may be in the future.
  std::vector<RunFact<absl::Time>> checkpoints;
  // false: it says that it must not be preempted.
  RunFact<bool> preemptible;
  // Never false: no source says that a job does not start again.
  RunFact<bool> restartable;
  // From a restart until the pod is back at its last state.
  RunFact<absl::Duration> restart_time;

  friend bool operator==(const RunFacts&, const RunFacts&) = default;

  // The last start of the work. Ignores an annotated start in the future. Unknown: not started.
  const RunFact<absl::Time>& StartAt(absl::Time now) const;
  // The last checkpoint. Ignores those in the future: they would make work look safe.
  RunFact<absl::Time> CheckpointAt(absl::Time now) const;
  // The newest checkpoint of all sources, including future ones.
  std::optional<absl::Time> NewestCheckpoint() const;
  // When the pod ends by its own declaration. Unknown: it has not started, or declares nothing.
  RunFact<absl::Time> DeclaredEnd() const;
  // When others end the pod at the latest.
  RunFact<absl::Time> EnforcedEnd() const;
  // The earlier one of both.
  RunFact<absl::Time> End() const;
};

// Keeps the Jobs, JobSets and TrainJobs of pods.
//
//   void OnReset() override { run_facts_.Clear(); }
//   void OnPodChanged(const PodRecord& pod) override { run_facts_.SetPod(pod.pod); … }
//   void OnPodRemoved(const PodRecord& pod) override { run_facts_.RemovePod(pod.pod); … }
//   void OnObjectChanged(…, object) override {
//     for (const std::string& uid : run_facts_.SetObject(object)) … forget what you keep of it
//   }
//
// Threading: thread-compatible; the cache's thread.
// Lifetime:  a value.
// Errors:    none. What cannot be read counts as absent.
class RunFactsReader {
 public:
  // Appends malformed labels and annotations of the pod to `malformed`, which may be null.
  RunFacts Of(const v1beta1::Pod& pod, std::vector<MalformedLabel>* malformed) const;

  void SetPod(const v1beta1::Pod& pod) { owners_.SetPod(pod); }
  void RemovePod(const v1beta1::Pod& pod) { owners_.RemovePod(pod.uid()); }
  // Return the uids of pods whose facts may have changed.
  std::vector<std::string> SetObject(const v1beta1::ClusterObject& object) {
    return owners_.Set(object);
  }
  std::vector<std::string> RemoveObject(const v1beta1::ClusterObject& object) {
    return owners_.Remove(object);
  }
  void Clear() { owners_.Clear(); }

 private:
  RunOwners owners_;
};

// The annotations of pods that facts are read from, for PluginDescriptor::needed_fields.
std::vector<std::string> RunAnnotations();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_FACTS_H_
