#include "plugin_host/reload/object_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/shared_object.h"

namespace outboard::reload {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
#error "name the machine"
#endif

// A part of the file, or nothing if out of range.
std::optional<absl::string_view> Piece(absl::string_view file, uint64_t offset, uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) return std::nullopt;
  return file.substr(offset, size);
}

// Copies, because data in a file may be unaligned.
template <typename T>
bool ReadAt(absl::string_view file, uint64_t offset, T* out) {
  const auto piece = Piece(file, offset, sizeof(T));
  if (!piece.has_value()) return false;
  memcpy(out, piece->data(), sizeof(T));
  return true;
}

absl::string_view UpToNul(absl::string_view text) { return text.substr(0, text.find('\0')); }

std::optional<absl::string_view> FindSection(absl::string_view file, const Elf64_Ehdr& header,
                                             absl::string_view wanted) {
  const auto section = [&](uint64_t index, Elf64_Shdr* out) {
    return header.e_shoff <= file.size() &&
           ReadAt(file, header.e_shoff + index * sizeof(Elf64_Shdr), out);
  };
  Elf64_Shdr names;
  if (header.e_shentsize != sizeof(Elf64_Shdr) || !section(header.e_shstrndx, &names))
    return std::nullopt;
  const auto text = Piece(file, names.sh_offset, names.sh_size);
  if (!text.has_value()) return std::nullopt;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr entry;
    if (!section(i, &entry)) return std::nullopt;
    if (entry.sh_name >= text->size() || UpToNul(text->substr(entry.sh_name)) != wanted) continue;
    return Piece(file, entry.sh_offset, entry.sh_size);
  }
  return std::nullopt;
}

// A read-only copy in memory.
absl::StatusOr<int> SealedCopy(const std::string& name, absl::string_view content) {
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const auto failed = [&](absl::string_view what) {
    const absl::Status status =
        absl::FailedPreconditionError(absl::StrCat("cannot ", what, ": ", strerror(errno)));
    if (fd >= 0) close(fd);
    return status;
  };
  if (fd < 0) return failed("make a copy in memory");
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("make a copy in memory");
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    return failed("seal the copy in memory");
  return fd;
}

}  // namespace

absl::StatusOr<std::string> AbiOf(absl::string_view object) {
  Elf64_Ehdr header;
  if (!ReadAt(object, 0, &header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) {
    return absl::InvalidArgumentError("it is not a shared object");
  }
  if (header.e_machine != kMachine)
    return absl::InvalidArgumentError("it was built for another machine type");
  const auto abi = FindSection(object, header, OUTBOARD_ABI_SECTION);
  if (!abi.has_value() || UpToNul(*abi).empty()) {
    return absl::InvalidArgumentError(
        "it does not declare its ABI: no OUTBOARD_PLUGIN_OBJECT(…) in its sources");
  }
  std::string text(UpToNul(*abi));
  // It is logged.
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return text.substr(0, 512);
}

absl::Status CheckAbi(absl::string_view object_abi, absl::string_view our_abi) {
  if (object_abi == our_abi) return absl::OkStatus();
  const std::vector<std::string> theirs = absl::StrSplit(object_abi, ' ');
  const std::vector<std::string> ours = absl::StrSplit(our_abi, ' ');
  const auto only_in = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    const std::set<std::string> others(b.begin(), b.end());
    std::vector<std::string> words;
    for (const std::string& word : a) {
      if (others.count(word) == 0) words.push_back(word);
    }
    return words.empty() ? std::string("less") : absl::StrJoin(words, " ");
  };
  return absl::FailedPreconditionError(absl::StrCat("it was built for ", only_in(theirs, ours),
                                                    ", this host is ", only_in(ours, theirs),
                                                    "; build it against this host's package"));
}

absl::StatusOr<std::unique_ptr<LoadedObject>> LoadedObject::Load(const std::string& name,
                                                                 absl::string_view content) {
  const absl::StatusOr<std::string> abi = AbiOf(content);
  if (!abi.ok()) return abi.status();
  if (absl::Status same = CheckAbi(*abi, OUTBOARD_ABI); !same.ok()) return same;
  const absl::StatusOr<int> copy = SealedCopy(name, content);
  if (!copy.ok()) return copy.status();
  std::unique_ptr<LoadedObject> object(new LoadedObject(name, *copy));
  const std::string path = absl::StrCat("/proc/self/fd/", *copy);
  // Resolves all symbols now: a missing symbol is an error here, not a crash later.
  object->handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object->handle_ == nullptr) {
    const char* const error = dlerror();
    return absl::FailedPreconditionError(
        absl::StrReplaceAll(error == nullptr ? "it cannot be loaded" : error, {{path, name}}));
  }
  return object;
}

absl::Status LoadedObject::Register(sdk::PluginRegistry* registry) const {
  const auto function =
      reinterpret_cast<OutboardRegisterFunction>(dlsym(handle_, OUTBOARD_REGISTER_SYMBOL));
  if (function == nullptr) {
    return absl::InvalidArgumentError("it has no function " OUTBOARD_REGISTER_SYMBOL);
  }
  const size_t before = registry->descriptors().size();
  absl::Status status;
  function(registry, &status);
  if (status.ok() && registry->descriptors().size() == before)
    return absl::InvalidArgumentError("it registers no plugin");
  return status;
}

LoadedObject::~LoadedObject() {
  if (handle_ != nullptr) dlclose(handle_);
  close(copy_);
}

}  // namespace outboard::reload
