// The host's copy of one session's cluster.
#ifndef OUTBOARD_PLUGIN_HOST_CACHE_CLUSTER_CACHE_H_
#define OUTBOARD_PLUGIN_HOST_CACHE_CLUSTER_CACHE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/views.h"

namespace outboard::host_cache {

// Applies the messages of a Sync stream to columns over node slots, and notifies observers of every
// change.
//
//   absl::Status status = cache.Apply(request, now);
//   if (!status.ok()) …  // End the stream; the shim then sends a snapshot.
//   if (cache.version() >= wanted) ... cache.view() ...
//
// The address of the cache and what `view()` points to are stable, also across snapshots.
//
// Threading: thread-compatible; the engine's thread owns it.
// Lifetime: observers must outlive it or be removed.
// Errors: FAILED_PRECONDITION for a change that does not fit the state. The cache is then
//         incomplete, but usable without a crash, and `complete()` false until the next snapshot.
class ClusterCache {
 public:
  ClusterCache();
  ClusterCache(const ClusterCache&) = delete;
  ClusterCache& operator=(const ClusterCache&) = delete;

  absl::Status Apply(const v1beta1::SyncRequest& request, absl::Time now);

  // The version reached; 0 before the first snapshot is complete.
  int64_t version() const { return complete_ ? version_ : 0; }
  bool complete() const { return complete_; }
  // Forgets everything, as if new.
  void Reset();

  sdk::ClusterView view() const {
    return sdk::ClusterView(&nodes_, &pods_, &namespaces_, &objects_);
  }
  const sdk::PodRecord* FindPod(absl::string_view uid) const { return view().FindPod(uid); }

  // First sends `observer` the whole state.
  void AddObserver(sdk::ClusterObserver* observer);
  void RemoveObserver(sdk::ClusterObserver* observer);
  void Tick(absl::Time now);

  // Changes the pods of a node for as long as the object lives; then restores the node, including
  // the order of its pods. Observers are not notified. Several on one node end in reverse order.
  class Hypothesis {
   public:
    Hypothesis(ClusterCache* cache, sdk::Slot slot)
        : cache_(cache), slot_(slot), pods_before_(cache->nodes_.pods[slot].size()) {}
    ~Hypothesis();
    Hypothesis(const Hypothesis&) = delete;
    Hypothesis& operator=(const Hypothesis&) = delete;
    void AddPod(sdk::PodRecord* pod);
    // The pod is on the node.
    void RemovePod(sdk::PodRecord* pod);

   private:
    ClusterCache* cache_;
    sdk::Slot slot_;
    const size_t pods_before_;
    std::vector<sdk::PodRecord*> order_before_;                 // Only after a pod was removed.
    std::vector<std::pair<sdk::PodRecord*, int64_t>> changes_;  // To the sums: +1 or -1.
  };

  // Places pods without a place on any nodes, for as long as the object lives or until they are
  // undone, the last one first. Then restores everything, including the order of pods on nodes.
  // Unlike with a Hypothesis, observers are notified of pods added to and removed from nodes (but
  // not by OnPodChanged). No change may be applied meanwhile.
  class Trial {
   public:
    explicit Trial(ClusterCache* cache) : cache_(cache), room_version_(cache->room_version_) {}
    ~Trial() { UndoTo(0); }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    void Place(const sdk::PodRecord& pod, sdk::Slot slot);
    // How many pods are placed and not undone.
    size_t size() const { return placed_.size(); }
    // Undoes placements until `size` are left.
    void UndoTo(size_t size);

   private:
    struct Placed {
      sdk::PodRecord* pod;
      sdk::Place place_before;
      sdk::Slot slot_before;
    };
    ClusterCache* const cache_;
    const uint64_t room_version_;
    std::vector<Placed> placed_;
  };

  // Removes pods from their nodes for as long as the object lives, or until they return; then
  // restores everything, including the order of pods on nodes. Observers are notified as with a
  // Trial; trials may begin and end meanwhile. No change may be applied.
  class Absence {
   public:
    explicit Absence(ClusterCache* cache) : cache_(cache), room_version_(cache->room_version_) {}
    ~Absence();
    Absence(const Absence&) = delete;
    Absence& operator=(const Absence&) = delete;
    // `pod` is on a node.
    void Remove(const sdk::PodRecord& pod);
    // `pod` was removed before.
    void Return(const sdk::PodRecord& pod);

   private:
    struct Removed {
      sdk::Place place;
      sdk::Slot slot;
    };
    ClusterCache* const cache_;
    const uint64_t room_version_;
    std::map<sdk::PodRecord*, Removed> removed_;
    std::map<sdk::Slot, std::vector<sdk::PodRecord*>> order_before_;
  };

  // Increases with every change except of pods without a place: while it is the same, a pod that
  // found no node still finds none.
  uint64_t room_version() const { return room_version_; }
  // Increases with every change of nodes, their order, namespaces and objects.
  uint64_t surroundings_version() const { return surroundings_version_; }
  // How many pods are nominated to nodes.
  int64_t nominations() const { return nominations_; }

 private:
  absl::Status ApplyChange(const v1beta1::Change& change, absl::Time now);
  absl::Status ApplyNodeUpsert(const v1beta1::NodeUpsert& upsert);
  absl::Status ApplyNodeRemove(const v1beta1::NodeRemove& remove);
  absl::Status ApplyPodUpsert(const v1beta1::PodUpsert& upsert);
  absl::Status ApplyPodRemove(const v1beta1::PodRemove& remove);
  absl::Status ApplyPlacement(const v1beta1::PodPlacement& placement, absl::Time now);
  void ApplyObjectUpsert(const v1beta1::ClusterObject& object);
  void ApplyObjectRemove(const v1beta1::ObjectReference& reference);
  absl::Status ApplyNodeOrder(const v1beta1::NodeOrder& order);

  void GrowTo(sdk::Slot slot);
  void SetNodeColumns(sdk::Slot slot, const v1beta1::Node& node);
  void SetImages(sdk::Slot slot, const v1beta1::Node* node);
  uint32_t InternTaints(const v1beta1::Node& node);
  uint32_t ExtendedColumn(const std::string& name);
  // Adds a pod to, or removes it from, the sums and lists of a node.
  void LinkPod(sdk::PodRecord* pod, sdk::Slot slot);
  void UnlinkPod(sdk::PodRecord* pod, sdk::Slot slot);
  void AddSums(const sdk::PodRecord& pod, sdk::Slot slot, int64_t sign);
  void Place(sdk::PodRecord* pod, sdk::Place place, sdk::Slot slot);
  void Touch(sdk::Slot slot);
  // Places pods that name this node and arrived before it, or outlived it.
  void AdoptGhosts(sdk::Slot slot, const std::string& name);

  sdk::NodeTable nodes_;
  sdk::PodMap pods_;
  sdk::NamespaceMap namespaces_;
  sdk::ClusterObjects objects_;
  absl::flat_hash_map<std::string, std::vector<sdk::PodRecord*>> ghosts_;  // By node name.
  std::map<std::string, uint32_t> taint_set_ids_;                          // By serialised set.
  std::vector<sdk::ClusterObserver*> observers_;
  int64_t version_ = 0;
  uint64_t clock_ = 0;  // Counts changes.
  uint64_t room_version_ = 0;
  uint64_t surroundings_version_ = 0;
  int64_t nominations_ = 0;
  bool complete_ = false;
  bool in_snapshot_ = false;
};

}  // namespace outboard::host_cache

#endif  // OUTBOARD_PLUGIN_HOST_CACHE_CLUSTER_CACHE_H_
