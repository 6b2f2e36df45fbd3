// One shim's session: its cache, its profiles, its attempts, and every call about them.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_SESSION_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/bind.pb.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/group.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/post_bind.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "outboard/v1beta1/pre_bind.pb.h"
#include "outboard/v1beta1/pre_enqueue.pb.h"
#include "outboard/v1beta1/queue_sort.pb.h"
#include "outboard/v1beta1/reserve.pb.h"
#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/runtime/call_status.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/runtime/planner.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/runtime/queueing_hints.h"
#include "plugin_host/runtime/signatures.h"
#include "plugin_host/runtime/write_results.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::runtime {

// Answers calls for one session, with the same code for plain calls, Cycle and Plan messages.
//
//   switch (session.Reached(header)) { kReady: call; kNotYet: wait for the next Apply; kPast:
//   answer STALE }
//
// Threading: thread-compatible; the engine's thread owns it.
// Lifetime:  registry and metrics (may be null) must outlive it.
// Errors:    CallStatus as in call.proto; Apply as ClusterCache::Apply.
class Session : private PushTarget {
 public:
  Session(std::string id, const sdk::PluginRegistry* registry, MetricSink* metrics = nullptr);
  ~Session() override;

  const std::string& id() const { return id_; }
  // False: a problem is an error, and nothing changed.
  bool Configure(const v1beta1::ConfigureRequest& request, v1beta1::ConfigureResponse* response);
  bool configured() const { return configured_; }
  // Applies a message of the Sync stream; ends the attempts that it names, and all at a new
  // snapshot.
  absl::Status Apply(const v1beta1::SyncRequest& request, absl::Time now);
  // A Sync stream opened: clears the cache and waits for a snapshot.
  void BeginSync();
  int64_t version() const { return cache_.version(); }
  uint32_t attempts_in_flight() const { return static_cast<uint32_t>(attempts_.size()); }
  // From now on rejects new attempts.
  void Drain() { draining_ = true; }
  // Receives pushes; null: dropped.
  void SetPush(std::function<void(const v1beta1::SyncResponse&)> push) { push_ = std::move(push); }
  // Not during a snapshot, so that plugins do not act on a part of it; and not if the shim sets the
  // time.
  void Tick(absl::Time now) {
    if (cache_.complete() && !session_time_.has_value()) cache_.Tick(now);
  }
  // Hands the plugins' times to the metrics.
  void FlushTimes();
  // The last time that the shim set on this stream; absent: the machine's clock applies.
  std::optional<absl::Time> clock_advanced_to() const { return session_time_; }
  const host_cache::ClusterCache& cache() const { return cache_; }

  enum class Readiness { kReady, kNotYet, kPast };
  Readiness Reached(const v1beta1::CallHeader& header) const;

  // The caller has checked that the version is reached. `header` is the call's; the request's is
  // ignored.
  CallStatus PreFilter(const v1beta1::CallHeader& header, const std::string& pod_uid,
                       absl::Time now, v1beta1::PreFilterResponse* response);
  CallStatus Filter(const v1beta1::CallHeader& header, const v1beta1::FilterRequest& request,
                    absl::Time now, v1beta1::FilterResponse* response);
  CallStatus PostFilter(const v1beta1::PostFilterRequest& request, absl::Time now,
                        v1beta1::PostFilterResponse* response);
  CallStatus PreScore(const v1beta1::CallHeader& header, const v1beta1::PreScoreRequest& request,
                      absl::Time now, v1beta1::PreScoreResponse* response);
  CallStatus Score(const v1beta1::CallHeader& header, const v1beta1::ScoreRequest& request,
                   absl::Time now, v1beta1::ScoreResponse* response);
  CallStatus Cycle(const v1beta1::CycleRequest& request, absl::Time now,
                   v1beta1::CycleResponse* response);
  CallStatus Plan(const v1beta1::PlanRequest& request, absl::Time now,
                  v1beta1::PlanResponse* response);
  CallStatus GeneratePlacements(const v1beta1::GeneratePlacementsRequest& request, absl::Time now,
                                v1beta1::GeneratePlacementsResponse* response);
  CallStatus ScorePlacements(const v1beta1::ScorePlacementsRequest& request, absl::Time now,
                             v1beta1::ScorePlacementsResponse* response);
  CallStatus SortKeys(const v1beta1::SortKeysRequest& request, v1beta1::SortKeysResponse* response);
  CallStatus PreEnqueue(const v1beta1::PreEnqueueRequest& request, absl::Time now,
                        v1beta1::PreEnqueueResponse* response);
  CallStatus Reserve(const v1beta1::ReserveRequest& request, absl::Time now,
                     v1beta1::ReserveResponse* response);
  CallStatus Unreserve(const v1beta1::UnreserveRequest& request, absl::Time now,
                       v1beta1::UnreserveResponse* response);
  CallStatus Permit(const v1beta1::PermitRequest& request, absl::Time now,
                    v1beta1::PermitResponse* response);
  CallStatus PreBind(const v1beta1::PreBindRequest& request, absl::Time now,
                     v1beta1::PreBindResponse* response);
  CallStatus Bind(const v1beta1::BindRequest& request, absl::Time now,
                  v1beta1::BindResponse* response);
  CallStatus PostBind(const v1beta1::PostBindRequest& request, absl::Time now);

 private:
  struct Target {
    AttemptRecord* attempt = nullptr;
    const sdk::PodRecord* pod = nullptr;
    int64_t leader_epoch = 0;  // the call's
  };
  std::shared_ptr<const Profile> FindProfile(const std::string& name) const;
  // The plugins' time.
  absl::Time Clock(absl::Time now) const { return session_time_.value_or(now); }
  CallStatus FindAttempt(const v1beta1::CallHeader& header, Target* target);
  // What PreBind, Bind and PostBind are about. The cache suffices for them if the host started
  // after Reserve: an unknown attempt begins in `restored`.
  struct Placement {
    Target target;
    AttemptRecord restored;
  };
  template <typename Request>
  CallStatus FindOrRestore(const Request& request, Placement* placed);
  // For Reserve and Permit: they begin an attempt of a profile without earlier points here, or that
  // began on another instance.
  CallStatus FindOrBegin(const v1beta1::CallHeader& header, const std::string& pod_uid,
                         bool began_elsewhere, Target* target);
  AttemptRecord* Begin(uint64_t id, const std::string& pod_uid,
                       std::shared_ptr<const Profile> profile);
  void End(uint64_t id);
  void EndAll();
  // Copies the slots of a request into nodes_; each must be occupied and unique.
  CallStatus TakeNodes(const v1beta1::NodeSet& set);
  // Each pod must be where its hypothesis assumes it.
  CallStatus TakeHypotheses(const v1beta1::NodeSimulation& simulation,
                            std::vector<NodeChange>* hypotheses) const;
  // First half of Cycle and Plan: PreFilter. A rejection becomes the response's outcome; otherwise
  // `target` is the attempt.
  template <typename Response>
  CallStatus BeginCycle(const v1beta1::CycleRequest& request, absl::Time now, Response* response,
                        Target* target);
  // Second half, for a single pod: Filter, PreScore and Score.
  CallStatus EvaluateNodes(const v1beta1::CycleRequest& request, const Target& target,
                           absl::Time now, v1beta1::CycleEvaluation* evaluation);
  // Search options of a Cycle.
  static SearchOptions SearchOf(const v1beta1::CycleRequest& request);
  PlanContext ContextOf(const v1beta1::CycleRequest& request, const Target& target,
                        absl::Time now) const;
  // Plan's second half, for several pods. PlaceGroup: false if the pod is scheduled individually.
  // PlaceNext: after EvaluateNodes found a node.
  bool PlaceGroup(const v1beta1::CycleRequest& request, const Target& target, absl::Time now,
                  v1beta1::PlanResponse* response);
  void PlaceNext(const v1beta1::PlanRequest& request, const Target& target, absl::Time now,
                 v1beta1::PlanResponse* response);
  // A pod's group, and the plugin that knows it.
  struct KnownGroup {
    uint32_t plugin = 0;
    sdk::GroupToPlace group;
    std::string fault{};  // What is wrong with it (FaultOf); empty: nothing.
    bool is_searched() const { return fault.empty() && group.short_of.empty(); }
  };
  // nullopt: the pod is in no group.
  std::optional<KnownGroup> FindGroup(const Target& target, absl::Time now) const;
  // A plan or a rejection.
  void AnswerGroup(const v1beta1::CycleRequest& request, const Target& target, absl::Time now,
                   const KnownGroup& known, GroupOutcome outcome, v1beta1::PlanResponse* response);
  // Of a group that is short of something, or is not as a group must be.
  static GroupOutcome OutcomeWithoutSearch(const Target& target, const KnownGroup& known);
  // A single step towards a group's nodes (GroupStep). `is_answered`: false if the pod is scheduled
  // individually.
  CallStatus TakeGroupStep(const v1beta1::PlanRequest& request, const Target& target,
                           absl::Time now, v1beta1::PlanResponse* response, bool* is_answered);
  void TryPlacements(const v1beta1::PlanRequest& request, const Target& target, absl::Time now,
                     const KnownGroup& known, v1beta1::PlanResponse* response);
  // Each set must have nodes of the cluster, each once.
  CallStatus TakeNodeSets(const v1beta1::GroupNodeSets& sets,
                          std::vector<std::vector<sdk::Slot>>* out);
  // The attempt of the group's first pod, and the group; as FindOrRestore.
  CallStatus FindForGroup(const v1beta1::CallHeader& header, const v1beta1::PendingGroup& group,
                          Placement* placed, sdk::PendingGroup* found);
  // PostFilter for a group. PostFilterGroup: false if the pod no longer has a group.
  bool PostFilterGroup(const Target& target, sdk::ExtensionPoint point, absl::Time now,
                       v1beta1::PostFilterResponse* response);
  void PreemptForGroup(const Target& target, sdk::ExtensionPoint point,
                       const sdk::GroupToPlace& group, absl::Time now,
                       v1beta1::PostFilterResponse* response);
  // At podGroupPostFilter.
  CallStatus PodGroupPostFilter(const v1beta1::PostFilterRequest& request, absl::Time now,
                                v1beta1::PostFilterResponse* response);
  // Begins the pods' attempts, and makes a plan of the response, with its PreFilter answer.
  v1beta1::CyclePlan* Keep(uint64_t first_id, std::vector<PlannedPod> pods,
                           v1beta1::PlanResponse* response);
  sdk::Attempt View(const Target& target, uint32_t plugin, absl::Time now) const;
  void RunUnreserve(const Target& target, const std::string& node_name, absl::Time now,
                    google::protobuf::RepeatedPtrField<v1beta1::WaitDecision>* decisions);

  // PushTarget:
  void Decide(const std::string& plugin, const sdk::WaitDecision& decision) override;
  void SortKeysChanged(absl::Span<const std::string> pod_uids) override;
  void GateChanged(absl::Span<const std::string> pod_uids) override;
  void Activate(const std::string& plugin, absl::Span<const std::string> pod_uids) override;
  void Write(const std::string& plugin, v1beta1::Effect effect) override;
  void PushHints();

  const std::string id_;
  const sdk::PluginRegistry* registry_;
  MetricSink* const metrics_;
  host_cache::ClusterCache cache_;
  Evaluator evaluator_;
  Signatures signatures_;
  Planner planner_{&cache_, &evaluator_, &signatures_};
  absl::flat_hash_map<std::string, std::shared_ptr<const Profile>> profiles_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<AttemptRecord>> attempts_;
  std::vector<std::unique_ptr<AttemptRecord>> unused_attempts_;
  // Pods of attempts that a plan began, until Reserve or Permit is called for them.
  absl::flat_hash_set<std::string> planned_;
  QueueingHints hints_{&cache_, [this](const std::string& name) -> const Profile* {
                         return FindProfile(name).get();
                       }};
  std::vector<v1beta1::QueueHint> unsent_hints_;
  WriteResults write_results_{metrics_};
  std::vector<sdk::Slot> nodes_;
  std::vector<sdk::Slot> feasible_;
  std::vector<uint32_t> seen_;  // By slot: the last call that named the slot.
  uint32_t seen_call_ = 0;
  std::function<void(const v1beta1::SyncResponse&)> push_;
  std::optional<absl::Time> session_time_;
  bool configured_ = false;
  bool draining_ = false;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_SESSION_H_
