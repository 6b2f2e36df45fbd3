#include "integration/simulator/storm_figures.h"

#include <algorithm>
#include <cstdio>

namespace outboard::storms {
namespace {

struct Line {
  const char* what;
  int64_t Figures::*figure;
};
constexpr Line kLines[] = {
    {"pods", &Figures::pods},
    {"binds", &Figures::bound},
    {"preemptions", &Figures::preemptions},
    {"of these repeated for the same pod", &Figures::again},
    {"evictions", &Figures::evictions},
    {"companions on other nodes", &Figures::companions},
    {"gangs evicted as a whole", &Figures::whole_gangs},
    {"binds and evictions that the API server rejected", &Figures::failed},
    {"preemptors without a node because of another event", &Figures::excused},
    {"attempts", &Figures::attempts},
    {"pods waiting at the end", &Figures::waiting},
    {"gangs with members waiting at the end", &Figures::gangs_left},
};

}  // namespace

void SumOfFigures::Add(const Figures& storm) {
  ++storms_;
  for (const Line& line : kLines) {
    sum_.*line.figure += storm.*line.figure;
    most_.*line.figure = std::max(most_.*line.figure, storm.*line.figure);
  }
  sum_.minutes += storm.minutes;
  most_.minutes = std::max(most_.minutes, storm.minutes);
}

void SumOfFigures::Print() const {
  for (const Line& line : kLines) {
    std::printf("  %-58s %9lld, at most %lld in one\n", line.what,
                static_cast<long long>(sum_.*line.figure),
                static_cast<long long>(most_.*line.figure));
  }
  std::printf("  minutes to rest after the last external event: %.1f on average, %.1f at most\n",
              sum_.minutes / static_cast<double>(std::max<int64_t>(1, storms_)), most_.minutes);
}

}  // namespace outboard::storms
