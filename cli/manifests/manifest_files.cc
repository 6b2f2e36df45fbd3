#include "cli/manifests/manifest_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::manifests {
namespace {

namespace fs = std::filesystem;

class FilesReader {
 public:
  FilesReader(bool strict, std::istream* input) : reader_(strict), input_(input) {}

  void ReadArgument(const std::string& argument, bool to_schedule) {
    if (argument == "-") return ReadInput(to_schedule);
    struct stat status = {};
    if (stat(argument.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
      return ReadDirectory(argument, to_schedule);
    const absl::StatusOr<std::string> text = ReadText(argument);
    if (!text.ok()) return errors_.push_back(std::string(text.status().message()));
    CheckFound(argument, *text, reader_.Read(argument, *text, to_schedule));
  }

  ManifestReader& reader() { return reader_; }
  // Those of files as a whole.
  std::vector<std::string>& errors() { return errors_; }

 private:
  void ReadInput(bool to_schedule) {
    if (input_read_) {
      return errors_.push_back(
          "-: standard input can be read only once; give it to --cluster or to --pods");
    }
    input_read_ = true;
    const std::string text{std::istreambuf_iterator<char>(*input_), {}};
    CheckFound("stdin", text, reader_.Read("stdin", text, to_schedule));
  }

  void ReadDirectory(const std::string& directory, bool to_schedule) {
    std::error_code error;
    std::vector<std::string> files;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path extension = entry->path().extension();
      const bool manifest = extension == ".yaml" || extension == ".yml" || extension == ".json";
      if (manifest && !entry->is_directory(error)) files.push_back(entry->path().string());
    }
    if (error) return errors_.push_back(absl::StrCat(directory, ": ", error.message()));
    if (files.empty())
      return errors_.push_back(
          absl::StrCat(directory, ": a directory without *.yaml, *.yml or *.json"));
    std::sort(files.begin(), files.end());
    size_t found = 0;
    for (const std::string& file : files) {
      const absl::StatusOr<std::string> text = ReadText(file);
      if (!text.ok()) errors_.emplace_back(text.status().message());
      found += text.ok() ? reader_.Read(file, *text, to_schedule) : 1;
    }
    if (found == 0) {
      errors_.push_back(
          absl::StrCat(directory, ": no Kubernetes object in its ", files.size(), " files"));
    }
  }

  void CheckFound(const std::string& name, const std::string& text, size_t found) {
    if (found > 0) return;
    errors_.push_back(absl::StrCat(
        name, text.empty() ? ": is empty" : ": contains no Kubernetes object, only comments"));
  }

  ManifestReader reader_;
  std::istream* const input_;
  bool input_read_ = false;
  std::vector<std::string> errors_;
};

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& file) {
  const auto fail = [&] {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", strerror(errno)));
  };
  const int open_file = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (open_file < 0) return fail();
  absl::StatusOr<std::string> text = std::string();
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(open_file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) text = fail();
    if (count <= 0) break;
    text->append(buffer, static_cast<size_t>(count));
  }
  close(open_file);
  return text;
}

absl::Status ToStatus(const std::vector<std::string>& errors) {
  if (errors.empty()) return absl::OkStatus();
  if (errors.size() == 1) return absl::InvalidArgumentError(errors[0]);
  return absl::InvalidArgumentError(
      absl::StrCat("the manifests have errors:\n", absl::StrJoin(errors, "\n")));
}

Manifests ReadManifestFiles(const ManifestArguments& arguments, bool strict, std::istream* input) {
  FilesReader files(strict, input);
  for (const std::string& argument : arguments.cluster) files.ReadArgument(argument, false);
  for (const std::string& argument : arguments.pods) files.ReadArgument(argument, true);
  Manifests manifests = files.reader().Finish();
  std::vector<std::string> errors = std::move(files.errors());
  std::move(manifests.errors.begin(), manifests.errors.end(), std::back_inserter(errors));
  if (errors.empty() && !arguments.pods.empty() && manifests.pods_to_schedule.empty()) {
    errors.push_back(absl::StrCat("no Pod in --pods ", absl::StrJoin(arguments.pods, " ")));
  }
  manifests.errors = std::move(errors);
  return manifests;
}

}  // namespace outboard::manifests
