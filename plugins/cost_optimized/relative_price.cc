#include "plugins/cost_optimized/relative_price.h"

#include <algorithm>
#include <limits>

namespace outboard::cost_optimized {
namespace {

constexpr double kBest = 100;
// For nodes that cost something, beside nodes that cost nothing.
constexpr double kBestBesideFree = 50;

double Share(int64_t wanted, int64_t has) {
  if (wanted <= 0) return 0;
  if (has <= wanted) return 1;
  return static_cast<double>(wanted) / static_cast<double>(has);
}

}  // namespace

double ShareOf(const Amounts& pod, const Amounts& node) {
  const double share =
      std::max({Share(pod.cpu_millis, node.cpu_millis), Share(pod.memory_bytes, node.memory_bytes),
                Share(pod.gpus, node.gpus)});
  return share == 0 ? 1 : share;
}

void CostsToTerms(absl::Span<double> costs) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double lowest = kNone;
  bool any_free = false;
  for (const double cost : costs) {
    any_free |= cost == 0;
    if (cost > 0 && cost < lowest) lowest = cost;
  }
  const double best = any_free ? kBestBesideFree : kBest;
  for (double& cost : costs) cost = cost > 0 ? best * (lowest / cost) : cost == 0 ? kBest : 0;
}

}  // namespace outboard::cost_optimized
