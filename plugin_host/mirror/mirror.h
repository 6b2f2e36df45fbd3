// The host's copy of one session's cluster.
#ifndef OUTBOARD_PLUGIN_HOST_MIRROR_MIRROR_H_
#define OUTBOARD_PLUGIN_HOST_MIRROR_MIRROR_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/views.h"
#include "proto/outboard/v1alpha1/cluster_state.pb.h"

namespace outboard::mirror {

// Applies the messages of a Sync stream to columns over node slots, and tells observers of every
// change.
//
//   absl::Status status = mirror.Apply(request, now);   // not ok: the stream is to be ended, the
//   shim sends a snapshot
//   if (mirror.version() >= wanted) ... mirror.view() ...
//
// The address of the mirror and what `view()` points to are stable, also across snapshots.
//
// Threading: thread-compatible; the engine's thread owns it.
// Lifetime:  observers must outlive it or be removed.
// Errors:    FAILED_PRECONDITION for a change that does not fit the state. The mirror is then
//            incomplete and `complete()` false until the next
//            snapshot; nothing crashes on it.
class Mirror {
 public:
  Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  absl::Status Apply(const v1alpha1::SyncRequest& request, absl::Time now);

  // The version reached; 0 before the first snapshot is complete.
  int64_t version() const { return complete_ ? version_ : 0; }
  bool complete() const { return complete_; }
  // Forgets everything, as if new.
  void Reset();

  sdk::ClusterView view() const {
    return sdk::ClusterView(&nodes_, &pods_, &namespaces_, &objects_);
  }
  const sdk::PodRecord* FindPod(absl::string_view uid) const { return view().FindPod(uid); }

  // Tells `observer` of the whole state first.
  void AddObserver(sdk::ClusterObserver* observer);
  void RemoveObserver(sdk::ClusterObserver* observer);
  void Tick(absl::Time now);

  // What if other pods were on a node? For as long as the object lives; then the node is as before,
  // to the order of its pods. Observers are not told. Of several on one node the last made goes
  // first.
  class Hypothesis {
   public:
    Hypothesis(Mirror* mirror, sdk::Slot slot)
        : mirror_(mirror), slot_(slot), pods_before_(mirror->nodes_.pods[slot].size()) {}
    ~Hypothesis();
    Hypothesis(const Hypothesis&) = delete;
    Hypothesis& operator=(const Hypothesis&) = delete;
    void AddPod(sdk::PodRecord* pod);
    // The pod is on the node.
    void RemovePod(sdk::PodRecord* pod);

   private:
    Mirror* mirror_;
    sdk::Slot slot_;
    const size_t pods_before_;
    std::vector<sdk::PodRecord*> order_before_;                 // Only once a pod was removed.
    std::vector<std::pair<sdk::PodRecord*, int64_t>> changes_;  // To the sums: +1 or -1.
  };

  // Places that pods without one would have, on any nodes; for as long as the object lives, or
  // until they are taken back, last one first. Then all is as before, to the order of pods on
  // nodes. Unlike with a Hypothesis observers are told that pods are added to nodes and removed
  // from them (of OnPodChanged they hear nothing). No change may be applied meanwhile.
  class Trial {
   public:
    explicit Trial(Mirror* mirror) : mirror_(mirror), room_version_(mirror->room_version_) {}
    ~Trial() { UndoTo(0); }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    void Place(const sdk::PodRecord& pod, sdk::Slot slot);
    // How many pods were placed and not taken back.
    size_t size() const { return placed_.size(); }
    // Takes back those that were placed since there were `size` of them.
    void UndoTo(size_t size);

   private:
    struct Placed {
      sdk::PodRecord* pod;
      sdk::Place place_before;
      sdk::Slot slot_before;
    };
    Mirror* const mirror_;
    const uint64_t room_version_;
    std::vector<Placed> placed_;
  };

  // Pods that are not on their nodes for as long as the object lives, or until they return; then
  // all is as before, to the order of pods on nodes. Observers are told as with a Trial; trials may
  // come and go meanwhile. No change may be applied.
  class Absence {
   public:
    explicit Absence(Mirror* mirror) : mirror_(mirror), room_version_(mirror->room_version_) {}
    ~Absence();
    Absence(const Absence&) = delete;
    Absence& operator=(const Absence&) = delete;
    // A pod on a node.
    void Remove(const sdk::PodRecord& pod);
    // One that was removed.
    void Return(const sdk::PodRecord& pod);

   private:
    struct Removed {
      sdk::Place place;
      sdk::Slot slot;
    };
    Mirror* const mirror_;
    const uint64_t room_version_;
    std::map<sdk::PodRecord*, Removed> removed_;
    std::map<sdk::Slot, std::vector<sdk::PodRecord*>> order_before_;
  };

  // Changes with everything but pods that have no place: as long as it is the same, a pod that
  // found no node finds none.
  uint64_t room_version() const { return room_version_; }
  // Changes with everything but pods: nodes and their order, namespaces and objects.
  uint64_t surroundings_version() const { return surroundings_version_; }
  // How many pods are nominated to nodes.
  int64_t nominations() const { return nominations_; }

 private:
  absl::Status ApplyChange(const v1alpha1::Change& change, absl::Time now);
  absl::Status ApplyNodeUpsert(const v1alpha1::NodeUpsert& upsert);
  absl::Status ApplyNodeRemove(const v1alpha1::NodeRemove& remove);
  absl::Status ApplyPodUpsert(const v1alpha1::PodUpsert& upsert);
  absl::Status ApplyPodRemove(const v1alpha1::PodRemove& remove);
  absl::Status ApplyPlacement(const v1alpha1::PodPlacement& placement, absl::Time now);
  void ApplyObjectUpsert(const v1alpha1::ClusterObject& object);
  void ApplyObjectRemove(const v1alpha1::ClusterObject& named);
  absl::Status ApplyNodeOrder(const v1alpha1::NodeOrder& order);

  void GrowTo(sdk::Slot slot);
  void SetNodeColumns(sdk::Slot slot, const v1alpha1::Node& node);
  void SetImages(sdk::Slot slot, const v1alpha1::Node* node);
  uint32_t InternTaints(const v1alpha1::Node& node);
  uint32_t ExtendedColumn(const std::string& name);
  // Adds or takes a pod to or from the sums and lists of a node.
  void LinkPod(sdk::PodRecord* pod, sdk::Slot slot);
  void UnlinkPod(sdk::PodRecord* pod, sdk::Slot slot);
  void AddSums(const sdk::PodRecord& pod, sdk::Slot slot, int64_t sign);
  void Place(sdk::PodRecord* pod, sdk::Place place, sdk::Slot slot);
  void Touch(sdk::Slot slot);
  // Pods that name a node which the mirror does not have yet, or no more.
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

}  // namespace outboard::mirror

#endif  // OUTBOARD_PLUGIN_HOST_MIRROR_MIRROR_H_
