#include "shim/host_call_metrics.h"

#include <array>
#include <utility>

namespace outboard::shim {
namespace {

// gRPC's codes: OK to UNAUTHENTICATED. absl::Status reports any other code as UNKNOWN.
constexpr size_t kCodes = 17;

}  // namespace

class HostCallMetrics::Observer final : public hosts::CallObserver {
 public:
  Observer(metrics::Metrics* metrics, std::string host)
      : metrics_(metrics), host_(std::move(host)) {}

  void OnCallEnded(hosts::Call call, absl::StatusCode code, absl::Duration elapsed) override {
    Of& of = calls_[static_cast<size_t>(call)];
    if (of.duration == nullptr)
      of.duration = &metrics_->host_call_duration.With({host_, NameOf(call)});
    metrics::Observe(*of.duration, elapsed);
    metrics::Counter*& count = of.results[static_cast<size_t>(code) % kCodes];
    if (count == nullptr) {
      count = &metrics_->host_calls.With({host_, NameOf(call), absl::StatusCodeToString(code)});
    }
    count->Increment();
  }

  void OnEvaluated(hosts::Call call, absl::Duration evaluation) override {
    Of& of = calls_[static_cast<size_t>(call)];
    if (of.evaluation == nullptr)
      of.evaluation = &metrics_->host_evaluation_duration.With({host_, NameOf(call)});
    metrics::Observe(*of.evaluation, evaluation);
  }

 private:
  // Of one call; null until the first.
  struct Of {
    metrics::Histogram* duration = nullptr;
    metrics::Histogram* evaluation = nullptr;
    std::array<metrics::Counter*, kCodes> results{};
  };
  static const char* NameOf(hosts::Call call) {
    return hosts::kCallNames[static_cast<size_t>(call)];
  }

  metrics::Metrics* const metrics_;
  const std::string host_;
  std::array<Of, hosts::kCallNames.size()> calls_;
};

hosts::CallObserver* HostCallMetrics::Of(const std::string& host) {
  std::unique_ptr<hosts::CallObserver>& observer = observers_[host];
  if (observer == nullptr) observer = std::make_unique<Observer>(metrics_, host);
  return observer.get();
}

}  // namespace outboard::shim
