#include "shim/cache/change_log.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace outboard::cache {

using v1beta1::Change;
using v1beta1::SyncRequest;

// Packs the changes of a DELTA into as few messages as the limit allows.
class ChangeLog::Packer {
 public:
  // All messages but the last carry `before`, the last `after`.
  Packer(int64_t before, int64_t after) : before_(before), after_(after) { Start(); }

  void Add(Change&& change) {
    const size_t size = change.ByteSizeLong() + 8;  // tag and length
    Reserve(size);
    *requests_.back().add_changes() = std::move(change);
  }
  void SetNodeOrder(v1beta1::NodeOrder&& order) {
    Reserve(order.ByteSizeLong() + 8);
    *requests_.back().mutable_node_order() = std::move(order);
  }
  void SetEndedAttempts(const std::vector<uint64_t>& attempts) {
    Reserve(attempts.size() * 10);
    requests_.back().mutable_ended_attempts()->Add(attempts.begin(), attempts.end());
  }
  std::vector<SyncRequest> Take() {
    requests_.back().set_version(after_);
    return std::move(requests_);
  }

 private:
  // Session, version and phase.
  static constexpr size_t kOverhead = 128;

  void Start() {
    if (!requests_.empty()) requests_.back().set_version(before_);
    requests_.emplace_back();
    requests_.back().set_phase(SyncRequest::PHASE_DELTA);
    bytes_ = kOverhead;
  }
  void Reserve(size_t size) {
    if (bytes_ > kOverhead && bytes_ + size > kMaxMessageBytes) Start();
    bytes_ += size;
  }

  const int64_t before_;
  const int64_t after_;
  std::vector<SyncRequest> requests_;
  size_t bytes_ = 0;
};

ChangeLog::ChangeLog(const ChangeEncoder* encoder, size_t max_removed)
    : encoder_(encoder), max_removed_(max_removed) {}

ChangeLog::~ChangeLog() = default;

ChangeLog::Cursor ChangeLog::AddHost(ChangeEncoder::Fields fields) {
  const Cursor cursor = next_cursor_++;
  hosts_[cursor].fields = std::move(fields);
  CollectWanted();
  return cursor;
}

void ChangeLog::RemoveHost(Cursor cursor) {
  hosts_.erase(cursor);
  CollectWanted();
  DropOldRemoved();
}

void ChangeLog::CollectWanted() {
  wanted_ = ChangeEncoder::Fields();
  for (const auto& [cursor, host] : hosts_) wanted_.Add(host.fields);
}

void ChangeLog::Resync(Cursor cursor) {
  const auto it = hosts_.find(cursor);
  if (it != hosts_.end()) it->second.needs_snapshot = true;
}

void ChangeLog::EndAttempt(Cursor cursor, uint64_t attempt_id) {
  const auto it = hosts_.find(cursor);
  if (it != hosts_.end()) it->second.ended_attempts.push_back(attempt_id);
}

int64_t ChangeLog::VersionOf(Cursor cursor) const {
  const auto it = hosts_.find(cursor);
  return it == hosts_.end() ? 0 : it->second.version;
}

bool ChangeLog::HasChanges(Cursor cursor) const {
  const auto it = hosts_.find(cursor);
  if (it == hosts_.end()) return false;
  const Host& host = it->second;
  return host.needs_snapshot || !host.ended_attempts.empty() || host.version < version_;
}

void ChangeLog::Unlink(ChangeRecord& record) {
  (record.previous == nullptr ? head_ : record.previous->next) = record.next;
  (record.next == nullptr ? tail_ : record.next->previous) = record.previous;
  record.previous = record.next = nullptr;
}

void ChangeLog::Touch(ChangeRecord& record) {
  if (record.changed != 0) Unlink(record);
  record.changed = ++version_;
  record.previous = tail_;
  (tail_ == nullptr ? head_ : tail_->next) = &record;
  tail_ = &record;
}

void ChangeLog::Created(ChangeRecord& record) {
  Touch(record);
  record.created = record.content = record.placement = version_;
}

void ChangeLog::ContentChanged(ChangeRecord& record) {
  Touch(record);
  record.content = version_;
}

void ChangeLog::PlacementChanged(ChangeRecord& record) {
  Touch(record);
  record.placement = version_;
}

void ChangeLog::ContentAndPlacementChanged(ChangeRecord& record) {
  Touch(record);
  record.content = record.placement = version_;
}

void ChangeLog::Removed(std::unique_ptr<ChangeRecord> record) {
  Touch(*record);
  record->removed = true;
  removed_.push_back(std::move(record));
  if (removed_.size() > max_removed_ || hosts_.empty()) DropOldRemoved();
}

void ChangeLog::NodeOrderChanged() { node_order_version_ = ++version_; }

void ChangeLog::DropOldRemoved() {
  int64_t needed_after = std::numeric_limits<int64_t>::max();
  for (const auto& [cursor, host] : hosts_) {
    if (!host.needs_snapshot) needed_after = std::min(needed_after, host.version);
  }
  while (!removed_.empty()) {
    ChangeRecord& oldest = *removed_.front();
    if (oldest.changed > needed_after && removed_.size() <= max_removed_) break;
    forgotten_before_ = oldest.changed;
    Unlink(oldest);
    removed_.pop_front();
  }
}

ChangeLog::Stage ChangeLog::StageOf(const ChangeRecord& record) {
  switch (record.kind) {
    case ChangeKind::kNode:
      return record.removed ? kNodeRemoves : kNodes;
    case ChangeKind::kNamespace:
      return kNamespaces;
    case ChangeKind::kObject:
      return kObjects;
    case ChangeKind::kPod:
      break;
  }
  return record.removed ? kPodRemoves : kPods;
}

std::vector<SyncRequest> ChangeLog::TakeChanges(Cursor cursor) {
  const auto it = hosts_.find(cursor);
  if (it == hosts_.end()) return {};
  Host& host = it->second;
  std::vector<SyncRequest> requests;
  if (host.needs_snapshot || host.version < forgotten_before_) {
    const std::unique_ptr<Snapshot> snapshot = TakeSnapshot(cursor);
    while (auto request = snapshot->Next(kMaxMessageBytes)) requests.push_back(*std::move(request));
  } else if (host.version < version_ || !host.ended_attempts.empty()) {
    requests = Delta(host);
  }
  if (!removed_.empty()) DropOldRemoved();
  return requests;
}

std::vector<SyncRequest> ChangeLog::Delta(Host& host) {
  for (auto& stage : stages_) stage.clear();
  for (const ChangeRecord* r = tail_; r != nullptr && r->changed > host.version; r = r->previous) {
    stages_[StageOf(*r)].push_back(r);
  }
  Packer packer(host.version, version_);
  bool any = false;
  std::vector<Change> changes;
  for (const auto& stage : stages_) {
    for (auto r = stage.rbegin(); r != stage.rend(); ++r) {
      encoder_->Encode(**r, host.version, host.fields, &changes);
      for (Change& change : changes) packer.Add(std::move(change));
      any = any || !changes.empty();
      changes.clear();
    }
  }
  if (node_order_version_ > host.version) {
    v1beta1::NodeOrder order;
    encoder_->FillNodeOrder(&order);
    packer.SetNodeOrder(std::move(order));
    any = true;
  }
  if (!host.ended_attempts.empty()) {
    packer.SetEndedAttempts(host.ended_attempts);
    host.ended_attempts.clear();
    any = true;
  }
  // Objects that were added and removed between two deltas need no change; the host's version is as
  // good as ours.
  if (!any) return {};
  host.version = version_;
  return packer.Take();
}

std::unique_ptr<Snapshot> ChangeLog::TakeSnapshot(Cursor cursor) {
  const auto it = hosts_.find(cursor);
  if (it == hosts_.end()) return nullptr;
  Host& host = it->second;
  host.version = version_;
  host.needs_snapshot = false;
  auto snapshot = std::make_unique<Snapshot>(version_, encoder_->Capture(host.fields), host.fields,
                                             std::exchange(host.ended_attempts, {}));
  if (!removed_.empty()) DropOldRemoved();
  return snapshot;
}

}  // namespace outboard::cache
