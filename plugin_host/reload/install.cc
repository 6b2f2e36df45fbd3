#include "plugin_host/reload/install.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/reload/plugin_set.h"

namespace outboard::reload {
namespace {

// Holds the lock for its lifetime.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory)
      : fd_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0 || flock(fd_, LOCK_EX) != 0)
      status_ = absl::UnavailableError(absl::StrCat(directory, ": ", strerror(errno)));
  }
  ~DirectoryLock() {
    if (fd_ >= 0) close(fd_);
  }
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  const int fd_;
  absl::Status status_;
};

std::string DigestNow(const std::string& directory) {
  const absl::StatusOr<DirectoryContent> content = ReadDirectory(directory);
  return content.ok() && !content->objects.empty() ? content->Digest() : "";
}

absl::StatusOr<Installed> TryOut(const DirectoryContent& content,
                                 const sdk::PluginRegistry& builtin) {
  Installed installed;
  const auto all = [](const sdk::PluginRegistry&, sdk::PluginRegistry*) {
    return absl::OkStatus();
  };
  absl::StatusOr<std::unique_ptr<PluginSet>> set = PluginSet::Load(builtin, content, all, nullptr);
  if (!set.ok()) return set.status();
  installed.set_digest = (*set)->digest();
  installed.plugins = (*set)->from_objects();
  return installed;
}

}  // namespace

absl::StatusOr<Installed> Install(const std::string& file, const std::string& directory,
                                  const sdk::PluginRegistry& builtin) {
  const std::string name = file.substr(file.rfind('/') + 1);
  if (!IsObjectName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": an object's name has letters, digits, `.`, `_` and `-`, and ends with .so"));
  }
  const DirectoryLock lock(directory);
  if (!lock.status().ok()) return lock.status();
  absl::StatusOr<std::string> bytes = ReadFile(file);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<DirectoryContent> content = ReadDirectory(directory, name);
  if (!content.ok()) return content.status();
  content->manifest[name] = Sha256(*bytes);
  content->objects[name] = *bytes;
  absl::StatusOr<Installed> installed = TryOut(*content, builtin);
  if (!installed.ok()) return installed;
  installed->previous_digest = DigestNow(directory);
  absl::Status written = WriteFileAtomically(absl::StrCat(directory, "/", name), *bytes);
  if (written.ok()) {
    written = WriteFileAtomically(absl::StrCat(directory, "/", kManifestName),
                                  ManifestText(content->manifest));
  }
  if (!written.ok()) return written;
  return installed;
}

absl::StatusOr<Installed> Remove(const std::string& name, const std::string& directory,
                                 const sdk::PluginRegistry& builtin) {
  const DirectoryLock lock(directory);
  if (!lock.status().ok()) return lock.status();
  const std::string path = absl::StrCat(directory, "/", name);
  if (!IsObjectName(name) || access(path.c_str(), F_OK) != 0)
    return absl::NotFoundError(absl::StrCat("no object ", name, " in ", directory));
  absl::StatusOr<DirectoryContent> content = ReadDirectory(directory, name);
  if (!content.ok()) return content.status();
  absl::StatusOr<Installed> left = TryOut(*content, builtin);
  if (!left.ok()) return left;
  left->previous_digest = DigestNow(directory);
  if (absl::Status written = WriteFileAtomically(absl::StrCat(directory, "/", kManifestName),
                                                 ManifestText(content->manifest));
      !written.ok()) {
    return written;
  }
  if (unlink(path.c_str()) != 0)
    return absl::UnavailableError(absl::StrCat("cannot remove ", path, ": ", strerror(errno)));
  return left;
}

}  // namespace outboard::reload
