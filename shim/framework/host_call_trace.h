// The questions to one host at each point of an attempt and its answers, kept for a ShadowObserver.
#ifndef OUTBOARD_SHIM_FRAMEWORK_HOST_CALL_TRACE_H_
#define OUTBOARD_SHIM_FRAMEWORK_HOST_CALL_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/score.pb.h"

namespace outboard::framework {

// A point is absent if the host was not asked there or its answer was not usable.
struct HostCallTrace {
  struct Filter {
    v1beta1::NodeSearch search;
    std::vector<uint32_t> slots;  // the list of nodes, in the order of examination
    v1beta1::FilterResponse response;
  };

  size_t host = 0;  // index among the attempt's hosts
  std::optional<v1beta1::PreFilterResponse> pre_filter;
  // Only late hosts get several questions at this point; this is the first.
  std::optional<Filter> filter;
  v1beta1::NodeSet scored;  // the nodes of PreScore and Score
  std::optional<v1beta1::PreScoreResponse> pre_score;
  std::optional<v1beta1::ScoreResponse> score;
};

// Records the calls to the hosts that an observer wants to see.
//
// Threading: thread-compatible.
// Lifetime: one attempt.
class CallRecorder {
 public:
  void Want(size_t host) { exchanges_.emplace_back().host = host; }
  bool empty() const { return exchanges_.empty(); }

  // The next question; `candidates` as in ExtensionPointRunner::Filter.
  void Asks(const v1beta1::NodeSearch& search, absl::Span<const uint32_t> candidates);
  void Asks(const v1beta1::NodeSet& scored) { scored_ = scored; }
  // A host's answer to it.
  void Answers(size_t host, const v1beta1::PreFilterResponse& answer);
  void Answers(size_t host, const v1beta1::FilterResponse& answer);
  void Answers(size_t host, const v1beta1::PreScoreResponse& answer);
  void Answers(size_t host, const v1beta1::ScoreResponse& answer);

  const std::vector<HostCallTrace>& exchanges() const { return exchanges_; }

 private:
  HostCallTrace* Find(size_t host);

  std::vector<HostCallTrace> exchanges_;
  HostCallTrace::Filter filter_;
  v1beta1::NodeSet scored_;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_HOST_CALL_TRACE_H_
