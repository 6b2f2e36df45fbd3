// A Prometheus that answers what a test sets: valid, invalid, late, partial, or nothing.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_TESTING_FAKE_PROMETHEUS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_TESTING_FAKE_PROMETHEUS_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "plugin_host/sdk/metrics.h"

namespace outboard::prometheus::testing {

// An HTTP answer with this body.
std::string Ok(const std::string& body);
// An HTTP answer with these samples, each as SampleJson writes it, separated by commas.
std::string SamplesAnswer(const std::string& samples);
// `labels` is the inside of a JSON object.
std::string SampleJson(const std::string& labels, const std::string& value);

// Answers requests one by one with the set answer; then closes the connection, or keeps it open if
// the answer is empty.
//
// Threading: thread-safe.
// Lifetime: serves from construction to destruction.
// Errors: fail the test.
class FakePrometheus {
 public:
  FakePrometheus();
  ~FakePrometheus();
  FakePrometheus(const FakePrometheus&) = delete;
  FakePrometheus& operator=(const FakePrometheus&) = delete;

  const std::string& address() const { return address_; }
  void Say(std::string answer);
  // Answers requests whose query contains `part` with this instead.
  void SayTo(const std::string& part, std::string answer);
  // Waits for `more` further requests; returns the last.
  std::string AwaitRequests(int more);
  void AwaitFirstRequest();

 private:
  std::string Await(int want) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve();
  const std::string& AnswerTo(const std::string& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int fd_;
  std::string address_;
  std::atomic<bool> stopped_{false};
  absl::Mutex mutex_;
  std::string answer_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> answers_ ABSL_GUARDED_BY(mutex_);  // By part of the query.
  std::string last_ ABSL_GUARDED_BY(mutex_);
  int requests_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int> hanging_;  // Connections; used only by the thread.
  std::thread thread_;
};

// Counts readings by the last label value, `result`.
//
// Threading: thread-safe.
// Lifetime: outlives the counters.
// Errors: a count that does not come in 20 seconds fails the test.
class ReadCounts : public sdk::Metrics {
 public:
  bool enabled() const override { return true; }
  std::shared_ptr<sdk::Counter> NewCounter(absl::string_view name,
                                           const std::vector<std::string>& values) override;
  std::shared_ptr<sdk::Gauge> NewGauge(absl::string_view name,
                                       const std::vector<std::string>& values) override;
  std::shared_ptr<sdk::Histogram> NewHistogram(absl::string_view name,
                                               const std::vector<std::string>& values) override;
  // Waits for this count.
  void Await(const std::string& result, int count);
  int count(const std::string& result);

 private:
  std::atomic<double>* CountOf(const std::string& result);

  absl::Mutex mutex_;
  // Addresses are stable.
  std::map<std::string, std::atomic<double>> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outboard::prometheus::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_TESTING_FAKE_PROMETHEUS_H_
