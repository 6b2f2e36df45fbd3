// A trace: jobs with arrival times, requests and run times.
//
// JSON Lines: one object per line, so that every error has a line. Empty lines and lines that begin
// with # are ignored. Two kinds of lines:
//
//   {"shape": "train-8", "gpus": 8, "cpu": 64, "memory": "512Gi", "class": "training"}
//   {"job": "a", "arrival": 0, "run": 600, "shape": "train-8", "replicas": 2, "gang": true}
//
// A job has the fields of its shape, which must be defined before; its own fields override them.
// `kTraceHelp` lists all fields.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_TRACE_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/manifests/priorities.h"
#include "shim/kube/objects.h"

namespace outboard::simulate::trace {

struct Job {
  std::string ns, name;
  std::string job_class;
  absl::Duration arrival;             // since the trace's beginning
  std::optional<absl::Duration> run;  // of each replica, or of the gang; absent: never ends
  int replicas = 1;
  // The run begins when all replicas have a node, and ends for all at once. If one replica is
  // preempted, the run starts again for all.
  bool gang = false;
  // Interval at which work is saved; zero: continuously; absent: never.
  std::optional<absl::Duration> checkpoint_every;
  // A replica without name and uid.
  kube::PodPtr pod;

  std::string key() const { return ns + "/" + name; }
};

struct Trace {
  std::vector<Job> jobs;              // in the file's order
  std::vector<std::string> warnings;  // "FILE:LINE: field: …"
};

// The help text: all fields of a line.
extern const char kTraceHelp[];

// `file_name` appears only in messages. Errors: INVALID_ARGUMENT, "FILE:LINE: field: what".
absl::StatusOr<Trace> ParseTrace(absl::string_view file_name, const std::string& text);
// Several files form one trace. `priority_classes` are the cluster's. Errors: as above; also with
// the system's reason for a file that cannot be read.
absl::StatusOr<Trace> ReadTraces(
    const std::vector<std::string>& files,
    const manifests::PriorityClasses& priority_classes = manifests::PriorityClasses());

// Replica `replica` of the job. `incarnation` counts its creations, from 0.
kube::PodPtr PodOf(const Job& job, int replica, int incarnation);

// The measured resources of a pod or node. GPUs: all resources named …/gpu.
struct Amounts {
  int64_t cpu_millis = 0;
  int64_t gpus = 0;
};
Amounts AmountsOf(const v1beta1::Pod& pod);
Amounts AmountsOf(const v1beta1::Node& node);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_TRACE_H_
