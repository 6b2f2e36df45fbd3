// What became of the cases, for people and for machines.
#ifndef OUTBOARD_SHIM_CONFORMANCE_REPORT_H_
#define OUTBOARD_SHIM_CONFORMANCE_REPORT_H_

#include <string>
#include <vector>

#include "shim/conformance/kit.h"

namespace outboard::conformance {

std::string TableHeader();
// A line of the table; what was wrong stands on a line of its own.
std::string TableLine(const Result& result);
// "41 passed, 1 failed, 3 skipped".
std::string Summary(const std::vector<Result>& results);
std::string JUnit(const std::vector<Result>& results, const std::string& host, uint64_t seed);

}  // namespace outboard::conformance

#endif  // OUTBOARD_SHIM_CONFORMANCE_REPORT_H_
