#include "shim/kube/watch_decoder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace outboard::kube {

absl::Status WatchDecoder::TooLarge(size_t bytes) const {
  return absl::ResourceExhaustedError(absl::StrCat(
      "a watch frame of ", bytes, " bytes or more; at most ", max_frame_, " are accepted"));
}

absl::Status WatchDecoder::Add(absl::string_view piece, OnFrame on_frame) {
  return framing_ == WatchFraming::kLengthPrefixed ? AddLengthPrefixed(piece, on_frame)
                                                   : AddLines(piece, on_frame);
}

absl::Status WatchDecoder::AddLengthPrefixed(absl::string_view piece, OnFrame on_frame) {
  // An empty frame is complete with its header.
  while (!piece.empty() || (header_bytes_ == 4 && length_ == 0)) {
    if (header_bytes_ < 4) {
      length_ = (length_ << 8) | static_cast<unsigned char>(piece[0]);
      piece.remove_prefix(1);
      ++header_bytes_;
      if (header_bytes_ < 4) continue;
      if (length_ > max_frame_) return TooLarge(length_);
    }
    absl::string_view frame;
    if (partial_.empty() && piece.size() >= length_) {
      frame = piece.substr(0, length_);
      piece.remove_prefix(length_);
    } else {
      // The buffer grows with the received bytes, whatever length was announced.
      const size_t take = std::min<size_t>(length_ - partial_.size(), piece.size());
      partial_.append(piece.data(), take);
      piece.remove_prefix(take);
      if (partial_.size() < length_) continue;
      frame = partial_;
    }
    absl::Status status = on_frame(frame);
    header_bytes_ = 0;
    length_ = 0;
    partial_.clear();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status WatchDecoder::AddLines(absl::string_view piece, OnFrame on_frame) {
  while (!piece.empty()) {
    const size_t newline = piece.find('\n');
    if (newline == absl::string_view::npos) {
      if (partial_.size() + piece.size() > max_frame_) {
        return TooLarge(partial_.size() + piece.size());
      }
      partial_.append(piece.data(), piece.size());
      return absl::OkStatus();
    }
    absl::string_view line = piece.substr(0, newline);
    piece.remove_prefix(newline + 1);
    if (partial_.size() + line.size() > max_frame_) return TooLarge(partial_.size() + line.size());
    if (!partial_.empty()) {
      partial_.append(line.data(), line.size());
      line = partial_;
    }
    absl::Status status = line.empty() ? absl::OkStatus() : on_frame(line);
    partial_.clear();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace outboard::kube
