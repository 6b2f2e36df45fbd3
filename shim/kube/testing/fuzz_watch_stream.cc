#include "shim/kube/testing/fuzz_watch_stream.h"

#include <string>
#include <vector>

#include "integration/fuzz/seeds.h"
#include "shim/kube/watch_decoder.h"

namespace outboard::kube {
namespace {

constexpr size_t kMaxFrame = 4096;

struct Split {
  std::vector<std::string> frames;
  bool ok = true;
  size_t pending = 0;
};

// The frames of the stream, received in pieces of `piece` bytes.
Split SplitIn(absl::string_view stream, WatchFraming framing, size_t piece) {
  Split split;
  WatchDecoder decoder(framing, kMaxFrame);
  for (size_t at = 0; at < stream.size() && split.ok; at += piece) {
    split.ok = decoder
                   .Add(stream.substr(at, piece),
                        [&](absl::string_view frame) {
                          fuzz::Require(frame.size() <= kMaxFrame, "a frame is bounded");
                          split.frames.emplace_back(frame);
                          return absl::OkStatus();
                        })
                   .ok();
    fuzz::Require(decoder.pending_bytes() <= kMaxFrame + 4, "what is kept is bounded");
  }
  split.pending = decoder.pending_bytes();
  return split;
}

}  // namespace

void FuzzWatchStream(absl::string_view bytes) {
  if (bytes.empty()) return;
  const auto choice = static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(1);
  const WatchFraming framing =
      choice % 2 == 0 ? WatchFraming::kLengthPrefixed : WatchFraming::kNewlineDelimited;
  const Split whole = SplitIn(bytes, framing, bytes.size() + 1);
  const Split pieces = SplitIn(bytes, framing, 1 + choice / 2);
  fuzz::Require(whole.ok == pieces.ok, "pieces do not decide whether a stream is valid");
  fuzz::Require(whole.frames == pieces.frames, "pieces do not change frames");
  fuzz::Require(!whole.ok || whole.pending == pieces.pending, "pieces do not change the rest");
}

}  // namespace outboard::kube
