// The labels, annotations and objects that facts about pods' runs are read from, and where their
// names come from.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_LABELS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_LABELS_H_

namespace outboard::sdk::run_labels {

// Ours: annotations of pods. Times are RFC 3339.
inline constexpr char kCheckpointing[] = "outboard/checkpointing";  // true or false
inline constexpr char kLastCheckpoint[] = "outboard/last-checkpoint-time";
inline constexpr char kStart[] = "outboard/start-time";
inline constexpr char kEstimatedEnd[] = "outboard/estimated-end";
inline constexpr char kRunSeconds[] = "outboard/run-seconds";          // From the start on.
inline constexpr char kRestartSeconds[] = "outboard/restart-seconds";  // Back to the last state.
inline constexpr char kPreemptible[] = "outboard/preemptible";         // true or false

// KAI, a label of pods and workloads (preemptible, non-preemptible, semi-preemptible):
// docs/developer/designs/priority-preemptibility-separation of NVIDIA/KAI-Scheduler.
inline constexpr char kKaiPreemptibility[] = "kai.scheduler/preemptibility";

// Volcano: an annotation of pods, else a label; GetPodPreemptable in pkg/scheduler/api/pod_info.go
// of volcano-sh/volcano.
inline constexpr char kVolcanoPreemptable[] = "volcano.sh/preemptable";
// No component of Volcano writes it; users do.
inline constexpr char kVolcanoLastCheckpoint[] = "volcano.sh/last-checkpoint-time";

// Kueue, a label of any job, also of a single pod (seconds from the admission on):
// kueue.sigs.k8s.io/docs/concepts/workload, "Maximum execution time".
inline constexpr char kKueueSeconds[] = "kueue.x-k8s.io/max-exec-time-seconds";

// slurm-bridge, an annotation of a pod, Job or JobSet (minutes): docs/workload.md of
// SlinkyProject/slurm-bridge.
inline constexpr char kSlurmMinutes[] = "slurmjob.slinky.slurm.net/timelimit";

// HyperPod: docs.aws.amazon.com/sagemaker, "Job auto-resume".
inline constexpr char kAutoResume[] = "sagemaker.amazonaws.com/enable-job-auto-resume";

// JobSet's controller sets it on pods: api/jobset/v1alpha2/jobset_types.go of
// kubernetes-sigs/jobset.
inline constexpr char kJobSetName[] = "jobset.sigs.k8s.io/jobset-name";

// Resources as in GenericObject.resource. Job: spec.activeDeadlineSeconds counts from
// status.startTime on (kubernetes.io/docs, "Job termination and cleanup").
inline constexpr char kJobs[] = "jobs.v1.batch";
// spec.failurePolicy.maxRestarts, status.restartsCountTowardsMax.
inline constexpr char kJobSets[] = "jobsets.v1alpha2.jobset.x-k8s.io";
// spec.activeDeadlineSeconds, status.trainerStatus: pkg/apis/trainer/v1alpha1/trainjob_types.go of
// kubeflow/trainer. Its JobSet has the TrainJob's name
// (pkg/runtime/framework/plugins/jobset/jobset.go). Only the feature gate TrainJobStatus fills in
// status.trainerStatus.
inline constexpr char kTrainJobs[] = "trainjobs.v1alpha1.trainer.kubeflow.org";

}  // namespace outboard::sdk::run_labels

#endif  // OUTBOARD_PLUGIN_HOST_SDK_RUN_FACTS_RUN_LABELS_H_
