#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/job_gangs.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/pod_group_index.h"
#include "plugin_host/sdk/pod_group_objects.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/atomic_replica_coordinator/group_status.h"
#include "plugins/atomic_replica_coordinator/min_resources.h"
#include "plugins/atomic_replica_coordinator/preferred_levels.h"
#include "plugins/atomic_replica_coordinator/topology_tiers.h"

namespace outboard::atomic_replica_coordinator {
namespace {

constexpr char kName[] = "AtomicReplicaCoordinator";
constexpr int64_t kMaxTimeoutSeconds = 900;

std::string ArgsSchema() {
  return absl::StrCat(R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 900, "default": 30,
      "description": "How long a member of a job waits for the others."},
    "podGroupTimeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 900, "default": 60,
      "description": "How long a member of any other group waits, unless its PodGroup says."},
    "defaultMinReplicas": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 1,
      "description": "Size of jobs whose pods declare none; 1: they are placed singly."},
    )json",
                      sdk::kJobGangsSchema, R"json(,
    "topologyTiers": )json",
                      kTopologyTiersSchema, ",\n    ", kPreferredLevelsSchema, "}}");
}

struct Args {
  absl::Duration job_timeout;
  absl::Duration group_timeout;
  int64_t default_size = 1;
  sdk::JobGangRules jobs;
  TopologyTiers tiers;
  PreferredLevels near;
};

using sdk::GroupRef;
using sdk::GroupSpec;

bool IsJob(const GroupRef& ref) { return ref.key.dialect == sdk::GroupDialect::kJobName; }

// The profile's points decide what the plugin can do; see README.md. Each point is only called
// where the profile enables it:
//   - permit is required: without it a part of a gang would be bound.
//   - With preFilter, the host places the missing members in one pass (Group). Otherwise they are
//     placed one by one and meet at Permit.
//   - With preEnqueue or preFilter, members of an incomplete group wait without a place.
//   - With reserve, Unreserve reports a place that is released; otherwise the cache does.
class AtomicReplicaCoordinator : public sdk::Plugin,
                                 public sdk::PreEnqueuePlugin,
                                 public sdk::PreFilterPlugin,
                                 public sdk::ReservePlugin,
                                 public sdk::PermitPlugin,
                                 public sdk::GroupPlugin,
                                 public sdk::QueueingHintPlugin,
                                 public sdk::ClusterObserver {
 public:
  AtomicReplicaCoordinator(Args args, const sdk::PluginContext& context)
      : args_(std::move(args)),
        profile_(context.profile),
        gates_(context.points.contains(v1beta1::EXTENSION_POINT_PRE_ENQUEUE)),
        reserves_(context.points.contains(v1beta1::EXTENSION_POINT_RESERVE)),
        cluster_(context.cluster),
        pushes_(context.pushes),
        groups_(kName, args_.jobs, context.cluster),
        status_(context.profile, &groups_, context.cluster, context.pushes) {}

  // Members of a group with too few members wait before the queue: in it they would hold places
  // without ever starting. An unreadable size is reported by the attempt.
  sdk::Verdict PreEnqueue(const sdk::PodView& pod, const sdk::ClusterView&,
                          absl::Time) const override {
    const std::optional<GroupRef> ref = sdk::GroupOf(pod.proto());
    if (!ref) return sdk::Verdict::Success();
    const GroupSpec& spec = groups_.SpecFor(*ref);
    if (spec.not_found && IsJob(*ref)) return JobNotFound(*ref);
    if (!spec.fault.empty() || MissingOf(*ref, spec).empty()) return sdk::Verdict::Success();
    // Without a count: the reason stays while more members come.
    return sdk::Verdict::Unresolvable(
        absl::StrCat(GangName(*ref), ": fewer than ", NumberOf(*ref, spec), " members exist"));
  }

  // The same for profiles without PreEnqueue, and if a member was deleted meanwhile.
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    const std::optional<GroupRef> ref = sdk::GroupOf(attempt.pod().proto());
    if (!ref) return sdk::Verdict::Skip();
    const GroupSpec& spec = groups_.SpecFor(*ref);
    if (spec.not_found && IsJob(*ref)) return JobNotFound(*ref);
    if (!spec.fault.empty()) return Faulty(*ref, spec.fault);
    const auto levels = args_.tiers.LevelsOf(ref->key.dialect, spec.topology);
    if (!levels.ok()) return Faulty(*ref, levels.status().message());
    sdk::Verdict incomplete = Incomplete(*ref, spec);
    return incomplete.ok() ? sdk::Verdict::Skip() : incomplete;
  }

  // Missing members are placed together. A member that comes after the group is complete is placed
  // singly, unless it must run in the same topology domain as the others.
  std::optional<sdk::GroupToPlace> Group(const sdk::Attempt& attempt) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    const std::optional<GroupRef> ref = sdk::GroupOf(pod);
    if (!ref) return std::nullopt;
    const GroupSpec& spec = groups_.SpecFor(*ref);
    if (spec.not_found || !spec.fault.empty() || KeepsPlaces(spec)) return std::nullopt;
    sdk::GroupToPlace together;
    auto levels = args_.tiers.LevelsOf(ref->key.dialect, spec.topology);
    if (!levels.ok()) return std::nullopt;
    together.topology = *std::move(levels);
    const int64_t size = SizeOf(*ref, spec);
    if (size <= 1 && together.topology.required.empty() && together.topology.preferred.empty())
      return std::nullopt;
    together.name = GangName(*ref);
    const std::vector<const sdk::PodRecord*> others = PlacedOthers(ref->key, pod.uid());
    for (const sdk::PodRecord* other : others) {
      if (other->slot != sdk::kNoSlot) together.placed.push_back(other->slot);
      together.some_wait |= other->place == sdk::Place::kWaiting;
    }
    int64_t missing = size - static_cast<int64_t>(others.size());
    AddParts(*ref, spec, others, &together);
    int64_t missing_of_parts = 0;
    for (const auto& part : together.parts) missing_of_parts += part.needed;
    missing = std::max(missing, missing_of_parts);
    if (missing <= 1 && missing_of_parts == 0) {
      if (together.topology.required.empty() && together.topology.preferred.empty())
        return std::nullopt;
      together.pending = {&attempt.pod().record()};
      return together;
    }
    together.needed = missing;
    together.pending = PendingMembers(ref->key);
    // Too few members of this profile can be placed now: they meet at Permit.
    if (static_cast<int64_t>(together.pending.size()) < missing) return std::nullopt;
    if (!absl::c_linear_search(together.pending, &attempt.pod().record())) return std::nullopt;
    for (auto& part : together.parts) {
      for (const sdk::PodRecord* pod : together.pending) {
        if (PartOf(*pod) == part.name) part.pending.push_back(pod);
      }
      if (static_cast<int64_t>(part.pending.size()) < part.needed) return std::nullopt;
    }
    if (spec.min_resources && ref->key.dialect == sdk::GroupDialect::kSchedulerPlugins)
      together.short_of = ShortOf(spec.min_resources->value, size, cluster_.nodes(), others);
    args_.near.AddTo(&together);
    return together;
  }

  void GroupRejected(const sdk::Attempt& attempt, absl::string_view why, bool is_error) override {
    if (const std::optional<GroupRef> ref = sdk::GroupOf(attempt.pod().proto()))
      status_.Say(ref->key, why, is_error);
  }

  sdk::Verdict Permit(const sdk::Attempt& attempt, const sdk::NodeView& node,
                      sdk::PermitAnswer* answer) override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    const std::optional<GroupRef> ref = sdk::GroupOf(pod);
    if (!ref) return sdk::Verdict::Success();
    const GroupSpec& spec = groups_.SpecFor(*ref);
    if (spec.not_found && IsJob(*ref)) return JobNotFound(*ref);
    if (spec.not_found) return sdk::Verdict::Unschedulable("PodGroup not found");
    if (!spec.fault.empty()) return Faulty(*ref, spec.fault);
    const int64_t size = SizeOf(*ref, spec);
    // A pod that needs no other one, such as each of a Job's thousands, does not look at them.
    const sdk::Group* const group = groups_.Find(ref->key);
    const bool one_waits = group != nullptr && group->count(sdk::MemberState::kWaiting) > 0;
    if (size <= 1 && !one_waits && sdk::PartsOf(spec).empty()) return sdk::Verdict::Success();
    const std::vector<const sdk::PodRecord*> others = PlacedOthers(ref->key, pod.uid());
    const int64_t placed = static_cast<int64_t>(others.size()) + 1;
    std::vector<const sdk::PodRecord*> all = others;
    all.push_back(&attempt.pod().record());
    sdk::GroupToPlace rest;
    AddParts(*ref, spec, all, &rest);
    if (placed < size || !rest.parts.empty()) {
      answer->timeout = TimeoutOf(*ref, spec);
      answer->wait_reason =
          placed < size
              ? absl::StrCat(GangName(*ref), ": ", placed, " of ", size, " members placed")
              : absl::StrCat(GangName(*ref), ": ", rest.parts[0].needed, " of ", rest.parts[0].name,
                             " are not placed");
      // The first waiting member activates the others, whose attempts may have failed before.
      if (std::none_of(others.begin(), others.end(),
                       [](const auto* other) { return WaitsForUs(*other); })) {
        CallMembers(ref->key, size);
      }
      return sdk::Verdict(sdk::kWait, answer->wait_reason);
    }
    for (const sdk::PodRecord* other : others) {
      if (!WaitsForUs(*other)) continue;
      answer->decisions.push_back({other->waiting_attempt, other->pod.uid(), /*allow=*/true, ""});
    }
    return sdk::Verdict::Success();
  }

  sdk::Verdict Reserve(const sdk::Attempt& attempt, const sdk::NodeView& node,
                       sdk::ReserveAnswer* answer) override {
    return sdk::Verdict::Success();
  }

  // One member lost its place, for any reason: the members that wait for it release theirs now, not
  // at their timeouts.
  void Unreserve(const sdk::Attempt& attempt, absl::string_view node_name,
                 std::vector<sdk::WaitDecision>* decisions) override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    const std::optional<GroupRef> ref = sdk::GroupOf(pod);
    if (!ref) return;
    *decisions = RejectOthers(*ref, pod, absl::StrCat(" on ", node_name),
                              /*is_consequence=*/rejected_.contains(pod.uid()));
    if (KeepsPlaces(groups_.SpecFor(*ref))) return;
    if (attempt.pod().record().place == sdk::Place::kWaiting) {
      rejected_[pod.uid()] = attempt.pod().record().waiting_attempt;
    }
  }

  // A pod that was rejected here lacks members, not room. It is retried when another member gets a
  // place, or when its own group or size changes. New members activate it themselves (Permit).
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_pod->uid() == pod.uid()) return sdk::Hint::kQueue;
    if (change.action != v1beta1::ClusterEvent::ACTION_ADD) return sdk::Hint::kSkip;
    const std::optional<GroupRef> ref = sdk::GroupOf(pod.proto());
    const std::optional<GroupRef> of_other = sdk::GroupOf(*change.new_pod);
    return ref && of_other && ref->key == of_other->key ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override {
    groups_.Clear();
    rejected_.clear();
    holding_.clear();
    called_.clear();
    namespaces_.clear();
    status_.Clear();
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    auto it = rejected_.find(pod.pod.uid());
    const bool was_rejected = it != rejected_.end();
    if (was_rejected && it->second != pod.waiting_attempt) rejected_.erase(it);
    const sdk::PodGroupIndex::Change change = groups_.SetPod(pod);
    NotePlace(pod, was_rejected);
    if (change.group != nullptr && change.group->object) status_.Touch(change.group->key);
    if (change.group == nullptr) return;
    const bool is_first = pod.place == sdk::Place::kBound &&
                          change.group->count(sdk::MemberState::kBound) == 1 &&
                          change.group->count(sdk::MemberState::kPending) > 0;
    // No event reports pods that arrive without a place, or gates that other members lose.
    const bool has_grown = change.group->existing() > change.existed;
    if (!is_first && !has_grown) return;
    const std::optional<GroupRef> ref = sdk::GroupOf(pod.pod);
    const GroupSpec& spec = groups_.SpecFor(*ref);
    // The others no longer wait for the number.
    if (is_first && spec.only_first_start) CallIfComplete(ref->key, 1);
    if (!has_grown) return;
    const int64_t number = NumberOf(*ref, spec);
    if (number > 0 && (change.existed < number || !sdk::PartsOf(spec).empty()))
      CallIfComplete(ref->key, number);
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    const bool was_rejected = rejected_.erase(pod.pod.uid()) > 0;
    groups_.RemovePod(pod);
    if (holding_.erase(pod.pod.uid()) > 0) PlaceReleased(pod, was_rejected);
    if (const std::optional<GroupRef> ref = sdk::GroupOf(pod.pod)) status_.Touch(ref->key);
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    const sdk::PodGroupIndex::Change change = groups_.SetObject(object);
    if (change.group != nullptr) status_.ObjectChanged(change.group->key);
    if (change.job_decided) CallIfComplete(change.group->key, 1);
    if (!change.size_changed || !change.group->object->fault.empty()) return;
    CallIfComplete(change.group->key, std::max<int64_t>(1, sdk::NumberOf(*change.group->object)));
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    groups_.RemoveObject(object);
  }
  // Its label says whether its Jobs are gangs.
  void OnNamespaceChanged(const std::string& name) override {
    std::optional<bool> wants;
    if (const auto* labels = cluster_.NamespaceLabels(name)) {
      const auto label = labels->find(sdk::kGangLabel);
      if (label != labels->end()) wants = sdk::ParseBool(label->second);
    }
    const auto known = namespaces_.find(name);
    if (wants == (known == namespaces_.end() ? std::nullopt : known->second)) return;
    namespaces_[name] = wants;
    groups_.ForEach([&](const sdk::Group& group) {
      if (group.key.dialect == sdk::GroupDialect::kJobName && group.key.ns == name)
        CallIfComplete(group.key, 1);
    });
  }
  // Activates pods again whose rejection had not reached the shim at the first activation.
  void OnTick(absl::Time now) override {
    for (const sdk::GroupKey& key : std::exchange(called_, {})) {
      if (const sdk::Group* group = groups_.Find(key)) ActivatePending(*group);
    }
    status_.Tick(now);
  }

 private:
  static std::string GangName(const GroupRef& ref) {
    return absl::StrCat("gang ", sdk::Quote(ref.key.name));
  }
  // Treating it as a single pod would place a part of a gang.
  static sdk::Verdict Faulty(const GroupRef& ref, absl::string_view fault) {
    return sdk::Verdict::Unresolvable(absl::StrCat(GangName(ref), ": ", fault));
  }
  // Its pods may be seen before the Job.
  static sdk::Verdict JobNotFound(const GroupRef& ref) {
    return Faulty(ref, "Job not found: it is new, or customResources does not name jobs.v1.batch");
  }
  static bool KeepsPlaces(const GroupSpec& spec) {
    return spec.keeps_places && spec.keeps_places->value;
  }
  // As sdk::NumberOf, with the args' size of jobs; 0: not a gang.
  int64_t NumberOf(const GroupRef& ref, const GroupSpec& spec) const {
    if (!IsJob(ref)) return sdk::NumberOf(spec);
    const int64_t size = SizeOf(ref, spec);
    return size > 1 ? size : 0;
  }
  int64_t SizeOf(const GroupRef& ref, const GroupSpec& spec) const {
    if (groups_.HasStarted(ref, spec)) return 1;
    if (const int64_t number = sdk::NumberOf(spec); number > 0) return number;
    return IsJob(ref) ? args_.default_size : 1;
  }
  static std::string PartOf(const sdk::PodRecord& pod) {
    const std::optional<GroupRef> ref = sdk::GroupOf(pod.pod);
    return ref ? ref->sub_group : "";
  }
  // Adds the parts that need more members than have a place.
  static void AddParts(const GroupRef& ref, const GroupSpec& spec,
                       const std::vector<const sdk::PodRecord*>& placed,
                       sdk::GroupToPlace* together) {
    for (const sdk::SubGroup* part : sdk::PartsOf(spec)) {
      const int64_t needed =
          part->min->value - std::count_if(placed.begin(), placed.end(), [&](const auto* pod) {
            return PartOf(*pod) == part->name;
          });
      if (needed > 0) together->parts.push_back({part->name, needed, {}});
    }
  }
  // A rejection if too few members exist.
  sdk::Verdict Incomplete(const GroupRef& ref, const GroupSpec& spec) const {
    const std::string missing = MissingOf(ref, spec);
    if (missing.empty()) return sdk::Verdict::Success();
    return sdk::Verdict::Unresolvable(absl::StrCat(GangName(ref), ": ", missing));
  }
  // Names the part with too few members; empty: none.
  std::string MissingOf(const GroupRef& ref, const GroupSpec& spec) const {
    const int64_t number = NumberOf(ref, spec);
    const sdk::Group* group = groups_.Find(ref.key);
    const int64_t existing = group == nullptr ? 1 : group->existing();
    if (existing < number) return absl::StrCat(existing, " of ", number, " members exist");
    if (group == nullptr) return "";
    for (const sdk::SubGroup* part : sdk::PartsOf(spec)) {
      const int64_t of_part =
          std::count_if(group->members.begin(), group->members.end(), [&](const auto& member) {
            return member.second.sub_group == part->name &&
                   member.second.state != sdk::MemberState::kGated &&
                   member.second.state != sdk::MemberState::kTerminating;
          });
      if (of_part < part->min->value) {
        return absl::StrCat(of_part, " of ", part->min->value, " members of ", part->name,
                            " exist");
      }
    }
    return "";
  }
  absl::Duration TimeoutOf(const GroupRef& ref, const GroupSpec& spec) const {
    if (spec.timeout) return std::min(spec.timeout->value, absl::Seconds(kMaxTimeoutSeconds));
    return IsJob(ref) ? args_.job_timeout : args_.group_timeout;
  }

  // Activates the members without a place, if enough members exist to place the group.
  void CallMembers(const sdk::GroupKey& key, int64_t size) const {
    const sdk::Group* group = groups_.Find(key);
    if (group == nullptr || group->existing() + Gated(*group) < size) return;
    ActivatePending(*group);
  }
  // Counts gated members, for groups other than jobs: jobs do not use gates.
  static int64_t Gated(const sdk::Group& group) {
    return group.key.dialect == sdk::GroupDialect::kJobName ? group.count(sdk::MemberState::kGated)
                                                            : 0;
  }
  void CallIfComplete(const sdk::GroupKey& key, int64_t size) {
    const sdk::Group* group = groups_.Find(key);
    if (group == nullptr || group->existing() < size) return;
    ActivatePending(*group);
    called_.insert(key);
  }
  void ActivatePending(const sdk::Group& group) const {
    std::vector<std::string> pending;
    for (const auto& [uid, member] : group.members) {
      const sdk::PodRecord* record = cluster_.FindPod(uid);
      if (record == nullptr || member.state == sdk::MemberState::kTerminating) continue;
      if (!record->on_node() || rejected_.contains(uid)) pending.push_back(uid);
    }
    if (pending.empty()) return;
    std::sort(pending.begin(), pending.end());
    if (gates_) pushes_->GateChanged(pending);
    pushes_->Activate(pending);
  }

  // A member released its place: rejects the waiting members. `is_consequence`: it was rejected
  // itself, and has nothing new to report.
  std::vector<sdk::WaitDecision> RejectOthers(const GroupRef& ref, const v1beta1::Pod& pod,
                                              absl::string_view where, bool is_consequence) {
    std::vector<sdk::WaitDecision> decisions;
    const std::vector<const sdk::PodRecord*> others = PlacedOthers(ref.key, pod.uid());
    const std::string what = absl::StrCat("pod ", pod.name(), " released its place", where, "; ",
                                          others.size(), " others were placed");
    if (!is_consequence) status_.Say(ref.key, what, /*is_error=*/false);
    if (KeepsPlaces(groups_.SpecFor(ref))) return decisions;
    const std::string message = absl::StrCat(GangName(ref), ": ", what);
    for (const sdk::PodRecord* other : others) {
      if (!WaitsForUs(*other)) continue;
      decisions.push_back({other->waiting_attempt, other->pod.uid(), /*allow=*/false, message});
      rejected_[other->pod.uid()] = other->waiting_attempt;
    }
    return decisions;
  }
  // Without Reserve the shim does not report released places; the cache shows them.
  void NotePlace(const sdk::PodRecord& pod, bool was_rejected) {
    if (reserves_ || pod.pod.scheduler_name() != profile_ || !sdk::GroupOf(pod.pod)) return;
    if (pod.place == sdk::Place::kWaiting || pod.place == sdk::Place::kAssumed) {
      holding_.insert(pod.pod.uid());
    } else if (holding_.erase(pod.pod.uid()) > 0 && pod.place != sdk::Place::kBound) {
      PlaceReleased(pod, was_rejected);
    }
  }
  void PlaceReleased(const sdk::PodRecord& pod, bool was_rejected) {
    const std::optional<GroupRef> ref = sdk::GroupOf(pod.pod);
    if (!ref) return;
    for (const sdk::WaitDecision& decision : RejectOthers(*ref, pod.pod, "", was_rejected))
      pushes_->Decide(decision);
  }

  // Members with a place that they will keep, ordered by uid. Reads only the cluster cache, so a
  // restarted host has the same result.
  std::vector<const sdk::PodRecord*> PlacedOthers(const sdk::GroupKey& key,
                                                  const std::string& uid) const {
    std::vector<const sdk::PodRecord*> placed;
    const sdk::Group* group = groups_.Find(key);
    if (group == nullptr) return placed;
    for (const auto& [member, what] : group->members) {
      if (member == uid || what.state == sdk::MemberState::kTerminating) continue;
      const sdk::PodRecord* record = cluster_.FindPod(member);
      if (record == nullptr || !record->on_node() || rejected_.contains(member)) continue;
      placed.push_back(record);
    }
    std::sort(placed.begin(), placed.end(),
              [](const auto* a, const auto* b) { return a->pod.uid() < b->pod.uid(); });
    return placed;
  }

  // Members without a node that this profile could place, ordered by name.
  std::vector<const sdk::PodRecord*> PendingMembers(const sdk::GroupKey& key) const {
    std::vector<const sdk::PodRecord*> pending;
    const sdk::Group* group = groups_.Find(key);
    if (group == nullptr) return pending;
    for (const auto& [uid, member] : group->members) {
      if (member.state != sdk::MemberState::kPending) continue;
      const sdk::PodRecord* record = cluster_.FindPod(uid);
      if (record != nullptr && record->pod.scheduler_name() == profile_) pending.push_back(record);
    }
    std::sort(pending.begin(), pending.end(), [](const auto* a, const auto* b) {
      return std::tie(a->pod.name(), a->pod.uid()) < std::tie(b->pod.name(), b->pod.uid());
    });
    return pending;
  }

  static bool WaitsForUs(const sdk::PodRecord& record) {
    return record.place == sdk::Place::kWaiting &&
           std::any_of(record.waits.begin(), record.waits.end(),
                       [](const sdk::PodWait& wait) { return wait.plugin == kName; });
  }

  const Args args_;
  const std::string profile_;
  const bool gates_;     // enabled at PreEnqueue
  const bool reserves_;  // enabled at Reserve
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  sdk::PodGroupIndex groups_;
  GroupStatusKeeper status_;
  absl::flat_hash_map<std::string, std::optional<bool>> namespaces_;  // their label kGangLabel
  // Groups that became complete after the last tick.
  absl::flat_hash_set<sdk::GroupKey> called_;
  // Rejected attempts whose places are still in the cluster cache. It only avoids duplicates: every
  // rejection makes the shim call Unreserve again.
  absl::flat_hash_map<std::string, uint64_t> rejected_;
  // Without Reserve: members that have a place and are not bound.
  absl::flat_hash_set<std::string> holding_;
};

Args ReadArgs(const sdk::ArgsObject& root) {
  const auto seconds = [&](const char* field, int64_t otherwise) {
    const int64_t value = root.Int(field, otherwise);
    if (value < 1 || value > kMaxTimeoutSeconds)
      root.Problem(field, sdk::InvalidValue(value, "not in valid range [1, 900]"));
    return absl::Seconds(value);
  };
  Args args{seconds("timeoutSeconds", 30),
            seconds("podGroupTimeoutSeconds", 60),
            root.Int("defaultMinReplicas", 1),
            sdk::ReadJobGangRules(root),
            TopologyTiers(root),
            PreferredLevels(root)};
  if (args.default_size < 1 || args.default_size > sdk::kMaxGroupMembers) {
    root.Problem("defaultMinReplicas",
                 sdk::InvalidValue(args.default_size, "not in valid range [1, 100000]"));
  }
  return args;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_ENQUEUE, v1beta1::EXTENSION_POINT_PRE_FILTER,
                        v1beta1::EXTENSION_POINT_RESERVE, v1beta1::EXTENSION_POINT_PERMIT};
  d.args_schema = ArgsSchema();
  d.wake_up_events = {sdk::WakeOn(
      "Pod", {Event::ACTION_ADD, Event::ACTION_UPDATE_POD_LABEL, Event::ACTION_UPDATE_OTHER})};
  d.needed_fields = sdk::GroupAnnotationFields();
  for (const sdk::ExtensionPoint point :
       {v1beta1::EXTENSION_POINT_PRE_ENQUEUE, v1beta1::EXTENSION_POINT_RESERVE,
        v1beta1::EXTENSION_POINT_PERMIT}) {
    v1beta1::Interest& interest = d.interests.emplace_back(sdk::InterestIn(point, {}));
    for (const std::string& field : sdk::GroupInterestFields()) interest.add_any_field_set(field);
  }
  d.signature = sdk::SignedParts(d.needed_fields, {});
  for (std::string& part : sdk::GroupSignatureParts()) d.signature->push_back(std::move(part));
  d.declared_resources = sdk::PodGroupResources();
  d.declared_resources.push_back(sdk::JobResource());
  for (v1beta1::DeclaredResource& resource : d.declared_resources) {
    if (KeepsStatusOf(resource.resource()))
      resource.add_verbs(v1beta1::DeclaredResource::VERB_UPDATE_STATUS);
  }
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    if (!context.points.contains(v1beta1::EXTENSION_POINT_PERMIT)) {
      return absl::InvalidArgumentError(
          "must be enabled at permit, where members wait for each other: without it a part of a "
          "gang would be bound");
    }
    return std::make_unique<AtomicReplicaCoordinator>(ReadArgs(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::atomic_replica_coordinator
