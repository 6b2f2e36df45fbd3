// Gangs of Kubernetes' Jobs, from the Job object: for pods without an annotation with a number.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_JOB_GANGS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_JOB_GANGS_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/pod_groups.h"

namespace outboard::sdk {

// As GenericObject.resource.
inline constexpr char kJobs[] = "jobs.v1.batch";

// Which Jobs are gangs without an annotation of their pods.
enum class JobGangs {
  kNever,
  kLabelled,  // whose pod, Job or namespace has kGangLabel: the first of these labels decides
  kAll,       // also without the label
};

struct JobGangRules {
  JobGangs which = JobGangs::kLabelled;
  std::set<std::string> namespaces;  // empty: all

  bool Covers(const std::string& ns) const {
    return which != JobGangs::kNever && (namespaces.empty() || namespaces.contains(ns));
  }
};

// Part of a JSON schema: the arguments that ReadJobGangRules reads.
inline constexpr char kJobGangsSchema[] =
    R"json("jobGangs": {"type": "string", "enum": ["never", "labelled", "all"], "default": "labelled",
      "description": "Which Jobs are gangs of their parallelism: those with the label outboard/gang on pod, Job or namespace, or all."},
    "jobGangNamespaces": {"type": "array", "items": {"type": "string"},
      "description": "The only namespaces in which jobGangs applies; empty: all."})json";
// Reports problems in `root`.
JobGangRules ReadJobGangRules(const ArgsObject& root);

struct JobObject {
  GroupKey key;
  std::optional<bool> wants_gang;  // its label kGangLabel
  // `min`: the pods that the Job controller keeps at a time, at least 1: parallelism, or the
  // completions that are left if these are fewer. Always with only_first_start.
  GroupSpec spec;
  std::vector<MalformedValue> malformed;
};

// `object` is of resource kJobs. A suspended Job has the size that it has when it is resumed: until
// then it has no pods, and these may be seen before the Job's update. Pure.
JobObject ReadJob(const v1beta1::GenericObject& object);

// For PluginDescriptor::declared_resources: read-only and optional.
v1beta1::DeclaredResource JobResource();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_JOB_GANGS_H_
