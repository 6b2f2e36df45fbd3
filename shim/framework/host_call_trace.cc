#include "shim/framework/host_call_trace.h"

namespace outboard::framework {

HostCallTrace* CallRecorder::Find(size_t host) {
  for (HostCallTrace& exchange : exchanges_) {
    if (exchange.host == host) return &exchange;
  }
  return nullptr;
}

void CallRecorder::Asks(const v1beta1::NodeSearch& search, absl::Span<const uint32_t> candidates) {
  filter_.search = search;
  filter_.slots.clear();
  for (size_t i = 0; i < candidates.size(); ++i)
    filter_.slots.push_back(candidates[(search.start_offset() + i) % candidates.size()]);
}

void CallRecorder::Answers(size_t host, const v1beta1::PreFilterResponse& answer) {
  if (HostCallTrace* exchange = Find(host)) exchange->pre_filter = answer;
}

void CallRecorder::Answers(size_t host, const v1beta1::FilterResponse& answer) {
  HostCallTrace* const exchange = Find(host);
  if (exchange == nullptr || exchange->filter.has_value()) return;
  exchange->filter = filter_;
  exchange->filter->response = answer;
}

void CallRecorder::Answers(size_t host, const v1beta1::PreScoreResponse& answer) {
  HostCallTrace* const exchange = Find(host);
  if (exchange == nullptr) return;
  exchange->scored = scored_;
  exchange->pre_score = answer;
}

void CallRecorder::Answers(size_t host, const v1beta1::ScoreResponse& answer) {
  HostCallTrace* const exchange = Find(host);
  if (exchange == nullptr) return;
  exchange->scored = scored_;
  exchange->score = answer;
}

}  // namespace outboard::framework
