// Log lines to stderr that never wait for a reader. See README.md.
#ifndef OUTBOARD_LOGGING_STDERR_LOG_H_
#define OUTBOARD_LOGGING_STDERR_LOG_H_

#include <glog/logging.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::logging {

// Writes glog's lines to a descriptor.
//
// Threading: glog calls `send` under its lock; `dropped` from any thread.
// Lifetime: added to glog, it must outlive it or be removed; does not own the descriptor.
// Errors: what cannot be written is dropped and counted.
class StderrLog final : public google::LogSink {
 public:
  // How long a line waits for a reader that has kept up so far.
  static constexpr absl::Duration kPatience = absl::Milliseconds(100);

  // Raises the size of a pipe to 1 MiB if the kernel allows it.
  explicit StderrLog(int fd);

  using google::LogSink::send;
  void send(google::LogSeverity severity, const char* full_filename, const char* base_filename,
            int line, const google::LogMessageTime& time, const char* message,
            size_t message_len) override;
  uint64_t dropped() const { return dropped_; }

 private:
  // Returns false if a part of the text was not written.
  bool Write(absl::string_view text, absl::Duration patience);

  const int fd_;
  std::atomic<uint64_t> dropped_{0};
  uint64_t missing_ = 0;  // dropped since the last written line
  bool torn_ = false;     // the last written line has no end
};

// Lines dropped by this process so far.
uint64_t DroppedLogLines();

}  // namespace outboard::logging

#endif  // OUTBOARD_LOGGING_STDERR_LOG_H_
