// The mistakes in manifests, with their positions.
//
// Threading: thread-compatible.
#ifndef OUTBOARD_CLI_MANIFESTS_PROBLEMS_H_
#define OUTBOARD_CLI_MANIFESTS_PROBLEMS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace outboard::manifests {

struct Position {
  size_t file = 0;
  // Starts at 1; 0 is the file as a whole.
  int line = 0;
  int column = 0;
};

class Problems {
 public:
  // Returns the file's number for positions.
  size_t AddFile(absl::string_view name);
  // "FILE:LINE:COLUMN"
  std::string Place(const Position& at) const;

  void Error(const Position& at, absl::string_view what);
  void Warn(const Position& at, absl::string_view what);
  bool has_errors() const { return !errors_.empty(); }

  // "FILE:LINE:COLUMN: what", in the order of files and positions. The last line counts what is
  // left out of a long list.
  std::vector<std::string> Errors() const { return Lines(errors_); }
  std::vector<std::string> Warnings() const { return Lines(warnings_); }

 private:
  struct Problem {
    Position at;
    std::string what;
  };
  std::vector<std::string> Lines(std::vector<Problem> problems) const;

  std::vector<std::string> files_;
  std::vector<Problem> errors_;
  std::vector<Problem> warnings_;
};

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_PROBLEMS_H_
