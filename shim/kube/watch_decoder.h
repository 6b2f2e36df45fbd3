// Cuts the bytes of a watch into frames.
#ifndef OUTBOARD_SHIM_KUBE_WATCH_DECODER_H_
#define OUTBOARD_SHIM_KUBE_WATCH_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outboard::kube {

// client-go's bound on one frame; checked before anything is reserved for it.
inline constexpr size_t kMaxWatchFrame = size_t{16} << 20;

// How a watch separates its frames; its Content-Type says which.
enum class WatchFraming {
  kLengthPrefixed,    // protobuf: 4 bytes of length, big-endian, then the frame
  kNewlineDelimited,  // JSON: one document a line
};

// A resumable state machine: frames do not align with the pieces in which bytes arrive. A frame is
// a view, into the caller's piece where it lies whole in it, valid during the call. What is left in
// the decoder when a stream ends is half a frame, to be dropped.
//
// Threading: thread-compatible. Lifetime: one per stream. Errors: RESOURCE_EXHAUSTED for a frame
// over the bound; the first error of `on_frame` is returned and the decoder is then unusable.
class WatchDecoder {
 public:
  explicit WatchDecoder(WatchFraming framing, size_t max_frame = kMaxWatchFrame)
      : framing_(framing), max_frame_(max_frame) {}

  using OnFrame = absl::FunctionRef<absl::Status(absl::string_view frame)>;
  absl::Status Add(absl::string_view piece, OnFrame on_frame);

  // Bytes of a frame that has not ended.
  size_t pending_bytes() const { return header_bytes_ + partial_.size(); }

 private:
  absl::Status AddLengthPrefixed(absl::string_view piece, OnFrame on_frame);
  absl::Status AddLines(absl::string_view piece, OnFrame on_frame);
  absl::Status TooLarge(size_t bytes) const;

  const WatchFraming framing_;
  const size_t max_frame_;
  size_t header_bytes_ = 0;  // of the 4, how many have come
  uint32_t length_ = 0;
  std::string partial_;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WATCH_DECODER_H_
