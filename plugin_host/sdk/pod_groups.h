// The group of a pod, in every way in which people and controllers write one down.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_POD_GROUPS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_POD_GROUPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::sdk {

// In the order in which a pod is asked for them; the first that it speaks decides.
enum class GroupDialect {
  kKubernetes,        // spec.schedulingGroup.podGroupName, PodGroup of scheduling.k8s.io
  kSchedulerPlugins,  // label, PodGroup of scheduling.x-k8s.io
  kVolcano,           // annotation, PodGroup of scheduling.volcano.sh
  kKai,               // annotation, PodGroup of scheduling.run.ai
  kKoordinator,       // annotations say it all
  kLegacy,            // labels of older scheduler-plugins say it all
  kJobName,           // the label that the Job controller sets, and an annotation with the number
};
inline constexpr GroupDialect kGroupDialects[] = {
    GroupDialect::kKubernetes, GroupDialect::kSchedulerPlugins, GroupDialect::kVolcano,
    GroupDialect::kKai,        GroupDialect::kKoordinator,      GroupDialect::kLegacy,
    GroupDialect::kJobName};
absl::string_view DialectName(GroupDialect dialect);
// The resource of the dialect's PodGroups, as in CustomObject.resource; empty: it has none.
absl::string_view GroupResource(GroupDialect dialect);
// None: no resource of PodGroups that is known here.
std::optional<GroupDialect> DialectOfResource(absl::string_view resource);

// No group has more members.
inline constexpr int64_t kMaxGroupMembers = 100000;

// Which group. Equal keys: the same group.
struct GroupKey {
  GroupDialect dialect = GroupDialect::kJobName;
  std::string ns;
  std::string name;
  // With kJobName: a controller of the same name that was made again has other pods.
  std::string controller_uid;

  std::string Text() const;  // for people and logs: `volcano default/train`
  friend bool operator==(const GroupKey&, const GroupKey&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const GroupKey& key) {
    return H::combine(std::move(hash), key.dialect, key.ns, key.name, key.controller_uid);
  }
};

// A value and where it stands: `spec.minMember`, `metadata.annotations['KEY']`.
template <typename T>
struct Sourced {
  T value{};
  std::string from;
};
template <typename T>
using MaybeSourced = std::optional<Sourced<T>>;

// Domains that are to have all of the members. Levels are as the dialect names them: keys of node
// labels (Kubernetes, KAI), names of tiers or their numbers (Volcano).
struct TopologyWish {
  MaybeSourced<std::string> topology;   // the object that lists the levels (KAI)
  MaybeSourced<std::string> required;   // the widest level that may be crossed by nobody
  MaybeSourced<std::string> preferred;  // as above, but better than nothing is enough
};

// A part of a group with a number of its own: KAI's subGroups, Volcano's minTaskMember.
struct SubGroup {
  std::string name;
  std::string parent;  // empty: the group itself
  MaybeSourced<int64_t> min;
  TopologyWish topology;
};

// What is said of a group, by whoever. What is not there, or cannot be read, is absent.
struct GroupSpec {
  // The pod names a PodGroup that does not exist (yet), or whose resource the shim does not list.
  // Nothing else is set.
  bool not_found = false;
  // Why nobody can say how many belong together, for people; empty: `min` is as it was meant. To
  // place members singly would be a guess.
  std::string fault;
  // So many are placed together or none is. Absent without a fault: its members go singly, or
  // whoever asks has a default.
  MaybeSourced<int64_t> min;
  MaybeSourced<int64_t> total;  // so many there will be
  MaybeSourced<absl::Duration> timeout;
  MaybeSourced<v1alpha1::ResourceList> min_resources;  // of the group as a whole
  TopologyWish topology;
  MaybeSourced<int32_t> priority;
  MaybeSourced<std::string> priority_class;
  std::vector<SubGroup> sub_groups;
  MaybeSourced<absl::Time> created;  // the object
  // Each member keeps its place while it waits, though others have none (Koordinator's NonStrict).
  MaybeSourced<bool> keeps_places;
  // Running members are only to be made to leave all together. Absent: the dialect cannot say.
  MaybeSourced<bool> disrupted_as_whole;
};

// The parts that have to have members of their own: those with a number above zero that are
// nobody's parent.
std::vector<const SubGroup*> PartsOf(const GroupSpec& spec);
// How many belong together, by what is said of the group and of its parts; 0: nobody says.
int64_t NumberOf(const GroupSpec& spec);

// A value that counts as absent.
struct MalformedValue {
  std::string from;
  std::string value;
  std::string wanted;
};

// What a pod says of its group.
struct GroupRef {
  GroupKey key;
  std::string from;       // where the name stands
  std::string sub_group;  // empty: none
  // Of a dialect without objects; otherwise nothing is set.
  GroupSpec own;
  std::vector<MalformedValue> malformed;  // of `own`
};

// None: the pod is of no group. Pure.
std::optional<GroupRef> GroupOf(const v1alpha1::Pod& pod);

// What GroupOf reads, in the contract's words: annotations for PluginDescriptor::needed_fields;
// fields for Interest.any_field_set (without any of them there is no group); what stands beside the
// annotations in PluginDescriptor::signature, except for kJobName, whose groups are told apart by
// their controllers.
std::vector<std::string> GroupAnnotationFields();
std::vector<std::string> GroupInterestFields();
std::vector<std::string> GroupSignatureParts();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POD_GROUPS_H_
