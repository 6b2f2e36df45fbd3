// Figures of storms of preemptions.
#ifndef OUTBOARD_INTEGRATION_SIMULATOR_STORM_FIGURES_H_
#define OUTBOARD_INTEGRATION_SIMULATOR_STORM_FIGURES_H_

#include <cstdint>

namespace outboard::storms {

// Of one storm.
struct Figures {
  int64_t pods = 0, bound = 0, preemptions = 0, evictions = 0, companions = 0, whole_gangs = 0,
          attempts = 0, waiting = 0, again = 0, failed = 0, excused = 0, gangs_left = 0;
  double minutes = 0;  // From the last external event until it came to rest.
};

// Sums and maxima over many storms.
//
// Threading: thread-compatible.
class SumOfFigures {
 public:
  void Add(const Figures& storm);
  void Print() const;

 private:
  int64_t storms_ = 0;
  Figures sum_, most_;
};

}  // namespace outboard::storms

#endif  // OUTBOARD_INTEGRATION_SIMULATOR_STORM_FIGURES_H_
