// What the scheduler knows of the cluster: nodes, the pods of all schedulers, and its own assumed
// placements.
#ifndef OUTBOARD_SHIM_CACHE_CLUSTER_STATE_H_
#define OUTBOARD_SHIM_CACHE_CLUSTER_STATE_H_

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
#include "shim/cache/change_log.h"
#include "shim/cache/node_guard.h"
#include "shim/cache/node_tree.h"
#include "shim/cache/update_outcomes.h"
#include "shim/kube/objects.h"

namespace outboard::cache {

// A plugin's hold on a waiting pod.
struct PluginWait {
  std::string plugin;
  absl::Time deadline;
};

// What a plugin keeps for an assumed pod, and the host, by its name in the configuration, that
// gets it.
struct HostState {
  std::string host_name;
  v1beta1::PluginState state;
};

// kube-scheduler's cache (backend/cache, v1.36), with stable slots for nodes and a log of changes
// for hosts.
//
// Slots are dense and reused. An assumed pod stays assumed until it is confirmed, forgotten or
// deleted; there is no expiry. If a node is deleted while pods are on it, their sums are kept
// outside of slots and order; a new node of that name has them again. Finished pods are not kept.
//
// Hosts: a host receives a whole pod once; Assume, Forget and waits are small placements. If the
// API server confirms an assumed pod and nothing else of it changed, hosts receive nothing, because
// "assumed" counts like "running". With the next change of the pod they receive the whole pod.
//
// Threading: thread-compatible; the scheduling thread only.
// Lifetime: shares ownership of the objects it is given.
// Errors: NOT_FOUND for unknown pods and nodes, FAILED_PRECONDITION for a pod that already has a
// node, RESOURCE_EXHAUSTED from the guard.
class ClusterState : private ChangeEncoder {
 public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  // `max_removed`: how many removed objects are kept for hosts that were not notified yet.
  explicit ClusterState(size_t max_removed = 65536);
  ~ClusterState() override;
  ClusterState(const ClusterState&) = delete;
  ClusterState& operator=(const ClusterState&) = delete;

  // From informers. A node or pod with a known name and a new uid replaces the old one.
  NodeOutcome UpsertNode(kube::NodePtr node);
  NodeOutcome RemoveNode(absl::string_view name);
  PodOutcome UpsertPod(kube::PodPtr pod);
  PodOutcome RemovePod(absl::string_view uid);
  // False: no change that a host can see.
  bool UpsertNamespace(kube::NamespacePtr ns);
  bool RemoveNamespace(absl::string_view name);
  // Objects of the kinds in objects.proto, by kind and name. A known name with a new uid replaces
  // the old object. Hosts are notified if its content changed.
  ObjectOutcome UpsertObject(kube::ClusterObjectPtr object);
  // The object as a write of the shim left it, ahead of the informer. Ignored if the informer
  // already reported a later version. The informer's reports of earlier versions are ignored
  // afterwards.
  ObjectOutcome AssumeObject(kube::ClusterObjectPtr object, absl::Time now);
  // Objects that the informer did not report within a minute after the shim wrote them, although it
  // reported a later object: they were deleted between two of its reads.
  std::vector<kube::ClusterObjectPtr> TakeUnconfirmedObjects(absl::Time now);
  ObjectOutcome RemoveObject(const kube::ClusterObject& object);

  // Nodes.
  size_t node_count() const { return tree_.size(); }
  // One more than the largest slot ever used.
  uint32_t slot_limit() const { return static_cast<uint32_t>(slots_.size()); }
  // Slots of all nodes, in the order in which they are examined.
  const std::vector<uint32_t>& node_order() const { return tree_.Order(); }
  // Changes whenever a node is added or removed.
  uint64_t nodes_generation() const { return nodes_generation_; }
  // Changes whenever any node's NodeGeneration does.
  uint64_t placements_generation() const { return last_node_generation_; }
  // Null if the slot is free.
  const kube::NodePtr& NodeAt(uint32_t slot) const;
  uint32_t SlotOf(absl::string_view node_name) const;
  // Changes whenever the node in the slot, or anything about the pods on it, may have changed. No
  // value is used twice, not even for different nodes. 0: the slot is free.
  uint64_t NodeGeneration(uint32_t slot) const;
  void ForEachPodOn(uint32_t slot, absl::FunctionRef<void(const kube::PodPtr&)> visit) const;
  // The version of the whole state. Calls to hosts that keep no cluster cache carry it.
  int64_t version() const { return log_.version(); }

  // Other objects. FindObject: null for an unknown object; the uid does not count.
  size_t object_count() const { return objects_.size(); }
  kube::ClusterObjectPtr FindObject(const v1beta1::ObjectReference& reference) const;
  // Of a kind as kube::KindOf names it. Looks at all objects.
  std::vector<kube::ClusterObjectPtr> ObjectsOfKind(absl::string_view kind) const;
  void ForEachDisruptionBudget(
      absl::FunctionRef<void(const kube::ClusterObjectPtr& budget)> visit) const;
  const DeviceClassResources& device_class_resources() const { return device_class_resources_; }

  // Pods.
  size_t pod_count() const { return pods_.size(); }
  kube::PodPtr FindPod(absl::string_view uid) const;
  // By NAMESPACE/NAME.
  kube::PodPtr FindPodNamed(absl::string_view key) const;
  // The node that the pod is bound to or assumed on; empty: none.
  std::string NodeOf(absl::string_view uid) const;
  bool IsAssumed(absl::string_view uid) const;
  size_t assumed_count() const { return assumed_; }
  void ForEachPod(absl::FunctionRef<void(const kube::PodPtr&, bool assumed)> visit) const;

  // Placements.
  // Counts a pending pod on a node. Does not check that it fits.
  absl::Status Assume(absl::string_view uid, uint32_t slot);
  // Ends an assumption or a wait. NOT_FOUND if the pod is not assumed (already confirmed or
  // deleted); that is not a fault.
  absl::Status Forget(absl::string_view uid);
  // The effects to apply before an assumed pod is bound. Hosts take them into account.
  absl::Status SetEffects(absl::string_view uid, std::vector<v1beta1::Effect> effects);
  // What plugins keep for an assumed pod. Each host gets those of its own plugins.
  absl::Status SetStates(absl::string_view uid, std::vector<HostState> states);
  // An assumed pod waits at Permit. Hosts receive the plugins that it waits for.
  absl::Status SetWaiting(absl::string_view uid, uint64_t attempt_id, std::vector<PluginWait> waits,
                          absl::Time now);
  // The wait is over; the pod is still assumed.
  absl::Status EndWaiting(absl::string_view uid);
  // Nominates a node for a pending pod. Assume ends the nomination.
  absl::Status Nominate(absl::string_view uid, uint32_t slot);
  absl::Status Unnominate(absl::string_view uid);
  // The pods nominated to the node with this name.
  std::vector<kube::PodPtr> NominatedTo(absl::string_view node_name) const;
  // By slot, sorted by namespace and name: the nominated pods that count when `pod` is evaluated,
  // others of at least its priority.
  absl::flat_hash_map<uint32_t, std::vector<kube::PodPtr>> NominatedBeside(
      const kube::PodObject& pod) const;
  // All nominated pods, with the slot of their node.
  void ForEachNominated(absl::FunctionRef<void(const kube::PodPtr&, uint32_t slot)> visit) const;

  // Whether the guard allows the shim to put the pod on this node. A pod that is already counted
  // there is not counted twice. Call it before Assume and again before the bind.
  absl::Status CheckFits(absl::string_view uid, uint32_t slot, const GuardScope& scope = {}) const;
  // The sums of a node, also of a deleted one; null: unknown.
  const NodeUsage* UsageOf(absl::string_view node_name) const;

  // Hosts. The remaining time of waits is relative to the `now` given here.
  using Cursor = ChangeLog::Cursor;
  Cursor AddHost(ChangeEncoder::Fields fields) { return log_.AddHost(std::move(fields)); }
  void RemoveHost(Cursor host) { log_.RemoveHost(host); }
  void Resync(Cursor host) { log_.Resync(host); }
  void EndAttempt(Cursor host, uint64_t attempt_id) { log_.EndAttempt(host, attempt_id); }
  std::vector<v1beta1::SyncRequest> TakeChanges(Cursor host, absl::Time now);
  std::unique_ptr<Snapshot> TakeSnapshot(Cursor host, absl::Time now);
  int64_t VersionOf(Cursor host) const { return log_.VersionOf(host); }
  bool HasChanges(Cursor host) const { return log_.HasChanges(host); }
  // From now on hosts also receive the confirmed binds of the profile's pods. Plugins that only
  // place pods do not need them.
  void NotifyBindsOf(absl::string_view profile) { notifies_binds_of_.emplace(profile); }

 private:
  // cluster_objects.h
  struct Node;
  struct NodeRecord;
  struct Pod;
  struct Namespace;
  struct Object;

  void Encode(const ChangeRecord& record, int64_t known, const Fields& fields,
              std::vector<v1beta1::Change>* out) const override;
  Snapshot::Content Capture(const Fields& fields) const override;
  void FillNodeOrder(v1beta1::NodeOrder* order) const override;
  void EncodePod(const Pod& pod, int64_t known, const Fields& fields,
                 std::vector<v1beta1::Change>* out) const;
  void EncodePlacement(const Pod& pod, const Fields& fields, v1beta1::PodPlacement* out) const;

  Pod* Find(absl::string_view uid) const;
  Node& NodeNamed(const std::string& name);
  void Place(Pod& pod, Node& node);
  void Unplace(Pod& pod);
  void Touch(Node& node);
  void DropIfEmpty(Node& node);
  void EnterSlot(Node& node, kube::NodePtr object);
  void LeaveSlot(Node& node);
  // Hosts must place the node's pods again.
  void LogNodeAdded(Node& node);
  void LogNodeRemoved(Node& node);
  void LogNominations(const Node& node);
  PodOutcome NewPod(kube::PodPtr object);
  PodOutcome UpdatePod(Pod& pod, kube::PodPtr object);
  void ErasePod(Pod& pod);
  // Counts the pod as it is now.
  void Recount(Pod& pod);
  // The pod is no longer assumed or waiting; `bound`: because it is bound where it was assumed.
  void EndAssumption(Pod& pod, bool bound);
  bool DropNomination(Pod& pod);

  mutable NodeTree tree_;
  absl::flat_hash_set<std::string> notifies_binds_of_;
  ChangeLog log_;
  absl::flat_hash_map<std::string, std::unique_ptr<Node>> nodes_;  // by name, with ghosts
  std::vector<Node*> slots_;
  std::vector<uint32_t> free_slots_;                             // a heap, the smallest first
  absl::flat_hash_map<std::string, std::unique_ptr<Pod>> pods_;  // by uid
  absl::flat_hash_map<std::string, Pod*> pods_by_name_;          // by namespace/name
  absl::flat_hash_map<std::string, std::unique_ptr<Namespace>> namespaces_;
  // Notes the latest version that the informer reported.
  void NoteReportedVersion(const kube::ClusterObject& object);
  ObjectOutcome Upsert(kube::ClusterObjectPtr object);
  void CountDeviceClass(const v1beta1::ClusterObject& object, int by);
  // The object with this key was added or removed.
  void NoteKind(const std::string& key, const v1beta1::ClusterObject& object, bool is_added);

  absl::flat_hash_map<std::string, std::unique_ptr<Object>> objects_;  // by kind and name
  DeviceClassResources device_class_resources_;
  absl::flat_hash_set<std::string> disruption_budgets_;  // keys
  // Keys of objects that the shim wrote, by time; also those that the informer reported since.
  std::deque<std::pair<absl::Time, std::string>> written_;
  // By kind the latest object version that the informer reported.
  absl::flat_hash_map<std::string, uint64_t> reported_versions_;
  std::deque<std::string> removed_uids_;  // of objects, the latest
  absl::flat_hash_set<Pod*> nominated_;
  size_t assumed_ = 0;
  uint64_t nodes_generation_ = 1;
  uint64_t last_node_generation_ = 0;
  absl::Time now_ = absl::InfinitePast();
};

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_CLUSTER_STATE_H_
