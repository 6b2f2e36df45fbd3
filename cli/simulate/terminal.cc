#include "cli/simulate/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace outboard::simulate {
namespace {

constexpr absl::Duration kNextProgress = absl::Milliseconds(100);
// In a narrower terminal lines break by themselves.
constexpr size_t kLeastWidth = 60;

const char* CodeOf(Color color) {
  switch (color) {
    case Color::kGreen:
      return "\x1b[32m";
    case Color::kYellow:
      return "\x1b[33m";
    case Color::kRed:
      return "\x1b[31m";
    case Color::kFaint:
      return "\x1b[2m";
    case Color::kBold:
      return "\x1b[1m";
  }
  return "";
}

}  // namespace

std::string Colored(const Style& style, Color color, const std::string& text) {
  return style.color ? absl::StrCat(CodeOf(color), text, "\x1b[0m") : text;
}

Style StyleOfOutput() {
  Style style;
  if (isatty(STDOUT_FILENO) == 0) return style;
  const char* const no_color = getenv("NO_COLOR");
  style.color = no_color == nullptr || *no_color == '\0';
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kLeastWidth)
    style.width = size.ws_col;
  return style;
}

bool ShowsProgress() { return isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0; }

ProgressLine::ProgressLine(bool shows, absl::Duration after)
    : shows_(shows), next_(absl::Now() + after) {}

void ProgressLine::Show(const std::string& text) {
  if (!shows_) return;
  const absl::Time now = absl::Now();
  if (now < next_) return;
  next_ = now + kNextProgress;
  is_shown_ = true;
  fprintf(stderr, "\r\x1b[K%s", text.c_str());
  fflush(stderr);
}

void ProgressLine::Clear() {
  if (!is_shown_) return;
  is_shown_ = false;
  fputs("\r\x1b[K", stderr);
  fflush(stderr);
}

}  // namespace outboard::simulate
