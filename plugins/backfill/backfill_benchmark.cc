// Measures how long a reservation takes to compute: 5,000 nodes with 8 GPUs and 40,000 pods on
// them.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/backfill/backfill.h"

namespace outboard::backfill {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

constexpr int kNodes = 5000;
constexpr int kRunningEach = 8;
constexpr int64_t kNow = 1767614400;

struct First {
  int members = 1;
  int kinds = 1;
  int gpus = 8;
};

class Bench {
 public:
  Bench(const First& first, int endless_percent) : harness_(*PluginHarness::Create(Descriptor())) {
    for (int n = 0; n < kNodes; ++n) {
      harness_->AddNode(
          NodeBuilder(absl::StrCat("n", n))
              .Allocatable({{"cpu", "64"}, {"memory", "256Gi"}, {"nvidia.com/gpu", "8"}}));
      for (int p = 0; p < kRunningEach; ++p) {
        const int number = n * kRunningEach + p;
        PodBuilder pod(absl::StrCat("running-", number));
        pod.Requests({{"cpu", "8"}, {"memory", "32Gi"}, {"nvidia.com/gpu", "1"}})
            .OnNode(absl::StrCat("n", n));
        if (number % 100 >= endless_percent)
          pod.Annotation("outboard/run-seconds", absl::StrCat(3600 + number * 7919 % 100'000));
        pod.proto().set_start_unix_seconds(kNow);
        harness_->AddPod(pod);
      }
    }
    for (int m = 0; m < first.members; ++m) {
      PodBuilder pod(absl::StrCat("train-", m));
      pod.Requests({{"cpu", "4"},
                    {"memory", "16Gi"},
                    {"nvidia.com/gpu", absl::StrCat(first.gpus - m % first.kinds)}})
          .Label("job-name", "train")
          .Annotation("outboard/min-replicas", absl::StrCat(first.members));
      pod.proto().set_creation_unix_seconds(1);
      harness_->AddPod(pod);
    }
    PodBuilder pod("p");
    pod.Requests({{"cpu", "1"}});
    pod.proto().set_creation_unix_seconds(2);
    other_ = pod;
    harness_->AddPod(other_);
  }
  // `again`: no change since the last call; otherwise the cached reservation has expired each time.
  void Run(benchmark::State& state, bool again) {
    int64_t now = kNow;
    for (auto _ : state) {
      harness_->SetNow(absl::FromUnixSeconds(again ? now : ++now));
      benchmark::DoNotOptimize(harness_->PreFilter(other_));
    }
  }

 private:
  std::unique_ptr<PluginHarness> harness_;
  v1beta1::Pod other_;
};

void Reserve(benchmark::State& state, const First& first, int endless_percent, bool again) {
  Bench(first, endless_percent).Run(state, again);
}

BENCHMARK_CAPTURE(Reserve, NothingChanged, First{}, 0, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Reserve, OnePod, First{}, 0, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Reserve, FittingPod, First{1, 1, 0}, 0, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Reserve, GroupOf64, First{64}, 0, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Reserve, GroupOf64OfTwoKinds, First{64, 2}, 0, false)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Reserve, GroupOf1000, First{1000}, 0, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Reserve, GroupOf4000, First{4000}, 0, false)->Unit(benchmark::kMicrosecond);
// Half of the pods declare their end, which is not enough.
BENCHMARK_CAPTURE(Reserve, Never, First{}, 50, false)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace outboard::backfill
