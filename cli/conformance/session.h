// One session with the host under test, like a shim's.
#ifndef OUTBOARD_CLI_CONFORMANCE_SESSION_H_
#define OUTBOARD_CLI_CONFORMANCE_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/conformance/calls.h"
#include "cli/conformance/inline_nodes.h"
#include "cli/conformance/kit.h"
#include "cli/conformance/node_columns.h"
#include "cli/conformance/test_cluster.h"

namespace outboard::conformance {

// Time limit for the host's own actions.
inline constexpr absl::Duration kSoon = absl::Seconds(5);
// Why cases about versions are skipped.
inline constexpr char kIgnoresVersions[] = "the host has ACKS_EVERY_VERSION and ignores versions";

// Open sends a complete snapshot; calls at its version wait for it, usually in the host.
//
// Threading: thread-compatible.
// Lifetime: the kit must outlive it. The destructor ends the stream.
class Session {
 public:
  explicit Session(const Kit& kit) : kit_(kit), id_(kit.NewSessionId()) {}

  // Connects, configures, and sends the cluster as version `version`.
  absl::Status Open(TestCluster cluster, int64_t version = 1);
  // The steps of Open.
  absl::Status Connect();
  absl::Status Configure();
  void SendSnapshot(TestCluster cluster, int64_t version);
  // Replaces the stream.
  void OpenStream();

  const Kit& kit() const { return kit_; }
  const std::string& id() const { return id_; }
  const Channel& channel() const { return channel_; }
  SyncStream& sync() { return *sync_; }
  const TestCluster& cluster() const { return cluster_; }
  // The last version sent.
  int64_t version() const { return version_; }

  v1beta1::ConfigureRequest Configuration() const;
  // For calls at exactly the session's version.
  v1beta1::CallHeader Header(uint64_t attempt) const;
  // For calls at this version or a later one.
  v1beta1::CallHeader HeaderFrom(uint64_t attempt) const;
  // As the shim does before each call to a host that acknowledges every version. A missing
  // acknowledgement fails a case of its own, and not this one.
  void AwaitAcknowledgement() const {
    if (acks_every_version() && sync_ != nullptr) sync_->AwaitAck(version_, kSoon);
  }
  bool acks_every_version() const {
    return kit_.Can(v1beta1::CAPABILITY_ACKS_EVERY_VERSION) && !is_inline();
  }
  // Waits until the host has applied the last message. Needed if a new stream begins with a lower
  // version than the last one of the old stream: until the host has the snapshot, a call at its
  // version is rightly STALE.
  absl::Status AwaitTaken() const;
  // Sends changes as the next version. `order`: the occupied slots after them; empty: unchanged.
  void SendDelta(std::vector<v1beta1::Change> changes, const std::vector<uint32_t>& order = {});
  void Send(v1beta1::SyncRequest request);

  // Adds pods and nodes for a host without a cache.
  template <typename Request>
  void Complete(Request* request) const {
    // Such a host never gets some calls.
    if constexpr (requires(const std::string& uid) { AddInline(cluster_, uid, request); }) {
      if (is_inline()) AddInline(cluster_, PodOf(*request), request);
    }
    if constexpr (requires { request->mutable_node_columns(); }) {
      if (has_columns()) ReplaceByColumns(NamedBy(kit_.info()), request);
    }
  }
  void Complete(v1beta1::PreEnqueueRequest* request) const {
    if (is_inline()) AddInline(cluster_, request);
  }
  void Complete(v1beta1::SortKeysRequest* request) const {
    if (is_inline()) AddInline(cluster_, request);
  }
  // The uid in the request; requests from Filter to Score have only the attempt.
  template <typename Request>
  std::string PodOf(const Request& request) const {
    if constexpr (requires { request.pod_uid(); }) {
      return request.pod_uid();
    } else {
      return pods_[request.header().attempt_id()];
    }
  }
  bool is_inline() const { return kit_.Can(v1beta1::CAPABILITY_INLINE_NODES); }
  // Nodes come in columns.
  bool has_columns() const { return is_inline() && kit_.Can(v1beta1::CAPABILITY_NODE_COLUMNS); }

  template <typename Request>
  auto Call(const Request& request, absl::Duration deadline = kCallDeadline) const {
    if constexpr (requires { request.header(); }) AwaitAcknowledgement();
    return conformance::Call(channel_, request, deadline);
  }
  // For calls that the host must end within the deadline. A busy machine may deliver the answer
  // late: retries a few times, each time with twice the deadline.
  template <typename Request>
  auto CallWithin(const Request& request, absl::Duration deadline) const {
    auto answer = Call(request, deadline);
    for (int i = 0; i < 4 && answer.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED; ++i)
      answer = Call(request, deadline *= 2);
    return answer;
  }
  // Calls at the session's version, with the header of an attempt.
  Answer<v1beta1::PreFilterResponse> PreFilter(uint64_t attempt, const std::string& uid) const;
  // Without a number all nodes are evaluated, and on an inline host in any case.
  Answer<v1beta1::FilterResponse> Filter(uint64_t attempt, v1beta1::NodeSearch search = {}) const;
  Answer<v1beta1::FilterResponse> Simulate(uint64_t attempt,
                                           v1beta1::NodeSimulation simulation) const;
  Answer<v1beta1::PreScoreResponse> PreScore(uint64_t attempt,
                                             const std::vector<uint32_t>& slots) const;
  Answer<v1beta1::ScoreResponse> Score(uint64_t attempt, const std::vector<uint32_t>& slots) const;
  Answer<v1beta1::ProbeResponse> Probe() const;
  // Waits until Probe returns READY at the session's version.
  absl::Status AwaitReady() const;

 private:
  // Follows nominations, as the shim does.
  void FollowNominations(const v1beta1::SyncRequest& request);
  // Adds to a question the nodes of `slots` that are evaluated twice for the attempt's pod.
  template <typename Question>
  void NameNominated(uint64_t attempt, const std::set<uint32_t>& slots, Question* question) const;
  // The labels of --node-label.
  void AddLabels(v1beta1::Node* node) const;

  const Kit& kit_;
  const std::string id_;
  Channel channel_;
  std::unique_ptr<SyncStream> sync_;
  TestCluster cluster_;
  std::map<std::string, int32_t> priorities_;    // by uid of the pods that the host has
  std::map<std::string, uint32_t> nominations_;  // slots by uid
  int64_t version_ = 0;
  mutable std::map<uint64_t, std::string> pods_;  // uids by attempt
  bool introduced_ = false;
};

// Complete requests of an attempt about these nodes, after Session::PreFilter.
v1beta1::FilterRequest FilterOf(const Session& session, uint64_t attempt,
                                const std::vector<uint32_t>& slots);
template <typename Request>
Request AboutNodes(const Session& session, uint64_t attempt, const std::vector<uint32_t>& slots) {
  Request request;
  *request.mutable_header() = session.Header(attempt);
  request.mutable_nodes()->mutable_slots()->Add(slots.begin(), slots.end());
  session.Complete(&request);
  return request;
}

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_SESSION_H_
