#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "shim/author/commands.h"
#include "shim/author/program.h"
#include "shim/author/replacement.h"
#include "shim/http/client.h"

namespace outboard::author {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPageTimeout = absl::Seconds(10);
constexpr absl::Duration kLook = absl::Milliseconds(20);

constexpr char kHelp[] = R"(outboard plugin: change the plugins of a host while pods are scheduled

For plugins as shared objects, of a host that runs with --plugin-dir DIR. The object is tried out first, in a process of its own: one
that was built for another release, lacks a symbol, or has a plugin of another object's name is refused, and nothing changes. The host
starts an instance with the new set beside the one that serves; the shim fills and compares it, and lets it take over.

Usage:
  outboard plugin install FILE.so --into DIR [flags]     puts FILE into DIR, in the place of one of its name
  outboard plugin remove NAME.so --into DIR [flags]

Flags:
  --into DIR             The host's --plugin-dir
  --server ADDRESS       The shim's servingAddress, or https:// and its secureServing's: wait until pods are scheduled by the new set, tell how long that took and what the
                         comparison said. If the shim refuses it, or takes it out of use again, DIR is put back as it was
  --token-file FILE, --certificate-authority FILE, --insecure-skip-tls-verify
                         With https://, see outboard hosts --help
  --timeout DURATION     How long to wait for that (default: 1m)
  --watch DURATION       How long to look on once it serves (default: 0s)
  -h, --help             This text

A plugin must be enabled in the shim's configuration to be used; without --server nothing is waited for. Plugins in other languages are
hosts of their own: start the new one beside the old one.

Exit codes: 0 done, and with --server: it serves; 1 refused, taken out of use again, or not yet in use; 2 wrong usage.
)";

struct Line {
  bool install = true;
  std::string file, into;
  http::ShimAddress shim;  // without a server: nothing is waited for
  absl::Duration timeout = absl::Minutes(1), watch;
};

absl::StatusOr<Line> Parse(std::vector<std::string> arguments) {
  Line line;
  absl::StatusOr<http::ShimAddress> shim = http::TakeShimFlags("", &arguments);
  if (!shim.ok()) return shim.status();
  line.shim = *std::move(shim);
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!absl::StartsWith(arguments[i], "-")) {
      words.push_back(arguments[i]);
      continue;
    }
    const size_t equals = arguments[i].find('=');
    const std::string flag = arguments[i].substr(0, equals);
    if (flag != "--into" && flag != "--timeout" && flag != "--watch")
      return absl::InvalidArgumentError(absl::StrCat("unknown flag ", flag));
    if (equals == std::string::npos && i + 1 == arguments.size())
      return absl::InvalidArgumentError(absl::StrCat(flag, " needs a value"));
    const std::string value =
        equals == std::string::npos ? arguments[++i] : arguments[i].substr(equals + 1);
    if (flag == "--into") line.into = value;
    absl::Duration* const duration = flag == "--timeout" ? &line.timeout : &line.watch;
    if ((flag == "--timeout" || flag == "--watch") &&
        (!absl::ParseDuration(value, duration) || *duration < absl::ZeroDuration())) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": \"", value, "\" is no duration, such as 30s"));
    }
  }
  if (words.size() != 2 || (words[0] != "install" && words[0] != "remove"))
    return absl::InvalidArgumentError("want `install FILE.so` or `remove NAME.so`");
  if (line.into.empty()) return absl::InvalidArgumentError("--into DIR is required");
  line.install = words[0] == "install";
  line.file = words[1];
  return line;
}

// The object as it is in the directory now, kept in a folder of its own until this goes.
class Backup {
 public:
  Backup(const std::string& directory, const std::string& name)
      : directory_(directory), name_(name) {
    std::error_code error;
    folder_ = (fs::temp_directory_path(error) / "outboard-plugin-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
    if (!folder_.empty())
      there_was_ = fs::copy_file(fs::path(directory) / name, fs::path(folder_) / name, error);
  }
  ~Backup() {
    std::error_code error;
    if (!folder_.empty()) fs::remove_all(folder_, error);
  }
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;

  // Puts the directory back.
  bool Restore() const {
    const std::string host = ProgramBeside("outboard-host");
    std::vector<std::string> arguments = {host, "--plugin-dir", directory_};
    if (there_was_) {
      arguments.insert(arguments.end(), {"--install", (fs::path(folder_) / name_).string()});
    } else {
      arguments.insert(arguments.end(), {"--remove", name_});
    }
    return RunProgram(arguments).ok();
  }

 private:
  const std::string directory_, name_;
  std::string folder_;
  bool there_was_ = false;
};

// What the host has said: people's text, and the sets before and after.
struct Changed {
  std::string text, before, after;
};

Changed ReadAnswer(const std::string& output) {
  Changed changed;
  const auto set_of = [](absl::string_view text) { return text == "-" ? "" : std::string(text); };
  for (absl::string_view row : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&row, "set ")) {
      changed.after = set_of(row);
    } else if (absl::ConsumePrefix(&row, "before ")) {
      changed.before = set_of(row);
    } else {
      absl::StrAppend(&changed.text, row, "\n");
    }
  }
  return changed;
}

// Until the awaited instance is in the shim's hands for better or worse, or the time is over.
absl::StatusOr<Progress> Wait(const http::ShimAddress& shim, const Awaited& awaited,
                              absl::Time until) {
  Progress progress;
  while (true) {
    absl::StatusOr<std::string> page = http::GetPage(shim, "/hosts", {}, kPageTimeout);
    if (page.ok()) {
      absl::StatusOr<Progress> now = ProgressOf(*page, awaited);
      if (!now.ok()) return now;
      progress = *std::move(now);
    }
    const bool is_over =
        progress.kind == Progress::Kind::kServes || progress.kind == Progress::Kind::kFailed;
    if (is_over || absl::Now() >= until) return progress;
    absl::SleepFor(kLook);
  }
}

int Fail(const std::string& why) {
  fprintf(stderr, "outboard plugin: %s\n", why.c_str());
  return 1;
}

int Follow(const Line& line, const Awaited& awaited, const Backup& backup) {
  const absl::Time began = absl::Now();
  absl::StatusOr<Progress> progress = Wait(line.shim, awaited, began + line.timeout);
  if (!progress.ok()) return Fail(std::string(progress.status().message()));
  const absl::Time served = absl::Now();
  if (progress->kind == Progress::Kind::kServes) {
    printf("instance %s of host \"%s\" serves, %.2f s after the change\n",
           progress->instance.c_str(), progress->host.c_str(),
           absl::ToDoubleSeconds(served - began));
    puts(progress->shadow.empty() ? "it was compared with no other"
                                  : absl::StrCat("compared: ", progress->shadow).c_str());
    while (progress->kind == Progress::Kind::kServes && absl::Now() < served + line.watch) {
      absl::SleepFor(kLook);
      absl::StatusOr<Progress> now = Wait(line.shim, awaited, absl::Now());
      // A shim that does not answer for a moment says nothing.
      if (now.ok() && now->kind != Progress::Kind::kNotThere) progress = *std::move(now);
    }
    if (progress->kind == Progress::Kind::kServes) return 0;
  }
  if (progress->kind != Progress::Kind::kFailed) {
    return Fail(progress->instance.empty()
                    ? absl::StrCat("the shim has not met an instance with it within ",
                                   absl::FormatDuration(line.timeout),
                                   "; does a host run with --plugin-dir ", line.into, "?")
                    : absl::StrCat("instance ", progress->instance, " is ", progress->state, ": ",
                                   progress->why));
  }
  Fail(
      absl::StrCat("instance ", progress->instance, " was ", progress->state, ": ", progress->why));
  if (!progress->shadow.empty()) Fail(absl::StrCat("compared: ", progress->shadow));
  return Fail(backup.Restore() ? absl::StrCat(line.into, " is as it was before")
                               : absl::StrCat(line.into, " could not be put back as it was"));
}

}  // namespace

int RunPlugin(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument != "-h" && argument != "--help") continue;
    fputs(kHelp, stdout);
    return 0;
  }
  const absl::StatusOr<Line> line = Parse(arguments);
  if (!line.ok()) {
    fprintf(stderr, "outboard plugin: %s\nTry: outboard plugin --help\n",
            std::string(line.status().message()).c_str());
    return 2;
  }
  std::string page;
  if (!line->shim.server.empty()) {
    // Before anything is changed.
    absl::StatusOr<std::string> answer = http::GetPage(line->shim, "/hosts", {}, kPageTimeout);
    if (!answer.ok()) return Fail(std::string(answer.status().message()));
    page = *std::move(answer);
  }
  Awaited awaited;
  awaited.changed = absl::Now();
  const Backup backup(line->into, fs::path(line->file).filename().string());
  absl::StatusOr<std::string> output =
      RunProgram({ProgramBeside("outboard-host"), "--plugin-dir", line->into,
                  line->install ? "--install" : "--remove", line->file});
  // It has said why.
  if (absl::IsFailedPrecondition(output.status())) return 1;
  if (!output.ok()) return Fail(std::string(output.status().message()));
  const Changed changed = ReadAnswer(*output);
  fputs(changed.text.c_str(), stdout);
  fflush(stdout);
  if (line->shim.server.empty()) return 0;
  awaited.set = changed.after;
  // Hosts without objects all look alike: the one that had the former set is meant.
  absl::StatusOr<std::set<std::string>> hosts = HostsWith(page, changed.before);
  if (!hosts.ok()) return Fail(std::string(hosts.status().message()));
  if (!changed.before.empty()) awaited.hosts = *std::move(hosts);
  return Follow(*line, awaited, backup);
}

}  // namespace outboard::author
