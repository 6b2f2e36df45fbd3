#include "cli/simulate/trace/records.h"

#include <algorithm>

namespace outboard::simulate::trace {

Records::Records(size_t jobs, Amounts capacity, absl::Time begin)
    : capacity_(capacity), begin_(begin), end_(begin), jobs_(jobs), steps_({{begin, Amounts()}}) {}

void Records::Take(const Amounts& amounts, int64_t count, absl::Time now) {
  if (steps_.back().since < now) steps_.push_back({now, steps_.back().used});
  steps_.back().used.cpu_millis += count * amounts.cpu_millis;
  steps_.back().used.gpus += count * amounts.gpus;
}

Records::Use Records::MeanUse(absl::Time from, absl::Time to) const {
  // The last step that began at or before `from`.
  auto step = std::upper_bound(steps_.begin(), steps_.end(), from,
                               [](absl::Time t, const Step& s) { return t < s.since; });
  if (step != steps_.begin()) --step;
  double cpu = 0, gpu = 0;
  for (; step != steps_.end() && step->since < to; ++step) {
    const absl::Time until = step + 1 == steps_.end() ? to : std::min(to, (step + 1)->since);
    const double seconds = absl::ToDoubleSeconds(until - std::max(from, step->since));
    cpu += seconds * static_cast<double>(step->used.cpu_millis);
    gpu += seconds * static_cast<double>(step->used.gpus);
  }
  const double seconds = absl::ToDoubleSeconds(to - from);
  Use use;
  if (seconds > 0 && capacity_.cpu_millis > 0)
    use.cpu = cpu / seconds / static_cast<double>(capacity_.cpu_millis);
  if (seconds > 0 && capacity_.gpus > 0)
    use.gpu = gpu / seconds / static_cast<double>(capacity_.gpus);
  return use;
}

}  // namespace outboard::simulate::trace
