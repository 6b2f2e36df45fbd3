// The group of a pod, in all supported dialects.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_POD_GROUPS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_POD_GROUPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::sdk {

// In order of precedence: the first dialect that a pod uses decides.
enum class GroupDialect {
  kKubernetes,        // spec.schedulingGroup.podGroupName, PodGroup of scheduling.k8s.io
  kSchedulerPlugins,  // label, PodGroup of scheduling.x-k8s.io
  kVolcano,           // annotation, PodGroup of scheduling.volcano.sh
  kKai,               // annotation, PodGroup of scheduling.run.ai
  kKoordinator,       // annotations only
  kLegacy,            // labels of older scheduler-plugins
  kJobName,           // the label that the Job controller sets, and an annotation with the number
};
inline constexpr GroupDialect kGroupDialects[] = {
    GroupDialect::kKubernetes, GroupDialect::kSchedulerPlugins, GroupDialect::kVolcano,
    GroupDialect::kKai,        GroupDialect::kKoordinator,      GroupDialect::kLegacy,
    GroupDialect::kJobName};
absl::string_view DialectName(GroupDialect dialect);
// The resource of the dialect's PodGroups, as in GenericObject.resource; empty: none.
absl::string_view GroupResource(GroupDialect dialect);
// None: not a known PodGroup resource.
std::optional<GroupDialect> DialectOfResource(absl::string_view resource);

// Limit of a group's members.
inline constexpr int64_t kMaxGroupMembers = 100000;

// Identifies a group.
struct GroupKey {
  GroupDialect dialect = GroupDialect::kJobName;
  std::string ns;
  std::string name;
  // With kJobName: a recreated controller of the same name has other pods.
  std::string controller_uid;

  std::string Text() const;  // for people and logs: `volcano default/train`
  friend bool operator==(const GroupKey&, const GroupKey&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const GroupKey& key) {
    return H::combine(std::move(hash), key.dialect, key.ns, key.name, key.controller_uid);
  }
};

// A value and its source: `spec.minMember`, `metadata.annotations['KEY']`.
template <typename T>
struct Sourced {
  T value{};
  std::string from;
};
template <typename T>
using MaybeSourced = std::optional<Sourced<T>>;

// Domains that must contain all members. Levels as the dialect names them: keys of node labels
// (Kubernetes, KAI), names of tiers or their numbers (Volcano).
struct TopologyPreference {
  MaybeSourced<std::string> topology;   // the object that lists the levels (KAI)
  MaybeSourced<std::string> required;   // the level within which all members must be
  MaybeSourced<std::string> preferred;  // as above, but best effort
};

// A part of a group with its own number: KAI's subGroups, Volcano's minTaskMember.
struct SubGroup {
  std::string name;
  std::string parent;  // empty: the group itself
  MaybeSourced<int64_t> min;
  TopologyPreference topology;
};

// The spec of a group, from any source. Missing or malformed values are absent.
struct GroupSpec {
  // The pod names a PodGroup that does not exist (yet), or whose resource the shim does not watch.
  // Nothing else is set.
  bool not_found = false;
  // Why the group's number is unknown, for people; empty: `min` is valid. With a fault, members
  // must not be placed individually.
  std::string fault;
  // Place at least this many together, or none. Absent without a fault: members are scheduled
  // individually, or the caller has a default.
  MaybeSourced<int64_t> min;
  MaybeSourced<int64_t> total;  // expected number of members
  MaybeSourced<absl::Duration> timeout;
  MaybeSourced<v1beta1::ResourceList> min_resources;  // of the group as a whole
  TopologyPreference topology;
  MaybeSourced<int32_t> priority;
  MaybeSourced<std::string> priority_class;
  std::vector<SubGroup> sub_groups;
  MaybeSourced<absl::Time> created;  // the object
  // Each member keeps its place while it waits for others without one (Koordinator's NonStrict).
  MaybeSourced<bool> keeps_places;
  // Running members are preempted only all together. Absent: the dialect does not support it.
  MaybeSourced<bool> disrupted_as_whole;
  // The number is for the first start: while a member is bound, others are placed singly
  // (job_gangs.h).
  bool only_first_start = false;
};

// The parts with their own minimum: parts with a number above zero that are not a parent.
std::vector<const SubGroup*> PartsOf(const GroupSpec& spec);
// The group's number, from the group and its parts; 0: unspecified.
int64_t NumberOf(const GroupSpec& spec);

// A value that counts as absent.
struct MalformedValue {
  std::string from;
  std::string value;
  std::string wanted;
};

// What a pod of a Job tells about its gang, beside the number (job_gangs.h).
struct JobPod {
  bool owned = false;              // Its controller is a Job.
  std::optional<bool> wants_gang;  // label kGangLabel
  // It belongs to a JobSet of several Jobs, or of an unknown number.
  bool of_several_jobs = false;
};
// Label of pods, Jobs and namespaces: whether the pods of a Job are a gang; true or false.
inline constexpr char kGangLabel[] = "outboard/gang";

// A pod's reference to its group.
struct GroupRef {
  GroupKey key;
  std::string from;       // the source of the name
  std::string sub_group;  // empty: none
  JobPod job;             // only with kJobName
  // Only for a dialect without objects.
  GroupSpec own;
  std::vector<MalformedValue> malformed;  // of `own`
};

// None: the pod is not in a group. Pure.
std::optional<GroupRef> GroupOf(const v1beta1::Pod& pod);

// What GroupOf reads, for descriptors: annotations for PluginDescriptor::needed_fields; fields for
// Interest.any_field_set (without any of them there is no group); parts for
// PluginDescriptor::signature in addition to the annotations, except for kJobName, whose groups
// differ by controller.
std::vector<std::string> GroupAnnotationFields();
std::vector<std::string> GroupInterestFields();
std::vector<std::string> GroupSignatureParts();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POD_GROUPS_H_
