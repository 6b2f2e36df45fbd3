#include "shim/reload/last_good_config.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/config/profiles.h"

namespace outboard::reload {
namespace {

absl::Status Failed(const std::string& path) {
  return absl::UnknownError(absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
}

absl::Status WriteAll(int fd, const std::string& path, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed(path);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0 ? absl::OkStatus() : Failed(path);
}

}  // namespace

absl::Status ReplaceFile(const std::string& path, const std::string& text) {
  const std::string next = path + ".new";
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return Failed(next);
  absl::Status written = WriteAll(fd, next, text);
  if (close(fd) != 0) written.Update(Failed(next));
  if (written.ok() && std::rename(next.c_str(), path.c_str()) != 0) written = Failed(path);
  if (!written.ok()) unlink(next.c_str());
  return written;
}

LastGoodConfig::~LastGoodConfig() {
  if (writer_.joinable()) writer_.join();
}

bool LastGoodConfig::Save(const config::Config& config) {
  if (path_.empty()) return true;
  if (is_writing_) return false;
  std::string text = absl::StrCat("# Kept by outboard-shim: the configuration of ", config.file,
                                  " (sha256:", config.sha256, ") as it was in force.\n",
                                  EffectiveConfigYaml(config, nullptr));
  if (text == saved_) return true;
  saved_ = text;
  if (writer_.joinable()) writer_.join();  // it has ended
  is_writing_ = true;
  writer_ = std::thread([this, text = std::move(text)] {
    if (const absl::Status written = ReplaceFile(path_, text); !written.ok())
      LOG(ERROR) << "The last good configuration was not kept: " << written.message();
    is_writing_ = false;
  });
  return true;
}

}  // namespace outboard::reload
