#include "plugin_host/sdk/pod_groups.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/validation.h"
#include "proto/workloads/pod_group_name.h"

namespace outboard::sdk {
namespace {

using workloads::GroupSource;
using workloads::kJobNameLabels;
using workloads::kJobSizeAnnotations;
using workloads::kKaiGroupAnnotation;
using workloads::kKoordinatorGroupAnnotation;
using workloads::kLegacyNameLabel;
using workloads::kLegacyPodGroupLabel;
using workloads::kPodGroupLabel;
using workloads::kVolcanoGroupAnnotations;

constexpr char kVolcanoTask[] = "volcano.sh/task-spec";
constexpr char kKaiSubGroup[] = "kai.scheduler/subgroup-name";
constexpr char kKoordinatorMin[] = "gang.scheduling.koordinator.sh/min-available";
constexpr char kKoordinatorTotal[] = "gang.scheduling.koordinator.sh/total-number";
constexpr char kKoordinatorWait[] = "gang.scheduling.koordinator.sh/waiting-time";
constexpr char kKoordinatorMode[] = "gang.scheduling.koordinator.sh/mode";
constexpr char kLegacyMin[] = "pod-group.scheduling.sigs.k8s.io/min-available";
// JobSet's controller sets them on Jobs and pods (kubernetes-sigs/jobset,
// api/jobset/v1alpha2/jobset_types.go); the second is the number of Jobs of the JobSet, which older
// releases do not tell.
constexpr char kJobSetName[] = "jobset.sigs.k8s.io/jobset-name";
constexpr char kJobSetJobs[] = "jobset.sigs.k8s.io/global-replicas";

std::string LabelAt(absl::string_view key) { return absl::StrCat("metadata.labels['", key, "']"); }
std::string AnnotationAt(absl::string_view key) {
  return absl::StrCat("metadata.annotations['", key, "']");
}

// Null if absent or empty.
const std::string* Named(const StringMap& map, absl::string_view key) {
  const std::string* text = FindValue(map, key);
  return text == nullptr || text->empty() ? nullptr : text;
}

GroupRef Ref(GroupDialect dialect, const v1beta1::Pod& pod, const std::string& name,
             std::string from) {
  GroupRef ref;
  ref.key = {dialect, pod.namespace_(), name, ""};
  ref.from = std::move(from);
  return ref;
}

constexpr char kReplicas[] = "number of replicas between 1 and 100000";

// The gang's number, for a group without an object.
void ReadMin(const std::string* text, std::string from, GroupRef* ref) {
  if (text == nullptr) return;
  const std::optional<int64_t> min = ParseCount(*text, kMaxGroupMembers);
  if (min && *min >= 1) {
    ref->own.min = {*min, std::move(from)};
    return;
  }
  ref->own.fault = absl::StrCat(Quote(*text), " is not a ", kReplicas);
  ref->malformed.push_back({std::move(from), *text, absl::StrCat("a ", kReplicas)});
}

GroupRef KoordinatorGroup(const v1beta1::Pod& pod, const std::string& name) {
  GroupRef ref =
      Ref(GroupDialect::kKoordinator, pod, name, AnnotationAt(kKoordinatorGroupAnnotation));
  const StringMap& annotations = pod.annotations();
  const std::string* min = FindValue(annotations, kKoordinatorMin);
  ReadMin(min, AnnotationAt(kKoordinatorMin), &ref);
  if (min == nullptr) ref.own.fault = absl::StrCat("annotation ", kKoordinatorMin, " is missing");
  if (const std::string* text = FindValue(annotations, kKoordinatorTotal)) {
    const std::optional<int64_t> total = ParseCount(*text, kMaxGroupMembers);
    if (total && *total >= 1) {
      ref.own.total = {*total, AnnotationAt(kKoordinatorTotal)};
    } else {
      ref.malformed.push_back(
          {AnnotationAt(kKoordinatorTotal), *text, absl::StrCat("a ", kReplicas)});
    }
  }
  if (const std::string* text = FindValue(annotations, kKoordinatorWait)) {
    absl::Duration wait;
    if (absl::ParseDuration(*text, &wait) && wait > absl::ZeroDuration() &&
        wait != absl::InfiniteDuration()) {
      ref.own.timeout = {wait, AnnotationAt(kKoordinatorWait)};
    } else {
      ref.malformed.push_back(
          {AnnotationAt(kKoordinatorWait), *text, "a positive duration such as 600s"});
    }
  }
  if (const std::string* text = FindValue(annotations, kKoordinatorMode)) {
    if (*text == "Strict" || *text == "NonStrict") {
      ref.own.keeps_places = {*text == "NonStrict", AnnotationAt(kKoordinatorMode)};
    } else {
      ref.malformed.push_back({AnnotationAt(kKoordinatorMode), *text, "Strict or NonStrict"});
    }
  }
  return ref;
}

GroupRef LegacyGroup(const v1beta1::Pod& pod, const std::string& name) {
  GroupRef ref = Ref(GroupDialect::kLegacy, pod, name, LabelAt(kLegacyNameLabel));
  const std::string* min = FindValue(pod.labels(), kLegacyMin);
  ReadMin(min, LabelAt(kLegacyMin), &ref);
  if (min == nullptr) ref.own.fault = absl::StrCat("label ", kLegacyMin, " is missing");
  return ref;
}

GroupRef JobGroup(const v1beta1::Pod& pod, const char* label, const std::string& job) {
  GroupRef ref = Ref(GroupDialect::kJobName, pod, job, LabelAt(label));
  ref.key.controller_uid = pod.controller().uid();
  for (const char* key : kJobSizeAnnotations) {
    const std::string* text = FindValue(pod.annotations(), key);
    if (text == nullptr) continue;
    ReadMin(text, AnnotationAt(key), &ref);
    break;
  }
  ref.job.owned = pod.controller().kind() == "Job";
  if (const std::string* text = FindValue(pod.labels(), kGangLabel)) {
    ref.job.wants_gang = ParseBool(*text);
    if (!ref.job.wants_gang) ref.malformed.push_back({LabelAt(kGangLabel), *text, "true or false"});
  }
  if (FindValue(pod.labels(), kJobSetName) != nullptr) {
    const std::string* jobs = FindValue(pod.labels(), kJobSetJobs);
    ref.job.of_several_jobs = jobs == nullptr || *jobs != "1";
  }
  return ref;
}

std::string SubGroupOf(const v1beta1::Pod& pod, const char* label) {
  const std::string* name = Named(pod.labels(), label);
  return name == nullptr ? "" : *name;
}

GroupRef VolcanoGroup(const v1beta1::Pod& pod, const char* key, const std::string& name) {
  GroupRef ref = Ref(GroupDialect::kVolcano, pod, name, AnnotationAt(key));
  // Volcano writes it as an annotation, and in later releases also as a label.
  ref.sub_group = SubGroupOf(pod, kVolcanoTask);
  if (ref.sub_group.empty()) {
    const std::string* task = Named(pod.annotations(), kVolcanoTask);
    if (task != nullptr) ref.sub_group = *task;
  }
  return ref;
}

}  // namespace

std::vector<const SubGroup*> PartsOf(const GroupSpec& spec) {
  std::vector<const SubGroup*> parts;
  for (const SubGroup& part : spec.sub_groups) {
    const bool is_parent =
        std::any_of(spec.sub_groups.begin(), spec.sub_groups.end(),
                    [&](const SubGroup& other) { return other.parent == part.name; });
    const bool is_known = std::any_of(parts.begin(), parts.end(), [&](const SubGroup* known) {
      return known->name == part.name;
    });
    if (part.min && part.min->value > 0 && !is_parent && !is_known) parts.push_back(&part);
  }
  return parts;
}

int64_t NumberOf(const GroupSpec& spec) {
  int64_t number = 0;
  for (const SubGroup* part : PartsOf(spec)) number += part->min->value;
  return std::max(number, spec.min ? spec.min->value : 0);
}

absl::string_view DialectName(GroupDialect dialect) {
  switch (dialect) {
    case GroupDialect::kKubernetes:
      return "kubernetes";
    case GroupDialect::kSchedulerPlugins:
      return "scheduler-plugins";
    case GroupDialect::kVolcano:
      return "volcano";
    case GroupDialect::kKai:
      return "kai";
    case GroupDialect::kKoordinator:
      return "koordinator";
    case GroupDialect::kLegacy:
      return "legacy";
    case GroupDialect::kJobName:
      return "job-name";
  }
  return "";
}

absl::string_view GroupResource(GroupDialect dialect) {
  switch (dialect) {
    case GroupDialect::kKubernetes:
      return "podgroups.v1alpha2.scheduling.k8s.io";
    case GroupDialect::kSchedulerPlugins:
      return "podgroups.v1alpha1.scheduling.x-k8s.io";
    case GroupDialect::kVolcano:
      return "podgroups.v1beta1.scheduling.volcano.sh";
    case GroupDialect::kKai:
      return "podgroups.v2alpha2.scheduling.run.ai";
    default:
      return "";
  }
}

std::optional<GroupDialect> DialectOfResource(absl::string_view resource) {
  if (resource.empty()) return std::nullopt;
  for (const GroupDialect dialect : kGroupDialects) {
    if (GroupResource(dialect) == resource) return dialect;
  }
  return std::nullopt;
}

std::string GroupKey::Text() const {
  return absl::StrCat(DialectName(dialect), " ", ns, "/", name,
                      controller_uid.empty() ? "" : " of ", controller_uid);
}

std::optional<GroupRef> GroupOf(const v1beta1::Pod& pod) {
  const std::optional<workloads::PodGroupName> named = workloads::PodGroupNameOf(pod);
  if (!named) return std::nullopt;
  const std::string name(named->name);
  switch (named->source) {
    case GroupSource::kSchedulingGroup:
      return Ref(GroupDialect::kKubernetes, pod, name, "spec.schedulingGroup.podGroupName");
    case GroupSource::kPodGroupLabel:
    case GroupSource::kLegacyPodGroup:
      return Ref(GroupDialect::kSchedulerPlugins, pod, name, LabelAt(named->key));
    case GroupSource::kVolcano:
      return VolcanoGroup(pod, named->key, name);
    case GroupSource::kKai: {
      GroupRef ref = Ref(GroupDialect::kKai, pod, name, AnnotationAt(named->key));
      ref.sub_group = SubGroupOf(pod, kKaiSubGroup);
      return ref;
    }
    case GroupSource::kKoordinator:
      return KoordinatorGroup(pod, name);
    case GroupSource::kLegacyName:
      return LegacyGroup(pod, name);
    case GroupSource::kJobName:
      return JobGroup(pod, named->key, name);
  }
  return std::nullopt;
}

std::vector<std::string> GroupAnnotationFields() {
  std::vector<std::string> fields;
  for (const char* key :
       {kJobSizeAnnotations[0], kJobSizeAnnotations[1], kVolcanoGroupAnnotations[0],
        kVolcanoGroupAnnotations[1], static_cast<const char*>(kVolcanoTask),
        static_cast<const char*>(kKaiGroupAnnotation),
        static_cast<const char*>(kKoordinatorGroupAnnotation),
        static_cast<const char*>(kKoordinatorMin), static_cast<const char*>(kKoordinatorTotal),
        static_cast<const char*>(kKoordinatorWait), static_cast<const char*>(kKoordinatorMode)}) {
    fields.push_back(AnnotationField(key));
  }
  return fields;
}

std::vector<std::string> GroupInterestFields() {
  return {LabelAt(kJobNameLabels[0]),
          LabelAt(kJobNameLabels[1]),
          "spec.schedulingGroup",
          LabelAt(kPodGroupLabel),
          AnnotationAt(kVolcanoGroupAnnotations[0]),
          AnnotationAt(kVolcanoGroupAnnotations[1]),
          AnnotationAt(kKaiGroupAnnotation),
          AnnotationAt(kKoordinatorGroupAnnotation),
          LabelAt(kLegacyPodGroupLabel),
          LabelAt(kLegacyNameLabel)};
}

std::vector<std::string> GroupSignatureParts() {
  return {"metadata.namespace",      "spec.schedulingGroup", LabelAt(kPodGroupLabel),
          LabelAt(kVolcanoTask),     LabelAt(kKaiSubGroup),  LabelAt(kLegacyPodGroupLabel),
          LabelAt(kLegacyNameLabel), LabelAt(kLegacyMin)};
}

}  // namespace outboard::sdk
