#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/command_line.h"
#include "cli/plugin/commands.h"
#include "cli/plugin/program.h"
#include "cli/plugin/replacement.h"
#include "shim/http/client.h"

namespace outboard::plugin_command {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPageTimeout = absl::Seconds(10);
constexpr absl::Duration kLook = absl::Milliseconds(20);

absl::StatusOr<PluginLine> ParsePlugin(const std::vector<std::string>& arguments) {
  PluginLine line;
  config::FlagTable flags = PluginFlags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  if (line.help) return line;
  const std::vector<std::string>& words = flags.words();
  const bool has_verb = !words.empty() && (words[0] == "install" || words[0] == "remove");
  if (words.size() < 2 || !has_verb) {
    constexpr char kWanted[] = "the arguments must be: install FILE.so, or remove NAME.so";
    return absl::InvalidArgumentError(
        words.empty() || has_verb
            ? kWanted
            : absl::StrCat("unexpected argument \"", words[0], "\"; ", kWanted));
  }
  if (absl::Status count = flags.CheckWordCount(2); !count.ok()) return count;
  if (line.into.empty()) return absl::InvalidArgumentError("--into DIR is required");
  line.install = words[0] == "install";
  line.file = words[1];
  return line;
}

// A copy of the directory's current object in a temporary folder. Lifetime: the destructor removes
// it.
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

  // Restores the directory. False: failed.
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

// The output of `outboard-host --install`: its text, and the digests of the sets before and after.
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

// Waits until the awaited instance serves or has failed, or until `until`.
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

int Follow(const PluginLine& line, const Awaited& awaited, const Backup& backup) {
  const absl::Time began = absl::Now();
  absl::StatusOr<Progress> progress = Wait(line.shim, awaited, began + line.timeout);
  if (!progress.ok()) return Fail(std::string(progress.status().message()));
  const absl::Time served = absl::Now();
  if (progress->kind == Progress::Kind::kServes) {
    printf("instance %s of host \"%s\" serves, %.2f s after the change\n",
           progress->instance.c_str(), progress->host.c_str(),
           absl::ToDoubleSeconds(served - began));
    puts(progress->shadow.empty() ? "not compared with another instance"
                                  : absl::StrCat("compared: ", progress->shadow).c_str());
    while (progress->kind == Progress::Kind::kServes && absl::Now() < served + line.watch) {
      absl::SleepFor(kLook);
      absl::StatusOr<Progress> now = Wait(line.shim, awaited, absl::Now());
      // Ignore a shim that does not answer for a moment.
      if (now.ok() && now->kind != Progress::Kind::kNotThere) progress = *std::move(now);
    }
    if (progress->kind == Progress::Kind::kServes) return 0;
  }
  if (progress->kind != Progress::Kind::kFailed) {
    return Fail(progress->instance.empty()
                    ? absl::StrCat("the shim found no instance with the new set within ",
                                   absl::FormatDuration(line.timeout),
                                   "; does a host run with --plugin-dir ", line.into, "?")
                    : absl::StrCat("instance ", progress->instance, " is ", progress->state, ": ",
                                   progress->why));
  }
  Fail(
      absl::StrCat("instance ", progress->instance, " was ", progress->state, ": ", progress->why));
  if (!progress->shadow.empty()) Fail(absl::StrCat("compared: ", progress->shadow));
  return Fail(backup.Restore() ? absl::StrCat(line.into, " is restored")
                               : absl::StrCat(line.into, " could not be restored"));
}

}  // namespace

const char kPluginHelp[] = R"(outboard plugin: change the plugins of a host while it serves

For plugins as shared objects, in a host that runs with --plugin-dir DIR. A separate process tries the object first. It
refuses an object that was built for another release, lacks a symbol, or has a plugin of another object; then nothing
changes. Otherwise the host starts an instance with the new set beside the serving one. The shim syncs the new instance,
compares the answers of both, and switches to the new one.

Usage:
  outboard plugin install FILE.so --into DIR [flags]     copies FILE into DIR; replaces a file of the same name
  outboard plugin remove NAME.so --into DIR [flags]

Flags:
  --into DIR             The host's --plugin-dir
  --server ADDRESS       The shim's servingAddress, or https:// and its secureServing. Waits until the shim schedules
                         with the new set, and prints the time and the result of the comparison. If the shim refuses or
                         quarantines the new instance, restores DIR. Default: do not wait
)" OUTBOARD_CREDENTIAL_FLAGS_HELP R"(
  --timeout DURATION     How long to wait until the new instance serves (default: 1m)
  --watch DURATION       How long to watch the new instance after that (default: 0s)
  -h, --help             Print this text

A plugin takes effect only if the shim's configuration enables it. Plugins in other languages are plugin hosts of their
own: start the new host beside the old one.

Exit codes: 0 done, and with --server: the new set serves; 1 refused, quarantined, or not yet in use; 2 invalid usage.
)";

config::FlagTable PluginFlags(PluginLine* line) {
  config::FlagTable flags;
  cli::AddShimFlags(&flags, &line->shim);
  line->shim.server = "";
  flags.Text("--into", &line->into);
  flags.Duration("--timeout", &line->timeout);
  flags.Duration("--watch", &line->watch);
  return flags;
}

int RunPlugin(const std::vector<std::string>& arguments) {
  const absl::StatusOr<PluginLine> line = ParsePlugin(arguments);
  if (!line.ok()) return cli::UsageError("plugin", line.status());
  if (line->help) {
    fputs(kPluginHelp, stdout);
    return 0;
  }
  std::string page;
  if (!line->shim.server.empty()) {
    // Before any change.
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
  // The program has printed the reason.
  if (absl::IsFailedPrecondition(output.status())) return 1;
  if (!output.ok()) return Fail(std::string(output.status().message()));
  const Changed changed = ReadAnswer(*output);
  fputs(changed.text.c_str(), stdout);
  fflush(stdout);
  if (line->shim.server.empty()) return 0;
  awaited.set = changed.after;
  // Hosts without objects look the same: wait for a host that had the former set.
  absl::StatusOr<std::set<std::string>> hosts = HostsWith(page, changed.before);
  if (!hosts.ok()) return Fail(std::string(hosts.status().message()));
  if (!changed.before.empty()) awaited.hosts = *std::move(hosts);
  return Follow(*line, awaited, backup);
}

}  // namespace outboard::plugin_command
