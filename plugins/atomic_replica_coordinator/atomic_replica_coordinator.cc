#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::atomic_replica_coordinator {
namespace {

constexpr char kName[] = "AtomicReplicaCoordinator";
// Older and newer Job controllers; they set both to the same name.
constexpr const char* kJobLabels[] = {"job-name", "batch.kubernetes.io/job-name"};
constexpr const char* kSizeAnnotations[] = {"outboard/min-replicas", "min-replicas"};
constexpr int64_t kMaxReplicas = 100000;
constexpr int64_t kMaxTimeoutSeconds = 900;

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 900, "default": 30,
      "description": "How long a member waits for the others."},
    "defaultMinReplicas": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 1,
      "description": "Size of gangs whose pods say none; 1: they are placed singly."}}})json";

// A gang: the pods of a job, which a controller of the same name made again are not.
struct Gang {
  std::string job;
  std::string key;
};

template <size_t n>
const std::string* FindFirst(const google::protobuf::Map<std::string, std::string>& map,
                             const char* const (&keys)[n]) {
  for (const char* key : keys) {
    auto it = map.find(key);
    if (it != map.end()) return &it->second;
  }
  return nullptr;
}

std::optional<Gang> GangOf(const v1alpha1::Pod& pod) {
  const std::string* job = FindFirst(pod.labels(), kJobLabels);
  if (job == nullptr || job->empty()) return std::nullopt;
  return Gang{*job, absl::StrCat(pod.namespace_(), "/", *job, "/", pod.controller().uid())};
}

class AtomicReplicaCoordinator : public sdk::Plugin,
                                 public sdk::ReservePlugin,
                                 public sdk::PermitPlugin,
                                 public sdk::QueueingHintPlugin,
                                 public sdk::ClusterObserver {
 public:
  AtomicReplicaCoordinator(absl::Duration timeout, int64_t default_size,
                           const sdk::PluginContext& context)
      : timeout_(timeout),
        default_size_(default_size),
        cluster_(context.cluster),
        pushes_(context.pushes) {}

  sdk::Verdict Permit(const sdk::Attempt& attempt, const sdk::NodeView& node,
                      sdk::PermitAnswer* answer) override {
    const v1alpha1::Pod& pod = attempt.pod().proto();
    const std::optional<Gang> gang = GangOf(pod);
    if (!gang) return sdk::Verdict::Success();
    int64_t size = default_size_;
    if (const std::string* text = FindFirst(pod.annotations(), kSizeAnnotations)) {
      // To take it for a single pod would place a part of a gang.
      size = sdk::ParseCount(*text, kMaxReplicas).value_or(0);
      if (size < 1) {
        return sdk::Verdict::Unresolvable(
            absl::StrCat("gang ", sdk::Quote(gang->job), ": ", sdk::Quote(*text),
                         " is no number of replicas between 1 and ", kMaxReplicas));
      }
    }
    const std::vector<const sdk::PodRecord*> others = PlacedOthers(gang->key, pod.uid());
    const int64_t placed = static_cast<int64_t>(others.size()) + 1;
    if (placed < size) {
      answer->timeout = timeout_;
      answer->wait_reason = Progress(gang->job, placed, size);
      // The first to wait calls the others, who may have given up before it came.
      if (std::none_of(others.begin(), others.end(),
                       [](const auto* other) { return WaitsForUs(*other); })) {
        CallMembers(gang->key, size);
      }
      return sdk::Verdict(v1alpha1::WAIT, answer->wait_reason);
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

  // One member lost its place, for whatever reason: those that wait for it give theirs back now
  // rather than at their timeouts.
  void Unreserve(const sdk::Attempt& attempt, absl::string_view node_name,
                 std::vector<sdk::WaitDecision>* decisions) override {
    const v1alpha1::Pod& pod = attempt.pod().proto();
    const std::optional<Gang> gang = GangOf(pod);
    if (!gang) return;
    const std::vector<const sdk::PodRecord*> others = PlacedOthers(gang->key, pod.uid());
    const std::string message =
        absl::StrCat("gang ", sdk::Quote(gang->job), ": pod ", pod.name(), " gave its place on ",
                     std::string(node_name), " back, ", others.size(), " others were placed");
    for (const sdk::PodRecord* other : others) {
      if (!WaitsForUs(*other)) continue;
      decisions->push_back({other->waiting_attempt, other->pod.uid(), /*allow=*/false, message});
      rejected_[other->pod.uid()] = other->waiting_attempt;
    }
    if (attempt.pod().record().place == sdk::Place::kWaiting) {
      rejected_[pod.uid()] = attempt.pod().record().waiting_attempt;
    }
  }

  // A member that was rejected here misses others, not room: it goes on when another has a place,
  // or when itself it belongs elsewhere or says another number. Others that come call it (Permit).
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_pod->uid() == pod.uid()) return sdk::Hint::kQueue;
    if (change.action != v1alpha1::ClusterEvent::ADD) return sdk::Hint::kSkip;
    const std::optional<Gang> gang = GangOf(pod.proto());
    const std::optional<Gang> of_other = GangOf(*change.new_pod);
    return gang && of_other && gang->key == of_other->key ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override {
    members_.clear();
    key_of_pod_.clear();
    rejected_.clear();
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    auto it = rejected_.find(pod.pod.uid());
    if (it != rejected_.end() && it->second != pod.waiting_attempt) rejected_.erase(it);
    const std::optional<Gang> gang = GangOf(pod.pod);
    SetKey(pod.pod.uid(), gang ? gang->key : "");
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    rejected_.erase(pod.pod.uid());
    SetKey(pod.pod.uid(), "");
  }

 private:
  static std::string Progress(const std::string& job, int64_t placed, int64_t size) {
    return absl::StrCat("gang ", sdk::Quote(job), ": ", placed, " of ", size, " members placed");
  }

  // Has the members tried that have no place, if there are enough of them to be placed at all.
  void CallMembers(const std::string& key, int64_t size) const {
    const auto it = members_.find(key);
    if (it == members_.end()) return;
    int64_t living = 0;
    std::vector<std::string> pending;
    for (const std::string& uid : it->second) {
      const sdk::PodRecord* record = cluster_.FindPod(uid);
      if (record == nullptr || record->pod.deletion_unix_seconds() != 0) continue;
      ++living;
      if (!record->on_node() || rejected_.contains(uid)) pending.push_back(uid);
    }
    if (living < size || pending.empty()) return;
    std::sort(pending.begin(), pending.end());
    pushes_->Activate(pending);
  }

  // Members that have a place which they will keep, in the order of their uids. What counts is the
  // mirror, so that a host that starts anew knows as much.
  std::vector<const sdk::PodRecord*> PlacedOthers(const std::string& key,
                                                  const std::string& uid) const {
    std::vector<const sdk::PodRecord*> placed;
    auto it = members_.find(key);
    if (it == members_.end()) return placed;
    for (const std::string& member : it->second) {
      if (member == uid) continue;
      const sdk::PodRecord* record = cluster_.FindPod(member);
      if (record == nullptr || !record->on_node() || record->pod.deletion_unix_seconds() != 0 ||
          rejected_.contains(member)) {
        continue;
      }
      placed.push_back(record);
    }
    std::sort(placed.begin(), placed.end(),
              [](const auto* a, const auto* b) { return a->pod.uid() < b->pod.uid(); });
    return placed;
  }

  static bool WaitsForUs(const sdk::PodRecord& record) {
    return record.place == sdk::Place::kWaiting &&
           std::any_of(record.waits.begin(), record.waits.end(),
                       [](const sdk::PodWait& wait) { return wait.plugin == kName; });
  }

  void SetKey(const std::string& uid, const std::string& key) {
    auto known = key_of_pod_.find(uid);
    if (known != key_of_pod_.end()) {
      if (known->second == key) return;
      auto members = members_.find(known->second);
      members->second.erase(uid);
      if (members->second.empty()) members_.erase(members);
      key_of_pod_.erase(known);
    }
    if (key.empty()) return;
    members_[key].insert(uid);
    key_of_pod_[uid] = key;
  }

  const absl::Duration timeout_;
  const int64_t default_size_;
  const sdk::ClusterView cluster_;
  sdk::Pushes* const pushes_;
  absl::flat_hash_map<std::string, absl::flat_hash_set<std::string>> members_;  // Uids by gang.
  absl::flat_hash_map<std::string, std::string> key_of_pod_;
  // Attempts that were rejected and whose places the mirror still has. Only saves repetition: every
  // rejection makes the shim call Unreserve again.
  absl::flat_hash_map<std::string, uint64_t> rejected_;
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1alpha1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1alpha1::RESERVE, v1alpha1::PERMIT};
  d.args_schema = kArgsSchema;
  d.wake_up_events = {
      sdk::WakeOn("Pod", {Event::ADD, Event::UPDATE_POD_LABEL, Event::UPDATE_OTHER})};
  for (const char* key : kSizeAnnotations) {
    d.needed_fields.push_back(sdk::AnnotationField(key));
  }
  const std::initializer_list<std::string> labels = {
      "metadata.labels['job-name']", "metadata.labels['batch.kubernetes.io/job-name']"};
  d.interests = {sdk::InterestIn(v1alpha1::RESERVE, labels),
                 sdk::InterestIn(v1alpha1::PERMIT, labels)};
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    const sdk::ArgsObject args = context.args->root();
    const int64_t timeout = args.Int("timeoutSeconds", 30);
    if (timeout < 1 || timeout > kMaxTimeoutSeconds) {
      args.Problem("timeoutSeconds", sdk::InvalidValue(timeout, "not in valid range [1, 900]"));
    }
    const int64_t size = args.Int("defaultMinReplicas", 1);
    if (size < 1 || size > kMaxReplicas) {
      args.Problem("defaultMinReplicas", sdk::InvalidValue(size, "not in valid range [1, 100000]"));
    }
    return std::make_unique<AtomicReplicaCoordinator>(absl::Seconds(timeout), size, context);
  };
  return d;
}

}  // namespace outboard::atomic_replica_coordinator
