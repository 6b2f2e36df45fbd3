// Reads the CSV files of public traces.
#ifndef OUTBOARD_INTEGRATION_BENCH_CSV_H_
#define OUTBOARD_INTEGRATION_BENCH_CSV_H_

#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace outboard::bench {

// Returns the rows of a CSV text without quotes, each with the values of `required` and then of
// `optional` columns. The first line names the columns. An absent optional column is empty.
//
// `name` names the text in errors. Errors: INVALID_ARGUMENT without a required column, or for a row
// of another length.
absl::StatusOr<std::vector<std::vector<std::string>>> ReadCsv(
    const std::string& name, const std::vector<std::string>& required,
    const std::vector<std::string>& optional, std::istream* text);

}  // namespace outboard::bench

#endif  // OUTBOARD_INTEGRATION_BENCH_CSV_H_
