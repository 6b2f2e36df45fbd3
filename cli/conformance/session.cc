#include "cli/conformance/session.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/short_names.h"
#include "shim/framework/answer_check.h"

namespace outboard::conformance {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

namespace {

constexpr absl::Duration kProbeInterval = absl::Milliseconds(20);

// With bitmaps, as a shim reads it. What cannot be read stays as it is; CheckFilter reports it.
Answer<FilterResponse> Expanded(Answer<FilterResponse> answer) {
  framework::ExpandVerdicts(&answer.message).IgnoreError();
  return answer;
}

}  // namespace

absl::Status Session::Connect() {
  absl::StatusOr<Channel> channel = kit_.Dial();
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  return absl::OkStatus();
}

ConfigureRequest Session::Configuration() const {
  ConfigureRequest request = kit_.configuration();
  request.set_session_id(id_);
  return request;
}

absl::Status Session::Configure() {
  const auto answer = Call(Configuration());
  CONFORMANCE_TRY(ExpectOk(answer));
  const ConfigProblem* const error = FirstError(answer.message);
  if (error == nullptr) return absl::OkStatus();
  return Wrong(kConfigureInForce,
               absl::StrCat("an accepted configuration now has a problem: ", error->message()));
}

void Session::OpenStream() {
  sync_ = std::make_unique<SyncStream>(channel_);
  introduced_ = false;
}

void Session::AddLabels(Node* node) const {
  for (const auto& [key, value] : kit_.options().node_labels)
    (*node->mutable_labels())[key] = value;
}

void Session::Send(SyncRequest request) {
  for (Change& change : *request.mutable_changes()) {
    if (change.has_node_upsert()) AddLabels(change.mutable_node_upsert()->mutable_node());
  }
  if (!std::exchange(introduced_, true)) request.set_session_id(id_);
  version_ = std::max(version_, request.version());
  FollowNominations(request);
  sync_->Send(request);
}

void Session::FollowNominations(const SyncRequest& request) {
  if (request.phase() == SyncRequest::PHASE_SNAPSHOT_BEGIN) {
    priorities_.clear();
    nominations_.clear();
  }
  for (const Change& change : request.changes()) {
    if (change.has_pod_upsert()) {
      const Pod& pod = change.pod_upsert().pod();
      priorities_[pod.uid()] = pod.priority();
      if (!pod.node_name().empty()) nominations_.erase(pod.uid());
    } else if (change.has_pod_remove()) {
      priorities_.erase(change.pod_remove().uid());
      nominations_.erase(change.pod_remove().uid());
    } else if (change.has_pod_placement()) {
      const PodPlacement& placement = change.pod_placement();
      nominations_.erase(placement.uid());
      if (placement.state() == PLACEMENT_STATE_NOMINATED)
        nominations_[placement.uid()] = placement.slot();
    }
  }
}

template <typename Question>
void Session::NameNominated(uint64_t attempt, const std::set<uint32_t>& slots,
                            Question* question) const {
  const auto pod = pods_.find(attempt);
  if (pod == pods_.end() || !priorities_.contains(pod->second)) return;
  std::map<uint32_t, std::vector<std::string>> nominated;
  for (const auto& [uid, slot] : nominations_) {
    if (uid != pod->second && slots.contains(slot) &&
        priorities_.at(uid) >= priorities_.at(pod->second))
      nominated[slot].push_back(uid);
  }
  for (const auto& [slot, uids] : nominated) {
    NominatedPods* const node = question->add_nominated();
    node->set_slot(slot);
    node->mutable_pod_uids()->Assign(uids.begin(), uids.end());
  }
}

void Session::SendSnapshot(TestCluster cluster, int64_t version) {
  cluster_ = std::move(cluster);
  version_ = version;
  for (SyncRequest& chunk : MakeSnapshot(cluster_, version)) Send(std::move(chunk));
}

absl::Status Session::AwaitTaken() const {
  const absl::Time give_up = absl::Now() + kSoon;
  do {
    if (sync_->AwaitAck(version_, kProbeInterval)) return absl::OkStatus();
    // Missing acknowledgements fail another case.
    const Answer<ProbeResponse> answer = Probe();
    if (answer.status.ok() && answer.message.snapshot_version() == version_)
      return absl::OkStatus();
    absl::SleepFor(kProbeInterval);
  } while (absl::Now() < give_up);
  return Late(
      Wrong(kAckSnapshot, absl::StrCat("version ", version_, " was not acknowledged within ",
                                       absl::FormatDuration(kSoon))));
}

absl::Status Session::Open(TestCluster cluster, int64_t version) {
  CONFORMANCE_TRY(Connect());
  CONFORMANCE_TRY(Configure());
  if (is_inline()) {
    cluster_ = std::move(cluster);
    version_ = version;
    for (Node& node : cluster_.nodes) AddLabels(&node);
    return absl::OkStatus();
  }
  OpenStream();
  SendSnapshot(std::move(cluster), version);
  return absl::OkStatus();
}

CallHeader Session::Header(uint64_t attempt) const {
  CallHeader header;
  header.set_session_id(id_);
  header.set_attempt_id(attempt);
  header.set_exact_version(version_);
  header.set_profile(kProfile);
  return header;
}

CallHeader Session::HeaderFrom(uint64_t attempt) const {
  CallHeader header = Header(attempt);
  header.set_min_version(version_);
  return header;
}

void Session::SendDelta(std::vector<Change> changes, const std::vector<uint32_t>& order) {
  SyncRequest request;
  request.set_phase(SyncRequest::PHASE_DELTA);
  request.set_version(version_ + 1);
  for (const Change& change : changes) {
    if (!change.has_node_upsert()) continue;
    const uint32_t slot = change.node_upsert().slot();
    if (slot >= cluster_.nodes.size()) cluster_.nodes.resize(slot + 1);
    cluster_.nodes[slot] = change.node_upsert().node();
  }
  request.mutable_changes()->Add(changes.begin(), changes.end());
  if (!order.empty()) *request.mutable_node_order() = OrderOf(order);
  Send(std::move(request));
}

Answer<PreFilterResponse> Session::PreFilter(uint64_t attempt, const std::string& uid) const {
  pods_[attempt] = uid;
  // Such a host gets calls only for its plugins' points.
  if (is_inline() && !kit_.Has(EXTENSION_POINT_PRE_FILTER)) return {};
  PreFilterRequest request;
  *request.mutable_header() = Header(attempt);
  request.set_pod_uid(uid);
  Complete(&request);
  return Call(request);
}

Answer<FilterResponse> Session::Filter(uint64_t attempt, NodeSearch search) const {
  FilterRequest request;
  *request.mutable_header() = Header(attempt);
  const std::vector<uint32_t> all = FirstSlots(static_cast<int>(cluster_.nodes.size()));
  if (is_inline() && !search.has_nodes())
    search.mutable_nodes()->mutable_slots()->Add(all.begin(), all.end());
  const size_t count =
      search.has_nodes() ? static_cast<size_t>(search.nodes().slots_size()) : all.size();
  if (is_inline() || search.num_feasible_nodes_to_find() == 0)
    search.set_num_feasible_nodes_to_find(static_cast<uint32_t>(std::max<size_t>(count, 1)));
  if (search.has_nodes()) {
    const auto& slots = search.nodes().slots();
    NameNominated(attempt, std::set<uint32_t>(slots.begin(), slots.end()), &search);
  } else {
    NameNominated(attempt, std::set<uint32_t>(all.begin(), all.end()), &search);
  }
  *request.mutable_search() = std::move(search);
  Complete(&request);
  return Expanded(Call(request));
}

Answer<FilterResponse> Session::Simulate(uint64_t attempt, NodeSimulation simulation) const {
  FilterRequest request;
  *request.mutable_header() = Header(attempt);
  std::set<uint32_t> slots;
  for (const SimulatedNode& node : simulation.nodes()) slots.insert(node.slot());
  NameNominated(attempt, slots, &simulation);
  *request.mutable_simulation() = std::move(simulation);
  Complete(&request);
  return Expanded(Call(request));
}

Answer<PreScoreResponse> Session::PreScore(uint64_t attempt,
                                           const std::vector<uint32_t>& slots) const {
  return Call(AboutNodes<PreScoreRequest>(*this, attempt, slots));
}

Answer<ScoreResponse> Session::Score(uint64_t attempt, const std::vector<uint32_t>& slots) const {
  return Call(AboutNodes<ScoreRequest>(*this, attempt, slots));
}

FilterRequest FilterOf(const Session& session, uint64_t attempt,
                       const std::vector<uint32_t>& slots) {
  FilterRequest request;
  *request.mutable_header() = session.Header(attempt);
  NodeSearch* const search = request.mutable_search();
  search->mutable_nodes()->mutable_slots()->Add(slots.begin(), slots.end());
  search->set_num_feasible_nodes_to_find(static_cast<uint32_t>(slots.size()));
  session.Complete(&request);
  return request;
}

Answer<ProbeResponse> Session::Probe() const {
  ProbeRequest request;
  request.set_session_id(id_);
  return Call(request);
}

absl::Status Session::AwaitReady() const {
  const absl::Time give_up = absl::Now() + kSoon;
  Answer<ProbeResponse> answer = Probe();
  // The host does not push its readiness; a shim polls too.
  while (
      answer.status.ok() && absl::Now() < give_up &&
      (answer.message.state() != ProbeResponse::STATE_READY ||
       (answer.message.snapshot_version() != 0 && answer.message.snapshot_version() < version_))) {
    absl::SleepFor(kProbeInterval);
    answer = Probe();
  }
  CONFORMANCE_TRY(ExpectOk(answer));
  if (answer.message.state() == ProbeResponse::STATE_READY) return absl::OkStatus();
  return Late(Wrong(
      kProbeReady, absl::StrCat("5 s after a complete snapshot Probe returns ",
                                ShortName(answer.message.state()), ": ", answer.message.reason())));
}

}  // namespace outboard::conformance
