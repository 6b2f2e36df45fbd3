#include "shim/diagnostics/attempt_log.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace outboard::diagnostics {
namespace {

// Fixed cost of a record: list node, map entry, allocator overhead.
constexpr size_t kRecordOverhead = 512;

}  // namespace

std::shared_ptr<const AttemptLog::NodeNames> AttemptLog::CurrentNames() {
  const cache::ClusterState& cluster = **cluster_;
  if (names_ != nullptr && names_->generation == cluster.nodes_generation()) return names_;
  auto names = std::make_shared<NodeNames>();
  names->generation = cluster.nodes_generation();
  names->slots = cluster.node_order();
  names->by_slot.resize(cluster.slot_limit());
  names->bytes = names->slots.capacity() * sizeof(uint32_t);
  for (const uint32_t slot : names->slots) {
    names->by_slot[slot] = cluster.NodeAt(slot)->node.name();
    names->bytes += sizeof(std::string) + names->by_slot[slot].capacity();
  }
  names_ = std::move(names);
  return names_;
}

void AttemptLog::OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                             const framework::AlgorithmResult& result,
                             const v1beta1::PlanResponse& response, absl::Duration elapsed) {
  const NodeNames* const old_names = names_.get();
  auto seen = std::make_shared<Seen>();
  seen->names = CurrentNames();
  seen->examined_slots = result.examined_slots;
  seen->feasible_positions = result.feasible_positions;
  seen->totals = result.totals;
  seen->absent_nodes_reason = result.diagnosis.absent_nodes_reason;
  seen->tried_slot = result.tried_slot;
  seen->tried_status = result.tried_status;
  seen->filter = response.evaluation().filter();
  seen->score = response.evaluation().score();
  seen->score_plugins = profile.score_plugins;
  seen->skipped_score_plugins = profile.skipped_score_plugins;
  seen->snapshot_version = result.snapshot_version;
  seen->evaluated_nodes = result.evaluated_nodes;
  seen->feasible_nodes = result.feasible_nodes;
  seen->placed_together = result.placed_together;
  seen->elapsed = elapsed;

  Record record;
  record.pod = pod.key();
  record.uid = pod.uid();
  record.profile = profile.name;
  record.time = absl::Now();
  record.bytes = sizeof(Seen) + seen->examined_slots.size() * sizeof(uint32_t) +
                 seen->feasible_positions.size() * sizeof(uint32_t) +
                 seen->totals.size() * sizeof(int64_t) + seen->filter.SpaceUsedLong() +
                 seen->score.SpaceUsedLong() +
                 seen->score_plugins.size() * sizeof(framework::WeightedPlugin);
  // Names that only this attempt uses so far are charged to it.
  if (old_names != seen->names.get()) record.bytes += seen->names->bytes;
  record.seen = std::move(seen);
  absl::MutexLock lock(&mutex_);
  Append(std::move(record));
}

void AttemptLog::OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                              const std::vector<kube::PodPtr>& victims, size_t to_evict) {
  absl::MutexLock lock(&mutex_);
  Record* record = InProgress(pod);
  if (record == nullptr) return;
  record->nominated_node = node_name;
  size_t bytes = node_name.size();
  for (const kube::PodPtr& victim : victims) {
    record->victims.push_back(victim->key());
    bytes += sizeof(std::string) + record->victims.back().capacity();
  }
  Grow(record, bytes);
}

void AttemptLog::OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                              scheduler::AttemptResult result, const std::string& node_name,
                              const std::string& message, absl::Duration since_attempt_began) {
  absl::MutexLock lock(&mutex_);
  Record* record = InProgress(pod);
  if (record == nullptr) {
    Record made;
    made.pod = pod.key();
    made.uid = pod.uid();
    made.profile = profile;
    made.time = absl::Now();
    record = &Append(std::move(made));
  }
  record->ended = true;
  record->result = result;
  record->node = node_name;
  record->message = message;
  Grow(record, node_name.size() + message.size());
}

AttemptLog::Record* AttemptLog::InProgress(const kube::PodObject& pod) {
  auto it = by_pod_.find(pod.key());
  if (it == by_pod_.end()) return nullptr;
  Record& last = *it->second.back();
  return last.uid == pod.uid() && !last.ended ? &last : nullptr;
}

void AttemptLog::Grow(Record* record, size_t bytes) {
  record->bytes += bytes;
  bytes_ += bytes;
  DropOldest();
}

AttemptLog::Record& AttemptLog::Append(Record record) {
  record.bytes += sizeof(Record) + kRecordOverhead + 2 * record.pod.size() + record.uid.size();
  bytes_ += record.bytes;
  std::deque<Records::iterator>& of_pod = by_pod_[record.pod];
  records_.push_back(std::move(record));
  of_pod.push_back(std::prev(records_.end()));
  if (of_pod.size() > kAttemptsPerPod) Drop(of_pod.front());
  DropOldest();
  return records_.back();
}

void AttemptLog::DropOldest() {
  while (bytes_ > max_bytes_ && records_.size() > 1) Drop(records_.begin());
}

void AttemptLog::Drop(Records::iterator record) {
  // All lists are in global order, so the oldest record is also its pod's oldest.
  auto it = by_pod_.find(record->pod);
  it->second.pop_front();
  if (it->second.empty()) by_pod_.erase(it);
  bytes_ -= record->bytes;
  records_.erase(record);
}

absl::StatusOr<std::string> AttemptLog::Explain(const std::string& pod_key) const {
  std::vector<Record> newest_first;
  {
    absl::MutexLock lock(&mutex_);
    auto it = by_pod_.find(pod_key);
    if (it == by_pod_.end()) {
      return absl::NotFoundError(
          absl::StrCat("no recorded attempt at pod \"", pod_key,
                       "\": it was not tried since this process started, belongs to another "
                       "scheduler, or newer attempts displaced its record"));
    }
    for (auto record = it->second.rbegin(); record != it->second.rend(); ++record)
      newest_first.push_back(**record);
  }
  return Render(pod_key, newest_first);
}

std::string AttemptLog::Render(const std::string& pod_key,
                               const std::vector<Record>& newest_first) {
  nlohmann::ordered_json all;
  all["pod"] = pod_key;
  all["attempts"] = nlohmann::ordered_json::array();
  for (const Record& record : newest_first) {
    PodReport report;
    report.pod = record.pod;
    report.result = record.ended ? ResultName(record.result) : "in progress";
    report.node = record.node;
    report.message = record.message;
    report.nominated_node = record.nominated_node;
    report.victims = record.victims;
    if (record.seen != nullptr) {
      const Seen& seen = *record.seen;
      FillNodes(
          {seen.examined_slots, seen.feasible_positions, seen.totals, seen.absent_nodes_reason,
           seen.tried_slot, seen.tried_status, seen.filter, seen.score, seen.score_plugins,
           seen.skipped_score_plugins},
          seen.names->slots,
          [&](uint32_t slot) -> const std::string& { return seen.names->by_slot[slot]; }, &report);
    }
    nlohmann::ordered_json attempt = ToJson(report);
    attempt["uid"] = record.uid;
    attempt["profile"] = record.profile;
    attempt["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", record.time, absl::UTCTimeZone());
    if (record.seen != nullptr) {
      attempt["snapshotVersion"] = record.seen->snapshot_version;
      attempt["nodes"] = record.seen->names->slots.size();
      attempt["evaluatedNodes"] = record.seen->evaluated_nodes;
      attempt["feasibleNodes"] = record.seen->feasible_nodes;
      if (record.seen->placed_together) attempt["placedTogether"] = true;
      attempt["algorithmMicros"] = absl::ToInt64Microseconds(record.seen->elapsed);
    }
    all["attempts"].push_back(std::move(attempt));
  }
  return Dump(all) + "\n";
}

size_t AttemptLog::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

size_t AttemptLog::attempts() const {
  absl::MutexLock lock(&mutex_);
  return records_.size();
}

}  // namespace outboard::diagnostics
