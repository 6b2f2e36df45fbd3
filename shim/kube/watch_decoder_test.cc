#include "shim/kube/watch_decoder.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace outboard::kube {
namespace {

std::string Prefixed(const std::string& frame) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>((frame.size() >> shift) & 0xff));
  }
  return bytes + frame;
}

// All frames of `pieces`, in order.
std::vector<std::string> Decode(WatchFraming framing, const std::vector<std::string>& pieces) {
  WatchDecoder decoder(framing);
  std::vector<std::string> frames;
  for (const std::string& piece : pieces) {
    absl::Status status = decoder.Add(piece, [&](absl::string_view frame) {
      frames.emplace_back(frame);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  return frames;
}

class WatchDecoderSplit : public ::testing::TestWithParam<WatchFraming> {
 protected:
  std::vector<std::string> frames_ = {"first", "x", std::string(300, 'y'), "last one"};
  std::string Stream() const {
    std::string stream;
    for (const std::string& frame : frames_) {
      stream += GetParam() == WatchFraming::kLengthPrefixed ? Prefixed(frame) : frame + "\n";
    }
    return stream;
  }
};

TEST_P(WatchDecoderSplit, AtEveryPairOfOffsets) {
  const std::string stream = Stream();
  for (size_t a = 0; a <= stream.size(); ++a) {
    for (size_t b = a; b <= stream.size(); ++b) {
      ASSERT_EQ(
          Decode(GetParam(), {stream.substr(0, a), stream.substr(a, b - a), stream.substr(b)}),
          frames_)
          << "split at " << a << " and " << b;
    }
  }
}

TEST_P(WatchDecoderSplit, InPiecesOfEverySize) {
  const std::string stream = Stream();
  for (size_t size = 1; size <= stream.size(); ++size) {
    std::vector<std::string> pieces;
    for (size_t at = 0; at < stream.size(); at += size) pieces.push_back(stream.substr(at, size));
    ASSERT_EQ(Decode(GetParam(), pieces), frames_) << "pieces of " << size;
  }
}

TEST_P(WatchDecoderSplit, HalfAFrameIsPendingAndNotDelivered) {
  const std::string stream = Stream();
  const auto frames = Decode(GetParam(), {stream.substr(0, stream.size() - 1)});
  EXPECT_EQ(frames.size(), frames_.size() - 1);
}

TEST_P(WatchDecoderSplit, StopsAtTheFirstErrorOfTheReceiver) {
  WatchDecoder decoder(GetParam());
  int calls = 0;
  absl::Status status = decoder.Add(Stream(), [&](absl::string_view) {
    return ++calls == 2 ? absl::AbortedError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(calls, 2);
}

INSTANTIATE_TEST_SUITE_P(Framings, WatchDecoderSplit,
                         ::testing::Values(WatchFraming::kLengthPrefixed,
                                           WatchFraming::kNewlineDelimited));

TEST(WatchDecoder, RefusesAHugeLengthBeforeReservingAnything) {
  WatchDecoder decoder(WatchFraming::kLengthPrefixed);
  absl::Status status =
      decoder.Add("\xff\xff\xff\xff", [](absl::string_view) { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(WatchDecoder, TheBoundItselfIsAccepted) {
  auto accept = [](absl::string_view) { return absl::OkStatus(); };
  EXPECT_TRUE(WatchDecoder(WatchFraming::kLengthPrefixed, 10)
                  .Add(Prefixed(std::string(10, 'a')), accept)
                  .ok());
  EXPECT_FALSE(WatchDecoder(WatchFraming::kLengthPrefixed, 10)
                   .Add(Prefixed(std::string(11, 'a')), accept)
                   .ok());
  EXPECT_TRUE(WatchDecoder(WatchFraming::kNewlineDelimited, 10)
                  .Add(std::string(10, 'a') + "\n", accept)
                  .ok());
  EXPECT_FALSE(
      WatchDecoder(WatchFraming::kNewlineDelimited, 10).Add(std::string(11, 'a'), accept).ok());
}

TEST(WatchDecoder, AnEmptyFrameIsAFrame) {
  EXPECT_EQ(Decode(WatchFraming::kLengthPrefixed, {Prefixed(""), Prefixed("a")}),
            (std::vector<std::string>{"", "a"}));
}

}  // namespace
}  // namespace outboard::kube
