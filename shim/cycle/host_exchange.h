// What a host was asked point by point in one attempt, and what it answered, kept for a witness.
#ifndef OUTBOARD_SHIM_CYCLE_HOST_EXCHANGE_H_
#define OUTBOARD_SHIM_CYCLE_HOST_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "proto/outboard/v1alpha1/filter.pb.h"
#include "proto/outboard/v1alpha1/score.pb.h"

namespace outboard::cycle {

// A point is absent where the host was not asked, or gave no answer that could be used.
struct HostExchange {
  struct Filter {
    v1alpha1::FilterRequest request;  // its header is of no account
    std::vector<uint32_t> slots;      // the list that it is about, as it is examined
    v1alpha1::FilterResponse response;
  };

  size_t host = 0;  // index among the attempt's hosts
  std::optional<v1alpha1::PreFilterResponse> pre_filter;
  // Of several questions at this point, which only hosts that are asked late have, the first.
  std::optional<Filter> filter;
  v1alpha1::NodeSet scored;  // what PreScore and Score were about
  std::optional<v1alpha1::PreScoreResponse> pre_score;
  std::optional<v1alpha1::ScoreResponse> score;
};

// Keeps the exchanges with those hosts that somebody wants to know about.
//
// Threading: thread-compatible. Lifetime: of one attempt.
class ExchangeRecorder {
 public:
  void Want(size_t host) { exchanges_.emplace_back().host = host; }
  bool empty() const { return exchanges_.empty(); }

  // What is asked next; `candidates` as in HostPanel::Filter.
  void Asks(const v1alpha1::FilterRequest& request, absl::Span<const uint32_t> candidates);
  void Asks(const v1alpha1::NodeSet& scored) { scored_ = scored; }
  // What a host answered to that.
  void Answers(size_t host, const v1alpha1::PreFilterResponse& answer);
  void Answers(size_t host, const v1alpha1::FilterResponse& answer);
  void Answers(size_t host, const v1alpha1::PreScoreResponse& answer);
  void Answers(size_t host, const v1alpha1::ScoreResponse& answer);

  const std::vector<HostExchange>& exchanges() const { return exchanges_; }

 private:
  HostExchange* Find(size_t host);

  std::vector<HostExchange> exchanges_;
  HostExchange::Filter filter_;
  v1alpha1::NodeSet scored_;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_HOST_EXCHANGE_H_
