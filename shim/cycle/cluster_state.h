// What the scheduler knows of the cluster: nodes, pods of all schedulers, and what it has promised
// itself.
#ifndef OUTBOARD_SHIM_CYCLE_CLUSTER_STATE_H_
#define OUTBOARD_SHIM_CYCLE_CLUSTER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/cycle/change_log.h"
#include "shim/cycle/node_guard.h"
#include "shim/cycle/node_tree.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

// A plugin's hold on a waiting pod.
struct PluginWait {
  std::string plugin;
  absl::Time deadline;
};

// What an informer's word about a pod meant.
struct PodOutcome {
  enum class Kind {
    kIgnored,        // nothing new: the same resource version, or a finished pod that was not known
    kAddedPending,   // new, without a node
    kAddedAssigned,  // new, on a node
    kUpdatedPending,
    kUpdatedAssigned,
    kBound,      // was pending, has a node now, and nothing was assumed
    kConfirmed,  // was assumed on the node that it has now
    kMoved,      // was assumed on, or had, another node: the API server is right
    kRemoved,    // gone, or finished
  };
  Kind kind = Kind::kIgnored;
  // The pod as it was; null if it is new.
  kube::PodPtr old;
  // Another pod of this name that was still known and is gone with this.
  kube::PodPtr replaced;
  // With kRemoved and kMoved: it was assumed until now. Its attempt may be under way.
  bool was_assumed = false;
  // The name of the node that it was assumed on or bound to before; empty: none.
  std::string old_node;
  // Its deletionTimestamp has come with this update.
  bool deletion_started = false;
};

// What an informer's word about a node meant.
struct NodeOutcome {
  enum class Kind { kIgnored, kAdded, kUpdated, kReplaced, kRemoved };
  Kind kind = Kind::kIgnored;
  kube::NodePtr old;
};

// What an informer's word about an object of another kind meant.
struct ObjectOutcome {
  enum class Kind { kIgnored, kAdded, kUpdated, kReplaced, kRemoved };
  Kind kind = Kind::kIgnored;
  kube::ClusterObjectPtr old;
};

// kube-scheduler's cache (backend/cache, v1.36), with stable slots for nodes and a log of changes
// for hosts.
//
// Slots are dense and reused. Assumed pods stay assumed until confirmed, forgotten or gone, never
// for a time. A node that goes while pods are on it leaves their sums behind, outside of slots and
// order; if it comes again, it has them still. Finished pods are not kept.
//
// Hosts: pods are sent whole once; Assume, Forget and waits are small placements. When the API
// server confirms an assumed pod and nothing else of it changed, hosts are sent nothing, for
// "assumed" counts like "running"; the next change of the pod brings the whole story.
//
// Threading: thread-compatible; the scheduling thread only. Lifetime: owns what it is given, by
// shared pointer.
// Errors:    NOT_FOUND for unknown pods and nodes, FAILED_PRECONDITION for a pod that is placed
// already, RESOURCE_EXHAUSTED from the guard.
class ClusterState : private ChangeEncoder {
 public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  // `max_removed`: how many removed objects are remembered for hosts that have not been told yet.
  explicit ClusterState(size_t max_removed = 65536);
  ~ClusterState() override;
  ClusterState(const ClusterState&) = delete;
  ClusterState& operator=(const ClusterState&) = delete;

  // From informers. A node or pod of a known name and another uid takes the old one's place.
  NodeOutcome UpsertNode(kube::NodePtr node);
  NodeOutcome RemoveNode(absl::string_view name);
  PodOutcome UpsertPod(kube::PodPtr pod);
  PodOutcome RemovePod(absl::string_view uid);
  // False: nothing that a host sees changed.
  bool UpsertNamespace(kube::NamespacePtr ns);
  bool RemoveNamespace(absl::string_view name);
  // Objects of the kinds of objects.proto, by kind and name. One of a known name and another uid
  // takes the old one's place. Hosts hear of it if its content changed.
  ObjectOutcome UpsertObject(kube::ClusterObjectPtr object);
  // As a write of ours left it, ahead of the informer; ignored if that has told more already. What
  // it tells afterwards of what was before is ignored.
  ObjectOutcome UpsertWritten(kube::ClusterObjectPtr object, absl::Time now);
  // Of which the informer has said nothing for a minute after they were written, though it has told
  // of something later: they came and went between two of its looks.
  std::vector<kube::ClusterObjectPtr> WrittenAndNeverSeen(absl::Time now);
  ObjectOutcome RemoveObject(const kube::ClusterObject& object);

  // Nodes.
  size_t node_count() const { return tree_.size(); }
  // One more than the largest slot ever used.
  uint32_t slot_limit() const { return static_cast<uint32_t>(slots_.size()); }
  // Slots of all nodes, in the order in which they are examined.
  const std::vector<uint32_t>& node_order() const { return tree_.Order(); }
  // Changes whenever a node comes or goes.
  uint64_t nodes_generation() const { return nodes_generation_; }
  // Changes whenever any node's NodeGeneration does.
  uint64_t placements_generation() const { return last_node_generation_; }
  // Null if the slot is free.
  const kube::NodePtr& NodeAt(uint32_t slot) const;
  uint32_t SlotOf(absl::string_view node_name) const;
  // Another number whenever the node in the slot, or anything about the pods on it, may have
  // changed, and another for each node that ever was; 0: the slot is free.
  uint64_t NodeGeneration(uint32_t slot) const;
  void ForEachPodOn(uint32_t slot, absl::FunctionRef<void(const kube::PodPtr&)> visit) const;
  // Of the state as a whole: calls to hosts that keep no mirror carry it.
  int64_t version() const { return log_.version(); }

  // Other objects. Null if there is none.
  size_t object_count() const { return objects_.size(); }
  kube::ClusterObjectPtr FindObject(const v1alpha1::ClusterObject& named) const;
  const DeviceClassResources& device_class_resources() const { return device_class_resources_; }

  // Pods.
  size_t pod_count() const { return pods_.size(); }
  kube::PodPtr FindPod(absl::string_view uid) const;
  // By NAMESPACE/NAME.
  kube::PodPtr FindPodNamed(absl::string_view key) const;
  // The node that it is bound to or assumed on; empty: none.
  std::string NodeOf(absl::string_view uid) const;
  bool IsAssumed(absl::string_view uid) const;
  size_t assumed_count() const { return assumed_; }
  void ForEachPod(absl::FunctionRef<void(const kube::PodPtr&, bool assumed)> visit) const;

  // Placements.
  // Counts a pending pod on a node. Does not check that it fits.
  absl::Status Assume(absl::string_view uid, uint32_t slot);
  // Ends an assumption, or a wait. NOT_FOUND if the pod is not assumed (confirmed or gone
  // meanwhile), which is no fault.
  absl::Status Forget(absl::string_view uid);
  // What is to be carried out before an assumed pod is bound; hosts count with it.
  absl::Status SetEffects(absl::string_view uid, std::vector<v1alpha1::Effect> effects);
  // An assumed pod waits at Permit; hosts are told who is waited for.
  absl::Status SetWaiting(absl::string_view uid, uint64_t attempt_id, std::vector<PluginWait> waits,
                          absl::Time now);
  // The wait is over; the pod is still assumed.
  absl::Status EndWaiting(absl::string_view uid);
  // A node is kept in mind for a pending pod. Assume ends it.
  absl::Status Nominate(absl::string_view uid, uint32_t slot);
  absl::Status Unnominate(absl::string_view uid);
  // Pods for which the node is kept in mind, by name.
  std::vector<kube::PodPtr> NominatedTo(absl::string_view node_name) const;
  // All pods for which some node is kept in mind, with the node's slot.
  void ForEachNominated(absl::FunctionRef<void(const kube::PodPtr&, uint32_t slot)> visit) const;

  // Whether the pod may be put on this node by us, by the guard's count; a pod that is counted
  // there already is not counted twice. Call it before Assume and again before the bind.
  absl::Status CheckFits(absl::string_view uid, uint32_t slot, const GuardScope& scope = {}) const;
  // The sums of a node, also of one that is gone; null: nothing known.
  const NodeBooks* BooksOf(absl::string_view node_name) const;

  // Hosts. The remaining time of waits is computed from the time given here.
  using Cursor = ChangeLog::Cursor;
  Cursor AddHost(ChangeEncoder::Fields fields) { return log_.AddHost(std::move(fields)); }
  void RemoveHost(Cursor host) { log_.RemoveHost(host); }
  void Resync(Cursor host) { log_.Resync(host); }
  void EndAttempt(Cursor host, uint64_t attempt_id) { log_.EndAttempt(host, attempt_id); }
  std::vector<v1alpha1::SyncRequest> TakeChanges(Cursor host, absl::Time now);
  std::unique_ptr<Snapshot> TakeSnapshot(Cursor host, absl::Time now);
  int64_t VersionOf(Cursor host) const { return log_.VersionOf(host); }
  bool HasChanges(Cursor host) const { return log_.HasChanges(host); }
  // From now on hosts are also told of binds of the profile's pods that came as foreseen, which
  // change nothing for those who only place pods.
  void TellBindsOf(absl::string_view profile) { tells_binds_of_.emplace(profile); }

 private:
  // cluster_objects.h
  struct Node;
  struct NodeRecord;
  struct Pod;
  struct Namespace;
  struct Object;

  void Encode(const ChangeRecord& record, int64_t known, const Fields& fields,
              std::vector<v1alpha1::Change>* out) const override;
  Snapshot::Content Capture() const override;
  void FillNodeOrder(v1alpha1::NodeOrder* order) const override;
  void EncodePod(const Pod& pod, int64_t known, const Fields& fields,
                 std::vector<v1alpha1::Change>* out) const;
  void EncodePlacement(const Pod& pod, v1alpha1::PodPlacement* out) const;

  Pod* Find(absl::string_view uid) const;
  Node& NodeNamed(const std::string& name);
  void Place(Pod& pod, Node& node);
  void Unplace(Pod& pod);
  void Touch(Node& node);
  void DropIfEmpty(Node& node);
  void EnterSlot(Node& node, kube::NodePtr object);
  void LeaveSlot(Node& node);
  // Hosts must place the pods that belong to the node anew.
  void TellNodeCame(Node& node);
  void TellNodeWent(Node& node);
  void TellNominations(const Node& node);
  PodOutcome NewPod(kube::PodPtr object);
  PodOutcome UpdatePod(Pod& pod, kube::PodPtr object);
  void ErasePod(Pod& pod);
  // Counts the pod as it is now.
  void Recount(Pod& pod);
  // Neither assumed nor waiting any more; `bound`: because it is where it should be.
  void EndAssumption(Pod& pod, bool bound);
  bool DropNomination(Pod& pod);

  mutable NodeTree tree_;
  absl::flat_hash_set<std::string> tells_binds_of_;
  ChangeLog log_;
  absl::flat_hash_map<std::string, std::unique_ptr<Node>> nodes_;  // by name, with ghosts
  std::vector<Node*> slots_;
  std::vector<uint32_t> free_slots_;                             // a heap, the smallest first
  absl::flat_hash_map<std::string, std::unique_ptr<Pod>> pods_;  // by uid
  absl::flat_hash_map<std::string, Pod*> pods_by_name_;          // by namespace/name
  absl::flat_hash_map<std::string, std::unique_ptr<Namespace>> namespaces_;
  // What the informer tells moves what it has told of on.
  void NoteTold(const kube::ClusterObject& object);
  ObjectOutcome Upsert(kube::ClusterObjectPtr object);
  void CountDeviceClass(const v1alpha1::ClusterObject& object, int by);

  absl::flat_hash_map<std::string, std::unique_ptr<Object>> objects_;  // by kind and name
  DeviceClassResources device_class_resources_;
  // Keys of objects that were written, by when; those that the informer has told of since, too.
  std::deque<std::pair<absl::Time, std::string>> written_;
  // By kind the latest version of an object that the informer has told of.
  absl::flat_hash_map<std::string, uint64_t> told_;
  std::deque<std::string> removed_uids_;  // of objects, the latest
  absl::flat_hash_set<Pod*> nominated_;
  size_t assumed_ = 0;
  uint64_t nodes_generation_ = 1;
  uint64_t last_node_generation_ = 0;
  absl::Time now_ = absl::InfinitePast();
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_CLUSTER_STATE_H_
