#include "plugin_host/reload/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace outboard::reload {
namespace {

constexpr size_t kDigestCharacters = 64;

absl::Status Failed(absl::string_view what, const std::string& path) {
  const std::string text = absl::StrCat("cannot ", what, " ", path, ": ", strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

absl::Status WriteAll(int fd, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::UnavailableError(strerror(errno));
    content.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsObjectName(absl::string_view name) {
  return absl::EndsWith(name, ".so") && absl::ascii_isalnum(name[0]) && name.size() <= 128 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  Manifest manifest;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripTrailingAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const auto fault = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", what));
    };
    const std::string digest = absl::AsciiStrToLower(line.substr(0, kDigestCharacters));
    if (digest.size() != kDigestCharacters ||
        !std::all_of(digest.begin(), digest.end(), absl::ascii_isxdigit)) {
      return fault("does not begin with the 64 hexadecimal digits of a SHA-256");
    }
    line.remove_prefix(kDigestCharacters);
    if (!absl::ConsumePrefix(&line, "  ") && !absl::ConsumePrefix(&line, " *"))
      return fault("needs two blanks between digest and name, as sha256sum writes them");
    absl::ConsumePrefix(&line, "./");
    if (!IsObjectName(line))
      return fault(absl::StrCat("\"", line, "\" is not the name of a .so file of this directory"));
    if (!manifest.emplace(line, digest).second)
      return fault(absl::StrCat(line, " is listed twice"));
  }
  return manifest;
}

std::string ManifestText(const Manifest& manifest) {
  std::string text;
  for (const auto& [name, digest] : manifest) absl::StrAppend(&text, digest, "  ", name, "\n");
  return text;
}

absl::StatusOr<Manifest> ReadManifest(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kManifestName);
  absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return Manifest();
  if (!text.ok()) return text.status();
  absl::StatusOr<Manifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", manifest.status().message()));
  }
  return manifest;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed("read", path);
  std::string content;
  char buffer[1 << 16];
  ssize_t count;
  while ((count = read(fd, buffer, sizeof(buffer))) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const absl::Status failed = Failed("read", path);
      close(fd);
      return failed;
    }
    content.append(buffer, static_cast<size_t>(count));
  }
  close(fd);
  return content;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  const size_t name = path.rfind('/') + 1;
  // Hidden and without `.so`, so that it is not taken for an object.
  const std::string draft =
      absl::StrCat(path.substr(0, name), ".", path.substr(name), ".draft-", getpid());
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Failed("write", draft);
  absl::Status written = WriteAll(fd, content);
  if (written.ok() && fsync(fd) != 0) written = Failed("write", draft);
  close(fd);
  if (written.ok() && rename(draft.c_str(), path.c_str()) != 0) written = Failed("write", path);
  if (!written.ok()) unlink(draft.c_str());
  return written;
}

std::string Sha256(absl::string_view content) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

}  // namespace outboard::reload
