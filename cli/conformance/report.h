// The results of the cases as text and as JUnit.
#ifndef OUTBOARD_CLI_CONFORMANCE_REPORT_H_
#define OUTBOARD_CLI_CONFORMANCE_REPORT_H_

#include <string>
#include <vector>

#include "cli/conformance/kit.h"

namespace outboard::conformance {

std::string TableHeader();
// A line of the table, and a second line with the error.
std::string TableLine(const Result& result);
// "41 passed, 1 failed, 3 skipped".
std::string Summary(const std::vector<Result>& results);
std::string JUnit(const std::vector<Result>& results, const std::string& host, uint64_t seed);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_REPORT_H_
