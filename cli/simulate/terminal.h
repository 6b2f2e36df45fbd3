// What the command's output goes to.
#ifndef OUTBOARD_CLI_SIMULATE_TERMINAL_H_
#define OUTBOARD_CLI_SIMULATE_TERMINAL_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"

namespace outboard::simulate {

// The line length of text that does not go to a terminal.
inline constexpr size_t kPlainWidth = 100;

// How to write text.
struct Style {
  size_t width = kPlainWidth;
  bool color = false;
};

enum class Color { kGreen, kYellow, kRed, kFaint, kBold };

// `text` in the color, if the style has colors.
std::string Colored(const Style& style, Color color, const std::string& text);

// For standard output: the width of its terminal, and colors unless NO_COLOR is set.
Style StyleOfOutput();

// Whether both outputs are terminals.
bool ShowsProgress();

// A line on standard error that is overwritten.
//
// Threading: one thread.
class ProgressLine {
 public:
  // `shows` false: shows nothing. Shows nothing before `after` either.
  explicit ProgressLine(bool shows, absl::Duration after = absl::Milliseconds(300));
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows `text` unless another one was shown a moment ago.
  void Show(const std::string& text);
  void Clear();

 private:
  const bool shows_;
  bool is_shown_ = false;
  absl::Time next_;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_TERMINAL_H_
