// The cost of counting and observing, compared with a cycle of about 100 us.
#include <benchmark/benchmark.h>

#include "shim/metrics/metrics.h"

namespace outboard::metrics {
namespace {

void BM_Increment(benchmark::State& state) {
  Metrics metrics("bench");
  Counter& counter = *metrics.Profile("p").attempts[0];
  for (auto _ : state) counter.Increment();
}
BENCHMARK(BM_Increment);

void BM_ObserveAttempt(benchmark::State& state) {
  Metrics metrics("bench");
  Histogram& histogram = *metrics.Profile("p").attempt_duration[0];
  for (auto _ : state) Observe(histogram, absl::Milliseconds(3));
}
BENCHMARK(BM_ObserveAttempt);

void BM_ObserveFine(benchmark::State& state) {
  Metrics metrics("bench");
  for (auto _ : state) Observe(metrics.fine_algorithm_duration, absl::Microseconds(100));
}
BENCHMARK(BM_ObserveFine);

void BM_With(benchmark::State& state) {
  Metrics metrics("bench");
  for (auto _ : state)
    benchmark::DoNotOptimize(metrics.plugin_evaluations.With({"NodeResourcesFit", "Filter", "p"}));
}
BENCHMARK(BM_With);

}  // namespace
}  // namespace outboard::metrics

BENCHMARK_MAIN();
