// Splits the bytes of a watch into frames.
#ifndef OUTBOARD_SHIM_KUBE_WATCH_DECODER_H_
#define OUTBOARD_SHIM_KUBE_WATCH_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outboard::kube {

// client-go's limit for one frame. Checked before memory is reserved.
inline constexpr size_t kMaxWatchFrame = size_t{16} << 20;

// How a watch separates frames; depends on its Content-Type.
enum class WatchFraming {
  kLengthPrefixed,    // protobuf: 4 bytes of length, big-endian, then the frame
  kNewlineDelimited,  // JSON: one document per line
};

// A resumable state machine: frames do not align with received pieces. A frame is a view, into the
// caller's piece if that contains the whole frame, valid during the call. Bytes left when a stream
// ends are an incomplete frame, to be discarded.
//
// Threading: thread-compatible.
// Lifetime: one per stream.
// Errors: RESOURCE_EXHAUSTED for a frame over the limit. The first error of `on_frame` is returned;
// afterwards the decoder is unusable.
class WatchDecoder {
 public:
  explicit WatchDecoder(WatchFraming framing, size_t max_frame = kMaxWatchFrame)
      : framing_(framing), max_frame_(max_frame) {}

  using OnFrame = absl::FunctionRef<absl::Status(absl::string_view frame)>;
  absl::Status Add(absl::string_view piece, OnFrame on_frame);

  // Bytes of an incomplete frame.
  size_t pending_bytes() const { return header_bytes_ + partial_.size(); }

 private:
  absl::Status AddLengthPrefixed(absl::string_view piece, OnFrame on_frame);
  absl::Status AddLines(absl::string_view piece, OnFrame on_frame);
  absl::Status TooLarge(size_t bytes) const;

  const WatchFraming framing_;
  const size_t max_frame_;
  size_t header_bytes_ = 0;  // received bytes of the 4-byte length
  uint32_t length_ = 0;
  std::string partial_;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WATCH_DECODER_H_
