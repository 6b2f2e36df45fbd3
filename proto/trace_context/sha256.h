// SHA-256 (FIPS 180-4), for uids that are not UUIDs. Not for secrets.
#ifndef OUTBOARD_PROTO_TRACE_CONTEXT_SHA256_H_
#define OUTBOARD_PROTO_TRACE_CONTEXT_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace outboard::trace_context {

inline constexpr size_t kSha256Size = 32;

// Pure; does not allocate memory. Its own, because authors of plugins link the host's SDK, and
// OpenSSL would be one more library for them.
std::array<uint8_t, kSha256Size> Sha256(absl::string_view text);

}  // namespace outboard::trace_context

#endif  // OUTBOARD_PROTO_TRACE_CONTEXT_SHA256_H_
