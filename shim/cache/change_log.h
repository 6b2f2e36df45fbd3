// The changes that each host has not received yet: conflated, with one cursor per host.
#ifndef OUTBOARD_SHIM_CACHE_CHANGE_LOG_H_
#define OUTBOARD_SHIM_CACHE_CHANGE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "shim/cache/snapshot.h"

namespace outboard::cache {

enum class ChangeKind : uint8_t { kNode, kPod, kNamespace, kObject };

// The place of an object in the log; every object of the state has one. A record belongs to one
// life of the object: an object that is created again gets a new record.
struct ChangeRecord {
  explicit ChangeRecord(ChangeKind k) : kind(k) {}
  virtual ~ChangeRecord() = default;
  const ChangeKind kind;
  bool removed = false;
  int64_t created = 0;    // version of its creation
  int64_t changed = 0;    // version of its last change of any kind; orders the log
  int64_t content = 0;    // version of the last change of the object itself
  int64_t placement = 0;  // pods: version of the last change of the placement
  ChangeRecord* previous = nullptr;
  ChangeRecord* next = nullptr;
};

// Turns a record into changes.
class ChangeEncoder {
 public:
  virtual ~ChangeEncoder() = default;
  using Fields = HostFields;
  // Appends the changes that a host at version `known` needs for this record; possibly none.
  // `known` 0: the host knows nothing.
  virtual void Encode(const ChangeRecord& record, int64_t known, const Fields& fields,
                      std::vector<v1beta1::Change>* out) const = 0;
  // The whole state as it is now. Only the placements are restricted to `fields`.
  virtual Snapshot::Content Capture(const Fields& fields) const = 0;
  virtual void FillNodeOrder(v1beta1::NodeOrder* order) const = 0;
};

// A list of all objects, ordered by the version of their last change. A host needs the changes
// behind its cursor. So each object is sent at most once, however often it changed, and a host
// costs nothing while nothing changes. The number of removed objects that are kept is bounded; a
// host that might have missed a removal gets a new snapshot.
//
// Threading: thread-compatible.
// Lifetime: owns removed records. The state owns living records and hands them over with Removed.
class ChangeLog {
 public:
  using Cursor = uint64_t;
  static constexpr size_t kMaxMessageBytes = 2 << 20;

  explicit ChangeLog(const ChangeEncoder* encoder, size_t max_removed = 65536);
  ~ChangeLog();
  ChangeLog(const ChangeLog&) = delete;
  ChangeLog& operator=(const ChangeLog&) = delete;

  // Adds a host. Its first messages are a snapshot.
  Cursor AddHost(ChangeEncoder::Fields fields);
  void RemoveHost(Cursor cursor);
  // The next TakeChanges or TakeSnapshot is a snapshot (the host requested it, or its stream
  // broke).
  void Resync(Cursor cursor);
  // The attempt is over. The next changes notify the host.
  void EndAttempt(Cursor cursor, uint64_t attempt_id);
  // The messages that the host needs now, in order: none, usually one DELTA, or a snapshot in
  // chunks. Each is at most 2 MiB, unless a single object is larger. If a DELTA has several parts,
  // all but the last carry the previous version.
  std::vector<v1beta1::SyncRequest> TakeChanges(Cursor cursor);
  // The same for a host that needs a snapshot, to be sent in pieces. The caller sends all of it
  // before the next TakeChanges. Null for an unknown host.
  std::unique_ptr<Snapshot> TakeSnapshot(Cursor cursor);
  // The version that the host has once it applied everything taken so far; calls to the host carry
  // it. 0: nothing was taken.
  int64_t VersionOf(Cursor cursor) const;
  bool HasChanges(Cursor cursor) const;

  // What at least one host's plugins read in addition to the contract's own fields.
  const ChangeEncoder::Fields& wanted() const { return wanted_; }

  // For the state: what changed in `record`. The caller makes exactly one of these calls per
  // change.
  void Created(ChangeRecord& record);
  void ContentChanged(ChangeRecord& record);
  void PlacementChanged(ChangeRecord& record);
  void ContentAndPlacementChanged(ChangeRecord& record);
  void Removed(std::unique_ptr<ChangeRecord> record);
  void NodeOrderChanged();
  int64_t version() const { return version_; }

 private:
  struct Host {
    ChangeEncoder::Fields fields;
    int64_t version = 0;
    bool needs_snapshot = true;
    std::vector<uint64_t> ended_attempts;
  };

  // In the order in which a host must apply them.
  enum Stage { kNodeRemoves, kNodes, kNamespaces, kObjects, kPodRemoves, kPods, kStages };
  class Packer;

  static Stage StageOf(const ChangeRecord& record);
  void Touch(ChangeRecord& record);
  void Unlink(ChangeRecord& record);
  void DropOldRemoved();
  void CollectWanted();
  std::vector<v1beta1::SyncRequest> Delta(Host& host);

  const ChangeEncoder* const encoder_;
  const size_t max_removed_;
  // Oldest change first.
  ChangeRecord* head_ = nullptr;
  ChangeRecord* tail_ = nullptr;
  int64_t version_ = 1;
  int64_t node_order_version_ = 1;
  // A host behind this version may have missed a removal.
  int64_t forgotten_before_ = 0;
  std::deque<std::unique_ptr<ChangeRecord>> removed_;  // oldest first
  std::vector<const ChangeRecord*> stages_[kStages];   // kept to save allocations
  absl::flat_hash_map<Cursor, Host> hosts_;
  Cursor next_cursor_ = 1;
  ChangeEncoder::Fields wanted_;
};

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_CHANGE_LOG_H_
