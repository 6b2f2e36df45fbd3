#include "plugin_host/sdk/prometheus/testing/fuzz_samples.h"

#include <cmath>
#include <optional>

#include "integration/fuzz/seeds.h"
#include "plugin_host/sdk/prometheus/samples.h"

namespace outboard::prometheus {

void FuzzSamples(absl::string_view bytes) {
  const auto samples = ParseSamples(bytes);
  if (!samples.ok()) {
    fuzz::Require(!samples.status().message().empty(), "a refused answer has a reason");
    return;
  }
  fuzz::Require(samples->size() <= bytes.size() / 16, "each sample has bytes of its own");
  for (const Sample& sample : *samples) {
    const std::optional<double> number = sample.Number();
    fuzz::Require(!number || std::isfinite(*number), "a number is finite");
    fuzz::Require(sample.labels.size() <= 64, "labels are bounded");
    for (const auto& [name, value] : sample.labels)
      fuzz::Require(name.size() <= 4096 && value.size() <= 4096, "texts are bounded");
  }
}

}  // namespace outboard::prometheus
