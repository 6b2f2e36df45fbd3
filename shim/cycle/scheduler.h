// The scheduler: takes pods from the queue, asks hosts, keeps the books, and gives orders.
#ifndef OUTBOARD_SHIM_CYCLE_SCHEDULER_H_
#define OUTBOARD_SHIM_CYCLE_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "shim/cycle/algorithm.h"
#include "shim/cycle/cluster_state.h"
#include "shim/cycle/cycle_witness.h"
#include "shim/cycle/effects.h"
#include "shim/cycle/host_client.h"
#include "shim/cycle/host_record.h"
#include "shim/cycle/preemptions.h"
#include "shim/cycle/profile_plan.h"
#include "shim/cycle/scheduler_options.h"
#include "shim/cycle/vain_attempts.h"
#include "shim/cycle/waiting_pods.h"
#include "shim/kube/objects.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::cycle {

// One scheduler over all profiles.
//
// Used as: SetProfiles, SetHost; then feed it what happens (On…) and call ScheduleOne and Tick. It
// never sleeps and starts no thread: the process around it does, on real time, and the simulator on
// virtual time.
// Threading: thread-compatible; everything on the scheduling thread.
// Lifetime:  effects and observer outlive it; a host client must live until SetHost replaces it.
// Errors:    none to the caller. Every popped pod ends bound, queued again, parked for its host, or
// gone.
class Scheduler final : private queue::PreEnqueueGate, private queue::HintJudge {
 public:
  // `queue_observer` may be null.
  Scheduler(SchedulerOptions options, queue::QueueOptions queue_options, Effects* effects,
            Observer* observer, queue::QueueObserver* queue_observer, absl::Time now);
  ~Scheduler() override;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Names of profiles whose pods are queued; known before any host is.
  void SetProfileNames(const std::vector<std::string>& names);
  // While it runs: the queue takes pods of new profiles, and forgets those of profiles that went.
  void ChangeProfileNames(const std::vector<std::string>& names, absl::Time now);
  void SetOptions(const SchedulerOptions& options) { options_ = options; }
  // Adds or replaces the plan of a profile.
  void SetPlan(ProfilePlan plan);
  // A host instance, usable, takes the name's place, or (null) the host is away. Changes since its
  // snapshot are in the cursor's log.
  void SetHost(const std::string& name, HostClient* client, ClusterState::Cursor cursor,
               absl::Time now);

  // Who is shown cycles as they are answered; null: nobody. It outlives the scheduler.
  void SetWitness(CycleWitness* witness) { witness_ = witness; }

  // What happens in the cluster; from informers, in their order. A pod that has finished is as good
  // as deleted.
  void OnNodeUpsert(const kube::NodePtr& node, absl::Time now);
  void OnNodeDelete(const std::string& name, absl::Time now);
  void OnPodUpsert(const kube::PodPtr& pod, absl::Time now);
  void OnPodDelete(const std::string& uid, absl::Time now);
  void OnNamespaceUpsert(const kube::NamespacePtr& ns, absl::Time now);
  void OnNamespaceDelete(const std::string& name, absl::Time now);
  void OnObjectUpsert(const kube::ClusterObjectPtr& object, absl::Time now);
  void OnObjectDelete(const kube::ClusterObjectPtr& object, absl::Time now);
  // While held, they are passed over: mirrors may lack what has not been listed yet.
  void HoldOwnEffects(bool held) { own_effects_held_ = held; }

  void OnEffectEnded(uint64_t attempt_id, const EffectEnd& end, absl::Time now);
  // Of an effect that a plugin wanted of its own accord.
  void OnOwnEffectEnded(const v1alpha1::Effect& effect, const EffectEnd& end, absl::Time now);
  void OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message, absl::Time now);
  void OnEvictionEnded(uint64_t preemption_id, const kube::PodPtr& victim, EvictEnd end,
                       const std::string& message, absl::Time now);

  // Takes the next pod through its scheduling cycle; false if there is none to take now.
  bool ScheduleOne(absl::Time now);
  // Does what is due: waits that ended, decisions that hosts pushed, queue flushes.
  void Tick(absl::Time now);
  // For virtual time: has hosts go by it, and Tick learn from them all that follows from what has
  // happened. They were heard once HostsHeardTime holds; the caller turns the hosts' loop
  // meanwhile. Hosts without a mirror cannot be told and have the machine's clock. `now` never goes
  // back.
  void TellTime(absl::Time now);
  bool HostsHeardTime() const;
  // When Tick or ScheduleOne will have something to do, as far as is known now.
  absl::Time NextWakeup(absl::Time now) const;

  // For whoever connects hosts: cursors and snapshots.
  ClusterState* cluster() { return &cluster_; }
  const queue::SchedulingQueue& queue() const { return queue_; }
  // Whether a host's connection has to be set up anew; asked by whoever owns the clients.
  bool WantsNewSession(const std::string& host_name) const;
  // Whether the host is not asked anything for having given no usable answer several times.
  bool IsHeldBack(const std::string& host_name) const;
  // The host has answered a probe: it may be asked again.
  void OnProbeAnswered(const std::string& host_name, absl::Time now);
  // Whether the node has room for the pod, by all that is known now; asked before a bind is sent.
  absl::Status StillFits(const std::string& pod_uid, const std::string& node_name,
                         const std::string& profile) const;
  // Pods that have a node and are not bound yet.
  size_t attempts_in_flight() const { return attempts_.size(); }
  size_t waiting_pods() const { return waiting_.size(); }

 private:
  friend class ForeignPods;
  struct Attempt;
  struct PlacedTogether;
  using Host = HostRecord;

  bool HandlesProfile(const std::string& name) const { return profile_names_.contains(name); }
  const ProfilePlan* PlanOf(const kube::PodObject& pod) const;  // null: its profile has none
  // The host if it can be called.
  Host* UsableHost(const std::string& name);
  // Whether any of the plan's pods can be tried.
  bool IsUsable(const ProfilePlan& plan);
  void SendChanges(Host* host, absl::Time now);
  void OnCallFailed(const std::string& name, Breaker Host::*breaker, const absl::Status& status,
                    absl::Time now);
  void TellOfGates(const std::string& name, Host* host, absl::Time now);
  // For the log: the instance is asked about the attempt.
  static void NoteCall(Attempt* attempt, const HostClient& client);
  void FillHeader(const Attempt& attempt, const Host& host, v1alpha1::CallHeader* header) const;

  // The steps of a cycle; each takes over the attempt.
  void RunAlgorithm(std::unique_ptr<Attempt> attempt, absl::Time now);
  void PostFilter(std::unique_ptr<Attempt> attempt, Diagnosis diagnosis, absl::Time now);
  struct PostFilterOutcome;
  // Asks one host, and others what it wants to know; an error is about the host in `outcome`.
  absl::Status AskPostFilter(const Attempt& attempt, size_t asked, const AttemptHosts& hosts,
                             HostPanel* panel, PostFilterOutcome* outcome);
  void Preempt(std::unique_ptr<Attempt> attempt, const Diagnosis& diagnosis,
               const v1alpha1::PreemptionCandidate& candidate, absl::Time now);
  // False if the pod does not have the node.
  bool AssumeAndReserve(std::unique_ptr<Attempt> attempt, uint32_t slot, absl::Time now);
  // scheduler_batch.cc: pods that a host may place together with this one, and those it placed.
  std::vector<std::string> NextPods(const Attempt& attempt) const;
  // An attempt at a pod that has another's answer; null: it is not to be tried now.
  std::unique_ptr<Attempt> TakeWithOthers(const std::string& uid, const ProfilePlan& plan,
                                          absl::Time now);
  void PlaceOthers(const ProfilePlan& plan, uint64_t first_id, bool first_placed,
                   const PlacedTogether& others, absl::Time now);
  // scheduler_waits.cc
  void Permit(std::unique_ptr<Attempt> attempt, absl::Time now);
  // One host's answer, checked. `resumed`: the pod waits already, on the word of another instance.
  absl::StatusOr<v1alpha1::PermitResponse> AskPermit(Attempt* attempt, const PointShare& share,
                                                     bool resumed, absl::Time now);
  // The binding cycle: carries out the effects that Reserve named, waits until PreBind agrees, and
  // binds.
  void BeginBinding(Attempt* attempt, absl::Time now);
  void WriteNextEffect(Attempt* attempt, absl::Time now);
  void AskPreBind(Attempt* attempt, absl::Time now);
  absl::StatusOr<v1alpha1::PreBindResponse> AskPreBind(const Attempt& attempt,
                                                       const std::string& host_name,
                                                       absl::Time now);
  void FailPreBind(Attempt* attempt, const v1alpha1::PluginStatus& rejection, absl::Time now);
  // The attempt that has effects to carry out, or to wait for, before the pod is bound; else null.
  Attempt* FindInPreBind(const std::string& uid);
  Attempt* FindWriting(const std::string& uid);  // … one of which is under way
  void CancelPreBind(Attempt* attempt, const std::string& plugin, absl::Time now);
  void FailPreempted(Attempt* attempt, absl::Time now);
  void Bind(Attempt* attempt, absl::Time now);
  void EndWait(const WaitEnd& end, absl::Time now);
  // A host that takes another's place, or comes back, is asked about every pod that waits.
  void ForgetConfirmations(const std::string& host_name);
  void AwaitConfirmations(const std::string& host_name, absl::Time now);
  void AskForConfirmations(absl::Time now);
  void Confirm(Attempt* attempt, const PointShare& share, const v1alpha1::PermitResponse& answer,
               absl::Time now);
  void ApplyDecisions(const google::protobuf::RepeatedPtrField<v1alpha1::WaitDecision>& decisions,
                      absl::Time now);
  void TakeOwnEffect(const std::string& host_name, Host* host, const v1alpha1::Effect& effect,
                     absl::Time now);
  void TakePushes(const std::string& host_name, Host* host, absl::Time now);
  void FindKeepers(const std::string& name, Host* host);
  void TellAllListed(Host* host, absl::Time now);
  void SendToKeepers(absl::Time now);
  absl::Time NextSendToKeepers() const;

  // The ways in which an attempt fails.
  void FailUnschedulable(std::unique_ptr<Attempt> attempt, const Diagnosis& diagnosis,
                         absl::Time now);
  void FailNoNodes(std::unique_ptr<Attempt> attempt, absl::Time now);
  void FailError(std::unique_ptr<Attempt> attempt, const std::string& message, absl::Time now);
  // An answer could be read and is of no use.
  void OnBadAnswer(const std::string& host_name, const absl::Status& status);
  void FailHostAway(std::unique_ptr<Attempt> attempt, const std::string& host_name,
                    const absl::Status& status, absl::Time now);
  void RequeueFailed(std::unique_ptr<Attempt> attempt, AttemptResult result,
                     const std::string& message, absl::Time now);
  // Brings the nomination up to what the failed attempt makes of it; what is to be written into the
  // pod's status, if anything.
  std::optional<std::string> RenewNomination(const Attempt& attempt, const kube::PodObject& current,
                                             AttemptResult result);
  // Gives the attempt's node back: Unreserve, forget.
  void GiveBack(Attempt* attempt, const std::string& reason, absl::Time now);
  // A pod with an attempt under way is being deleted or is gone.
  void OnAssumedPodGone(const std::string& uid, absl::Time now);
  void OnPodRemoved(const PodOutcome& outcome, const std::string& uid, absl::Time now);
  // Whether those who shall leave are there, and less important.
  absl::Status CheckVictims(const kube::PodObject& preemptor,
                            const v1alpha1::PreemptionCandidate& candidate) const;
  void ClearLowerNominations(const kube::PodObject& preemptor, const std::string& node_name,
                             absl::Time now);
  // The plugin in whose name the pod stays out of the queue, for it has others leave; null: none.
  const std::string* PreemptionGateOf(const std::string& uid) const;
  // Whether a pod is on its way out, or gone; not yet where it only takes a moment until it is.
  bool IsLeaving(const std::string& uid) const;
  // Lets events help those whom no victim holds any more; before the event is told of.
  void ReleasePreemptorsOf(const std::string& victim_uid);
  void ReleaseUnlessGated(const std::string& preemptor_uid);
  void TakeWritten(const EffectEnd& end, absl::Time now);
  void TellOfObject(const ObjectOutcome& outcome, const kube::ClusterObject& object,
                    absl::Time now);
  // Keeps in mind the node that status.nominatedNodeName names.
  void UpdateNomination(const kube::PodObject& pod, const PodOutcome& outcome);
  void OnPodAssigned(const kube::PodPtr& pod, absl::Time now);
  void OnPendingPodUpdated(const PodOutcome& outcome, const kube::PodPtr& pod, absl::Time now);
  void Forget(Attempt* attempt);  // takes the pod's demand off its node
  // scheduler_hints.cc. Announce tells judging hosts of an event. It must follow the change of
  // `cluster_` at once: the event has to travel with the change, for the host compares its mirror
  // before and after.
  static v1alpha1::QueueEvent AboutPod(const std::string& uid);
  static v1alpha1::QueueEvent AboutNode(const std::string& name);
  static v1alpha1::QueueEvent AboutObject(const v1alpha1::ClusterObject& object);
  void Announce(const queue::ClusterEvent& event, v1alpha1::QueueEvent about);
  void AnnouncePlaceGivenBack(const kube::PodObject& pod);
  void AnnounceNominationEnded(const kube::PodObject& pod);
  void AnnounceUpsert(const PodOutcome& outcome, const kube::PodObject& pod);
  void AnnounceRemoval(const PodOutcome& outcome);
  // What is to be told and goes with no call.
  void SendHints(absl::Time now);
  void TakeWakes(const Host& host, const v1alpha1::Wakes& wakes, absl::Time now);
  bool Judges(const kube::PodObject& pod, uint64_t since) override;
  void OnWaiting(const queue::QueuedPod& pod) override;
  void OnNotWaiting(const queue::QueuedPod& pod) override;

  // Ends the attempt for hosts and for the books of this class.
  void EndAttempt(const Attempt& attempt);
  std::unique_ptr<Attempt> TakeAttempt(uint64_t attempt_id);

  std::vector<queue::GateVerdict> Judge(absl::Span<const queue::QueuedPod* const> pods,
                                        absl::Time now) override;
  // While its preemption is under way nothing helps a pod, and many victims may leave. Others are
  // tried when `vain_attempts_` says so.
  bool Holds(const queue::QueuedPod& pod) const override {
    return PreemptionGateOf(pod.uid()) != nullptr || vain_attempts_.Holds(pod.uid());
  }
  // Asks hosts for the pods' sort keys where their profiles want that.
  void UpdateSortKeys(absl::Span<const kube::PodPtr> pods, absl::Time now);
  void AskForOwedSortKeys(Host* host, absl::Time now);

  SchedulerOptions options_;
  Effects* const effects_;
  Observer* const observer_;
  CycleWitness* witness_ = nullptr;
  ClusterState cluster_;
  queue::SchedulingQueue queue_;
  Algorithm algorithm_;
  VainAttempts vain_attempts_;
  WaitingPods waiting_;
  Preemptions preemptions_;

  std::set<std::string> profile_names_;
  PlanBook plans_;
  std::map<std::string, Host> hosts_;
  // Kinds of events that hosts were told of.
  absl::flat_hash_set<queue::ClusterEvent> announced_;

  uint64_t last_attempt_id_ = 0;
  uint32_t next_start_ = 0;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Attempt>> attempts_;
  absl::flat_hash_map<std::string, uint64_t> attempt_of_pod_;
  // Plugin and key of effects that plugins wanted of their own accord and that are under way.
  absl::flat_hash_set<std::string> own_effects_;
  bool own_effects_held_ = false;
  std::multimap<absl::Time, uint64_t> pre_bind_questions_;  // attempts by when to ask next
  struct Confirmation {
    uint64_t attempt_id = 0;
    std::string host_name;
    const PointShare* share = nullptr;  // of the attempt's plan
    absl::Time due;
    absl::Time give_up;
  };
  std::deque<Confirmation> confirmations_;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_SCHEDULER_H_
