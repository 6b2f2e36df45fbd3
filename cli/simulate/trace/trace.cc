#include "cli/simulate/trace/trace.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/manifests/manifest_files.h"
#include "cli/manifests/object_reader.h"
#include "shim/cache/node_guard.h"
#include "shim/config/yaml_reader.h"

namespace outboard::simulate::trace {

using Json = nlohmann::json;

const char kTraceHelp[] =
    R"(A trace is JSON Lines: one object per line. Empty lines and lines that begin with # are ignored.

  {"shape": "train-8", "class": "training", "gpus": 8, "cpu": 64, "memory": "512Gi"}
  {"job": "a", "arrival": 0, "run": 600, "shape": "train-8", "replicas": 2, "gang": true}

A line with "job" is a job. A line without it defines a shape. A job has the fields of its shape, which must be defined
before; its own fields override them.

  job              Name. Its pods are called job, or job-0, job-1, …; with .r1 after their first return
  namespace        Default: "default"
  arrival          When its pods are created, in seconds since the beginning. Required
  run              Run time in seconds. Absent: it never ends
  shape            Name of a shape
  class            Class in the summary. Default: the shape's name, else "default"
  replicas         Number of identical pods, 1 to 10000. Default: 1
  gang             true: the run begins when the last replica has a node, and ends for all at once; if one replica is
                   preempted, the run starts again for all. Pods have the annotation outboard/min-replicas.
                   false (default): each replica runs on its own
  checkpointEvery  Interval in seconds at which work is saved; 0: continuously; absent: never. A preempted pod comes back
                   at once as a new pod, and repeats the work that was not saved
  cpu, memory      Requests of a replica as in Kubernetes: 4, "500m", "64Gi"
  gpus             Whole GPUs, as a limit of nvidia.com/gpu
  priority         spec.priority. Default: 0
  schedulerName    Default: "default-scheduler"
  labels, annotations, nodeSelector
                   Objects of strings. Like the Job controller, sets labels job-name and batch.kubernetes.io/job-name
  template         Instead of cpu, memory, gpus and nodeSelector: {"metadata": …, "spec": …} as in a Job
)";

namespace {

std::string PodName(const Job& job, int replica) {
  return job.replicas == 1 ? job.name : absl::StrCat(job.name, "-", replica);
}

// Whether it has the form of a returned pod's name.
bool LooksLikeReturn(absl::string_view name) {
  const size_t dot = name.rfind(".r");
  int64_t number = 0;
  return dot != absl::string_view::npos && absl::SimpleAtoi(name.substr(dot + 2), &number);
}

constexpr int kMaxReplicas = 10000;
constexpr double kMaxSeconds = 1e9;
constexpr char kGpuResource[] = "nvidia.com/gpu";

const std::vector<std::string>& KnownFields() {
  static const auto* const fields = new std::vector<std::string>{
      "job",           "namespace", "arrival", "run",         "shape",        "class",
      "replicas",      "gang",      "cpu",     "memory",      "gpus",         "checkpointEvery",
      "schedulerName", "priority",  "labels",  "annotations", "nodeSelector", "template"};
  return *fields;
}

// Reads the fields of one line. Keeps the first error.
class Line {
 public:
  Line(std::string place, const Json& fields) : place_(std::move(place)), fields_(fields) {}

  const absl::Status& status() const { return status_; }
  bool Has(const char* field) const { return fields_.contains(field); }
  const Json& At(const char* field) const { return fields_.at(field); }
  void Fail(absl::string_view field, absl::string_view what) {
    if (status_.ok())
      status_ = absl::InvalidArgumentError(absl::StrCat(place_, ": ", field, ": ", what));
  }

  void String(const char* field, std::string* out) {
    if (!Has(field)) return;
    if (!At(field).is_string() || At(field).get_ref<const std::string&>().empty())
      return Fail(field, "must be a non-empty string");
    *out = At(field).get<std::string>();
  }
  void Bool(const char* field, bool* out) {
    if (!Has(field)) return;
    if (!At(field).is_boolean()) return Fail(field, "must be true or false");
    *out = At(field).get<bool>();
  }
  void Seconds(const char* field, bool may_be_zero, std::optional<absl::Duration>* out) {
    if (!Has(field)) return;
    const double value = At(field).is_number() ? At(field).get<double>() : -1;
    if (!(value >= 0 && value <= kMaxSeconds) || (value == 0 && !may_be_zero)) {
      return Fail(field, absl::StrCat("must be a number of seconds, ",
                                      may_be_zero ? "0 or more" : "more than 0", ", at most 1e9"));
    }
    // Rounded to whole microseconds.
    *out = absl::Microseconds(std::llround(value * 1e6));
    if (*out == absl::ZeroDuration() && !may_be_zero) *out = absl::Microseconds(1);
  }
  void Integer(const char* field, int64_t low, int64_t high, int64_t* out) {
    if (!Has(field)) return;
    const bool is_integer =
        At(field).is_number_integer() &&
        !(At(field).is_number_unsigned() && At(field).get<uint64_t>() > uint64_t{1} << 62);
    if (!is_integer || At(field).get<int64_t>() < low || At(field).get<int64_t>() > high)
      return Fail(field, absl::StrCat("must be an integer from ", low, " to ", high));
    *out = At(field).get<int64_t>();
  }
  // A Kubernetes quantity. The manifest's reader validates it.
  void Quantity(const char* field, Json* requests) {
    if (!Has(field)) return;
    if (At(field).is_number()) {
      if (At(field).get<double>() < 0) return Fail(field, "must not be negative");
      (*requests)[field] = At(field).dump();
    } else if (At(field).is_string()) {
      (*requests)[field] = At(field);
    } else {
      Fail(field, "must be a number, or a string such as \"500m\" or \"64Gi\"");
    }
  }
  void StringMap(const char* field, Json* out) {
    if (!Has(field)) return;
    if (!At(field).is_object()) return Fail(field, "must be an object of strings");
    if (!out->is_object()) *out = Json::object();
    for (const auto& [key, value] : At(field).items()) {
      if (!value.is_string()) return Fail(absl::StrCat(field, ".", key), "must be a string");
      (*out)[key] = value;
    }
  }

 private:
  const std::string place_;
  const Json& fields_;
  absl::Status status_;
};

// The line's field for a field of the manifest.
std::string FieldOf(const std::string& path, bool has_template) {
  if (has_template) return absl::StrCat("template.", path);
  for (const char* resource : {"cpu", "memory"}) {
    if (absl::EndsWith(path, absl::StrCat(".", resource))) return resource;
  }
  if (absl::EndsWith(path, absl::StrCat("[", kGpuResource, "]"))) return "gpus";
  static const auto* const fields =
      new std::map<std::string, std::string>{{"metadata.name", "job"},
                                             {"metadata.namespace", "namespace"},
                                             {"metadata.labels", "labels"},
                                             {"metadata.annotations", "annotations"},
                                             {"spec.nodeSelector", "nodeSelector"},
                                             {"spec.schedulerName", "schedulerName"},
                                             {"spec.priority", "priority"}};
  for (const auto& [manifest, field] : *fields) {
    if (absl::StartsWith(path, manifest)) return field + path.substr(manifest.size());
  }
  return path;
}

// Rewrites "MANIFEST:LINE:COLUMN: path: what" with the fields of the line.
std::string InWordsOfLine(const std::string& place, const std::string& message, bool has_template) {
  const std::vector<std::string> parts = absl::StrSplit(message, absl::MaxSplits(": ", 2));
  if (parts.size() < 3) return absl::StrCat(place, ": ", message);
  return absl::StrCat(place, ": ", FieldOf(parts[1], has_template), ": ", parts[2]);
}

// The manifest of a replica, with the job's name.
Json ManifestOf(const Job& job, Line* line) {
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  if (line->Has("template")) {
    const Json& given = line->At("template");
    if (!given.is_object() || !given.contains("spec") || !given["spec"].is_object()) {
      line->Fail("template", "must be an object with a spec");
      return pod;
    }
    for (const char* field : {"cpu", "memory", "gpus", "nodeSelector"}) {
      if (line->Has(field)) line->Fail(field, "not allowed with template");
    }
    for (const auto& [key, value] : given.items()) {
      if (key != "metadata" && key != "spec")
        line->Fail(absl::StrCat("template.", key), "unknown field; template has metadata and spec");
    }
    pod["spec"] = given["spec"];
    if (pod["spec"].contains("nodeName"))
      line->Fail("template.spec.nodeName", "must not be set: pods of a job have no node");
    if (given.contains("metadata")) {
      if (!given["metadata"].is_object()) line->Fail("template.metadata", "must be an object");
      pod["metadata"] = given["metadata"];
    }
  } else {
    Json requests = Json::object(), limits = Json::object();
    line->Quantity("cpu", &requests);
    line->Quantity("memory", &requests);
    int64_t gpus = 0;
    line->Integer("gpus", 0, 1000000, &gpus);
    if (gpus > 0) limits[kGpuResource] = absl::StrCat(gpus);
    pod["spec"]["containers"] = Json::array(
        {{{"name", "main"},
          {"image", "job"},
          {"resources", {{"requests", std::move(requests)}, {"limits", std::move(limits)}}}}});
    line->StringMap("nodeSelector", &pod["spec"]["nodeSelector"]);
  }
  if (!line->status().ok()) return pod;
  Json& metadata = pod["metadata"];
  metadata["name"] = job.name;
  metadata["namespace"] = job.ns;
  for (const char* label : {"job-name", "batch.kubernetes.io/job-name"}) {
    if (!metadata.contains("labels") || !metadata["labels"].contains(label))
      metadata["labels"][label] = job.name;
  }
  if (job.gang && !(metadata.contains("annotations") &&
                    metadata["annotations"].contains("outboard/min-replicas"))) {
    metadata["annotations"]["outboard/min-replicas"] = absl::StrCat(job.replicas);
  }
  metadata["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                              {"kind", "Job"},
                                              {"name", job.name},
                                              {"uid", absl::StrCat("job-", job.key())},
                                              {"controller", true}}});
  line->StringMap("labels", &metadata["labels"]);
  if (line->Has("annotations")) line->StringMap("annotations", &metadata["annotations"]);
  if (line->Has("priority")) {
    int64_t priority = 0;
    line->Integer("priority", std::numeric_limits<int32_t>::min(), 1000000000, &priority);
    pod["spec"]["priority"] = priority;
  }
  std::string scheduler_name;
  line->String("schedulerName", &scheduler_name);
  if (!scheduler_name.empty()) pod["spec"]["schedulerName"] = scheduler_name;
  return pod;
}

// Fills in the job.
absl::Status FillJob(const std::string& place, const Json& fields,
                     const manifests::PriorityClasses& priority_classes, Job* job,
                     std::vector<std::string>* warnings) {
  Line line(place, fields);
  line.String("job", &job->name);
  line.String("namespace", &job->ns);
  line.String("class", &job->job_class);
  std::optional<absl::Duration> arrival;
  line.Seconds("arrival", /*may_be_zero=*/true, &arrival);
  job->arrival = arrival.value_or(absl::ZeroDuration());
  line.Seconds("run", /*may_be_zero=*/false, &job->run);
  line.Seconds("checkpointEvery", /*may_be_zero=*/true, &job->checkpoint_every);
  int64_t replicas = 1;
  line.Integer("replicas", 1, kMaxReplicas, &replicas);
  job->replicas = static_cast<int>(replicas);
  line.Bool("gang", &job->gang);
  if (!line.status().ok()) return line.status();
  const Json manifest = ManifestOf(*job, &line);
  if (!line.status().ok()) return line.status();
  manifests::Manifests read = manifests::ReadManifests("job", manifest.dump(), priority_classes);
  const bool has_template = line.Has("template");
  if (!read.errors.empty())
    return absl::InvalidArgumentError(InWordsOfLine(place, read.errors[0], has_template));
  for (const std::string& warning : read.warnings)
    warnings->push_back(InWordsOfLine(place, warning, has_template));
  job->pod = std::move(read.pods.at(0));
  return absl::OkStatus();
}

// Parses a line to an object. Rejects unknown and duplicate fields.
absl::StatusOr<Json> ParseLine(const std::string& place, absl::string_view text) {
  std::set<std::string> seen;
  std::string twice;
  const auto note_keys = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 &&
        !seen.insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  Json fields;
  try {  // The library reports positions only in exceptions.
    fields = Json::parse(text.begin(), text.end(), note_keys);
  } catch (const Json::parse_error& error) {
    const std::string what = error.what();
    return absl::InvalidArgumentError(
        absl::StrCat(place, ":", error.byte, ": invalid JSON: ", what.substr(what.find(": ") + 2),
                     "; a trace has one JSON object a line: outboard simulate --help trace"));
  } catch (const Json::exception& error) {  // A number is too large for the library.
    const std::string what = error.what();
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": invalid JSON: ", what.substr(what.find("] ") + 2)));
  }
  if (!fields.is_object())
    return absl::InvalidArgumentError(absl::StrCat(place, ": must be an object"));
  if (!twice.empty())
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", twice, ": duplicate field"));
  for (const auto& [key, value] : fields.items()) {
    bool known = false;
    for (const std::string& field : KnownFields()) known |= field == key;
    if (known) continue;
    const std::string nearest = config::Nearest(key, KnownFields());
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": ", key, ": unknown field",
                     nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
  }
  return fields;
}

absl::Status Fault(const std::string& place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

// Reads several files into one trace. Names must be unique over all files.
class TraceReader {
 public:
  explicit TraceReader(manifests::PriorityClasses priority_classes)
      : priority_classes_(std::move(priority_classes)) {}

  absl::Status Read(absl::string_view file_name, const std::string& text) {
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      line = absl::StripAsciiWhitespace(line);
      if (line.empty() || line[0] == '#') continue;
      const std::string place = absl::StrCat(file_name, ":", number);
      absl::StatusOr<Json> fields = ParseLine(place, line);
      if (!fields.ok()) return fields.status();
      absl::Status read =
          fields->contains("job") ? ReadJob(place, *fields) : ReadShape(place, *fields);
      if (!read.ok()) return read;
    }
    return absl::OkStatus();
  }
  Trace Take() { return std::move(trace_); }

 private:
  absl::Status ReadShape(const std::string& place, const Json& fields) {
    if (!fields.contains("shape")) return Fault(place, "job is required, or shape for a shape");
    if (!fields["shape"].is_string() || fields["shape"].get_ref<const std::string&>().empty())
      return Fault(place, "shape: must be a non-empty string");
    const std::string name = fields["shape"];
    for (const char* field : {"arrival", "namespace"}) {
      if (fields.contains(field))
        return Fault(place, absl::StrCat(field, ": not allowed in a shape"));
    }
    Job probe;  // Reports errors at the shape, not at its use.
    probe.ns = "default";
    Json complete = fields;
    complete["job"] = "shape";
    if (absl::Status filled = FillJob(place, complete, priority_classes_, &probe, &trace_.warnings);
        !filled.ok())
      return filled;
    if (!shapes_.emplace(name, fields).second)
      return Fault(place, absl::StrCat("shape: duplicate \"", name, "\""));
    return absl::OkStatus();
  }

  absl::Status ReadJob(const std::string& place, const Json& own) {
    Json fields = own;
    Job job;
    job.ns = "default";
    job.job_class = "default";
    if (own.contains("shape")) {
      const auto shape =
          own["shape"].is_string() ? shapes_.find(own["shape"].get<std::string>()) : shapes_.end();
      if (shape == shapes_.end()) {
        return Fault(place, absl::StrCat("shape: ", own["shape"].dump(), " is not defined before"));
      }
      fields = shape->second;
      fields.update(own);
      job.job_class = shape->first;
    }
    if (!fields.contains("arrival")) return Fault(place, "arrival: is required");
    if (absl::Status filled = FillJob(place, fields, priority_classes_, &job, &trace_.warnings);
        !filled.ok())
      return filled;
    if (LooksLikeReturn(job.name))
      return Fault(place, "job: must not end in .r and a number, like returned pods");
    for (int i = 0; i < job.replicas; ++i) {
      const std::string pod = PodName(job, i);
      if (!pods_.insert(absl::StrCat(job.ns, "/", pod)).second) {
        return Fault(place, absl::StrCat("job: duplicate pod \"", pod, "\" in namespace ", job.ns));
      }
    }
    trace_.jobs.push_back(std::move(job));
    return absl::OkStatus();
  }

  const manifests::PriorityClasses priority_classes_;
  Trace trace_;
  std::map<std::string, Json> shapes_;
  absl::flat_hash_set<std::string> pods_;  // namespace/name
};

bool IsGpu(absl::string_view resource) { return absl::EndsWith(resource, "/gpu"); }

}  // namespace

absl::StatusOr<Trace> ParseTrace(absl::string_view file_name, const std::string& text) {
  TraceReader reader{manifests::PriorityClasses()};
  if (absl::Status read = reader.Read(file_name, text); !read.ok()) return read;
  return reader.Take();
}

absl::StatusOr<Trace> ReadTraces(const std::vector<std::string>& files,
                                 const manifests::PriorityClasses& priority_classes) {
  TraceReader reader(priority_classes);
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> text = manifests::ReadText(file);
    if (!text.ok()) return text.status();
    if (absl::Status read = reader.Read(file, *text); !read.ok()) return read;
  }
  return reader.Take();
}

kube::PodPtr PodOf(const Job& job, int replica, int incarnation) {
  auto pod = std::make_shared<kube::PodObject>(*job.pod);
  std::string name = PodName(job, replica);
  if (incarnation > 0) absl::StrAppend(&name, ".r", incarnation);
  pod->pod.set_name(name);
  pod->pod.set_uid(absl::StrCat(job.key(), "/", replica, "/", incarnation));
  pod->resource_version = "1";
  return pod;
}

Amounts AmountsOf(const v1beta1::Pod& pod) {
  const cache::PodDemand demand = cache::DemandOf(pod);
  Amounts amounts;
  amounts.cpu_millis = demand.cpu_millis;
  for (const auto& [name, amount] : demand.extended) {
    if (IsGpu(name)) amounts.gpus += amount;
  }
  return amounts;
}

Amounts AmountsOf(const v1beta1::Node& node) {
  Amounts amounts;
  amounts.cpu_millis = node.allocatable().cpu_millis();
  for (const auto& [name, amount] : node.allocatable().scalar()) {
    if (IsGpu(name)) amounts.gpus += amount;
  }
  return amounts;
}

}  // namespace outboard::simulate::trace
