// One session with the host under test, as a shim would have it.
#ifndef OUTBOARD_SHIM_CONFORMANCE_SESSION_H_
#define OUTBOARD_SHIM_CONFORMANCE_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "shim/conformance/calls.h"
#include "shim/conformance/inline_nodes.h"
#include "shim/conformance/kit.h"
#include "shim/conformance/test_cluster.h"

namespace outboard::conformance {

// How long a host may take over what it does on its own initiative.
inline constexpr absl::Duration kSoon = absl::Seconds(5);

// Opened, it has a complete snapshot on its way to the host; calls at its version wait for it
// there.
//
// Threading: thread-compatible. Lifetime: the kit must outlive it; its stream ends with it.
class Session {
 public:
  explicit Session(const Kit& kit) : kit_(kit), id_(kit.NewSessionId()) {}

  // Connects, configures, and sends the cluster as version `version`.
  absl::Status Open(TestCluster cluster, int64_t version = 1);
  // The steps of Open.
  absl::Status Connect();
  absl::Status Configure();
  void SendSnapshot(TestCluster cluster, int64_t version);
  // A stream of its own in place of the one before.
  void OpenStream();

  const Kit& kit() const { return kit_; }
  const std::string& id() const { return id_; }
  const Channel& channel() const { return channel_; }
  SyncStream& sync() { return *sync_; }
  const TestCluster& cluster() const { return cluster_; }
  // The last that was sent.
  int64_t version() const { return version_; }

  v1alpha1::ConfigureRequest Configuration() const;
  v1alpha1::CallHeader Header(uint64_t attempt) const;
  // Sends changes as the next version. `order`: the slots that are occupied then; empty: as before.
  // Waits until the host has taken in what was sent last. Needed where a new stream begins with a
  // lower version than the old one ended with: until the host has seen the snapshot a call about it
  // is STALE, and rightly.
  absl::Status AwaitTaken() const;
  void SendDelta(std::vector<v1alpha1::Change> changes, const std::vector<uint32_t>& order = {});
  void Send(v1alpha1::SyncRequest request);

  // Adds what a host without a mirror has to be sent; nothing for others.
  template <typename Request>
  void Complete(Request* request) const {
    // Some calls such a host is never asked.
    if constexpr (requires(const std::string& uid) { AddInline(cluster_, uid, request); }) {
      if (is_inline()) AddInline(cluster_, pods_[request->header().attempt_id()], request);
    }
  }
  void Complete(v1alpha1::PreEnqueueRequest* request) const {
    if (is_inline()) AddInline(cluster_, request);
  }
  void Complete(v1alpha1::SortKeysRequest* request) const {
    if (is_inline()) AddInline(cluster_, request);
  }
  bool is_inline() const { return kit_.Can(v1alpha1::INLINE_NODES); }

  template <typename Request>
  auto Call(const Request& request, absl::Duration deadline = kCallDeadline) const {
    return conformance::Call(channel_, request, deadline);
  }
  // A call that the host has to give up in time, which a busy machine may still deliver late: the
  // first answer of a few.
  template <typename Request>
  auto CallWithin(const Request& request, absl::Duration deadline) const {
    auto answer = Call(request, deadline);
    for (int i = 0; i < 4 && answer.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED; ++i)
      answer = Call(request, deadline);
    return answer;
  }
  // Calls with the header of an attempt, at the session's version.
  Answer<v1alpha1::PreFilterResponse> PreFilter(uint64_t attempt, const std::string& uid) const;
  Answer<v1alpha1::FilterResponse> Filter(uint64_t attempt,
                                          v1alpha1::FilterRequest request = {}) const;
  Answer<v1alpha1::PreScoreResponse> PreScore(uint64_t attempt,
                                              const std::vector<uint32_t>& slots) const;
  Answer<v1alpha1::ScoreResponse> Score(uint64_t attempt, const std::vector<uint32_t>& slots) const;
  Answer<v1alpha1::ProbeResponse> Probe() const;
  // Waits until the host says that it is ready at the session's version.
  absl::Status AwaitReady() const;

 private:
  // Those that the user wants on every node.
  void AddLabels(v1alpha1::Node* node) const;

  const Kit& kit_;
  const std::string id_;
  Channel channel_;
  std::unique_ptr<SyncStream> sync_;
  TestCluster cluster_;
  int64_t version_ = 0;
  mutable std::map<uint64_t, std::string> pods_;  // uids by attempt
  bool introduced_ = false;
};

}  // namespace outboard::conformance

#endif  // OUTBOARD_SHIM_CONFORMANCE_SESSION_H_
