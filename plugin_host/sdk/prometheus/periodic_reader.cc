#include "plugin_host/sdk/prometheus/periodic_reader.h"

#include <glog/logging.h>

#include <iterator>
#include <utility>

#include "absl/time/clock.h"

namespace outboard::prometheus {

const char* PeriodicReader::NameOf(Result result) {
  static constexpr const char* kNames[] = {"ok",        "unreachable", "timeout",
                                           "status",    "too_large",   "token",
                                           "malformed", "error",       "no_samples"};
  static_assert(std::size(kNames) == static_cast<size_t>(Result::kCount));
  return kNames[static_cast<size_t>(result)];
}

PeriodicReader::PeriodicReader(ReadOptions options, ReportOptions report, sdk::Metrics* metrics,
                               OnSamples on_samples)
    : options_(std::move(options)),
      report_(std::move(report)),
      on_samples_(std::move(on_samples)),
      client_(options_.server) {
  for (int i = 0; i < static_cast<int>(Result::kCount); ++i) {
    std::vector<std::string> values = report_.label_values;
    values.emplace_back(NameOf(static_cast<Result>(i)));
    reads_.push_back(metrics->NewCounter(report_.metric, values));
  }
  thread_ = std::thread([this] { Run(); });
}

PeriodicReader::~PeriodicReader() {
  client_.Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void PeriodicReader::Run() {
  while (true) {
    const absl::Time next = absl::Now() + options_.period;
    ReadOnce();
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithDeadline(absl::Condition(&stopped_), next);
    if (stopped_) return;
  }
}

void PeriodicReader::ReadOnce() {
  const absl::Time asked = absl::Now();
  const Answer answer = client_.Query(options_.query, options_.lookback);
  switch (answer.failure) {
    case Failure::kNone:
      break;
    case Failure::kStopped:
      return;
    case Failure::kUnreachable:
      return Ended(Result::kUnreachable, answer.detail);
    case Failure::kTimeout:
      return Ended(Result::kTimeout, answer.detail);
    case Failure::kStatus:
      return Ended(Result::kStatus, answer.detail);
    case Failure::kTooLarge:
      return Ended(Result::kTooLarge, answer.detail);
    case Failure::kToken:
      return Ended(Result::kToken, answer.detail);
  }
  absl::StatusOr<std::vector<Sample>> samples = ParseSamples(answer.body);
  if (!samples.ok()) {
    const bool told = samples.status().code() == absl::StatusCode::kAborted;
    return Ended(told ? Result::kError : Result::kMalformed, samples.status().message());
  }
  const absl::Status status = on_samples_(asked, *std::move(samples));
  Ended(status.ok() ? Result::kOk : Result::kNoSamples, status.message());
}

void PeriodicReader::Ended(Result result, absl::string_view detail) {
  reads_[static_cast<size_t>(result)]->Add();
  const std::string& address = options_.server.address;
  if (result == Result::kOk) {
    if (failing_) {
      LOG(INFO) << report_.plugin << ": " << report_.what << " from " << address
                << " is available again";
    }
    failing_ = false;
    return;
  }
  if (std::exchange(failing_, true)) return;
  LOG(WARNING) << report_.plugin << ": reading " << report_.what << " from " << address
               << " failed (" << NameOf(result) << "): " << detail << "; " << report_.consequence
               << "; further failures are only counted";
}

}  // namespace outboard::prometheus
