// A trace: which jobs come when, what they ask for and how long they run.
//
// JSON Lines: one object a line, so that a trace of any length is read as it comes and every fault
// has its line. Empty lines and lines that begin with # are passed over. Two kinds of lines:
//
//   {"shape": "train-8", "gpus": 8, "cpu": 64, "memory": "512Gi", "class": "training"}
//   {"job": "a", "arrival": 0, "run": 600, "shape": "train-8", "replicas": 2, "gang": true}
//
// A job has the fields of its shape, defined above it, and its own over them. `kTraceHelp` names
// all.
#ifndef OUTBOARD_SHIM_SIMULATE_TRACE_TRACE_H_
#define OUTBOARD_SHIM_SIMULATE_TRACE_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/kube/objects.h"

namespace outboard::simulate::trace {

struct Job {
  std::string ns, name;
  std::string job_class;
  absl::Duration arrival;             // since the trace's beginning
  std::optional<absl::Duration> run;  // of each replica, or of the gang; absent: it never ends
  int replicas = 1;
  // Its run begins when all replicas have a node, ends for all at once, and begins anew for all
  // when one of them is preempted.
  bool gang = false;
  // Work is saved each time so much of it is done; zero: always; absent: never.
  std::optional<absl::Duration> checkpoint_every;
  // A replica, without name and uid.
  kube::PodPtr pod;

  std::string key() const { return ns + "/" + name; }
};

struct Trace {
  std::vector<Job> jobs;              // in the file's order
  std::vector<std::string> warnings;  // "FILE:LINE: field: …"
};

// The fields of a line, for people.
extern const char kTraceHelp[];

// `file_name` stands in messages only. Errors: INVALID_ARGUMENT, "FILE:LINE: field: what".
absl::StatusOr<Trace> ParseTrace(absl::string_view file_name, const std::string& text);
// Several files are one trace. Errors: as above; NOT_FOUND for a file that cannot be read.
absl::StatusOr<Trace> ReadTraces(const std::vector<std::string>& files);

// Replica `replica` of the job as it is created for the `incarnation`th time, from 0.
kube::PodPtr PodOf(const Job& job, int replica, int incarnation);

// What a pod or a node has, as far as it is measured here. GPUs are all resources named …/gpu.
struct Amounts {
  int64_t cpu_millis = 0;
  int64_t gpus = 0;
};
Amounts AmountsOf(const v1alpha1::Pod& pod);
Amounts AmountsOf(const v1alpha1::Node& node);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_SHIM_SIMULATE_TRACE_TRACE_H_
