#include "shim/hosts/version_skew.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace outboard::hosts {
namespace {

struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;
};

std::optional<Version> ParseVersion(absl::string_view text) {
  absl::ConsumePrefix(&text, "v");
  text = text.substr(0, text.find_first_of("-+"));
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  uint32_t numbers[3] = {};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!absl::SimpleAtoi(parts[i], &numbers[i])) return std::nullopt;
  }
  return Version{numbers[0], numbers[1]};
}

}  // namespace

bool AreTooFarApart(absl::string_view shim_version, absl::string_view host_build) {
  const std::optional<Version> shim = ParseVersion(shim_version);
  const std::optional<Version> host = ParseVersion(host_build);
  if (!shim.has_value() || !host.has_value()) return false;
  return shim->major != host->major || std::abs(int64_t{shim->minor} - int64_t{host->minor}) > 1;
}

}  // namespace outboard::hosts
