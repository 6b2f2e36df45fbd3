#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/command_line.h"
#include "cli/config/asked_hosts.h"
#include "cli/plugin/commands.h"
#include "cli/plugin/program.h"
#include "shim/config/default_plugins.h"

namespace outboard::plugin_command {
namespace {

namespace fs = std::filesystem;

// The package of which this program is a part: share/ is beside bin/. Empty: a source tree.
std::string PackageFolder() {
  std::error_code error;
  const fs::path package = fs::path(OwnFolder()).parent_path();
  return fs::is_directory(package / "share/outboard/templates", error) ? package.string() : "";
}

// The templates are in the package, or in the source tree above build/PRESET/bin.
std::string TemplateFolder(const std::string& language) {
  std::error_code error;
  const std::string package = PackageFolder();
  const fs::path templates = package.empty() ? fs::path(OwnFolder()) / "../../../sdk/templates"
                                             : fs::path(package) / "share/outboard/templates";
  return fs::is_directory(templates / language, error)
             ? (templates / language).lexically_normal().string()
             : "";
}

// Empty if outboard-host cannot be asked.
std::vector<std::string> PluginsOfOurHost() {
  const absl::StatusOr<config_command::AskedHosts> hosts = config_command::AskedHosts::StartOwn();
  return hosts.ok() ? hosts->PluginNames() : std::vector<std::string>();
}

}  // namespace

const char kNewHelp[] = R"(outboard new plugin: start a plugin

Writes a folder with a working plugin: a filter, a score, an argument, a test, a Dockerfile, and a README that explains
how to build, try and use it. The plugin in C++ prefers cheap nodes, the one in Python nodes with the pod's dataset.

Usage:
  outboard new plugin NAME --language cpp|python [--dir DIR]

NAME is the plugin's name in configurations, in CamelCase, such as PriceScore. No plugin of outboard-host has this name.

Flags:
  --language LANGUAGE    cpp: a shared object, which outboard-host loads; python: a plugin host of its own
  --dir DIR              The folder to create (default: NAME in lower case with underscores). Must not exist
  -h, --help             Print this text

Exit codes: 0 the folder is written; 1 it cannot be written; 2 invalid usage.

Example:
  outboard new plugin PriceScore --language python
)";

config::FlagTable NewFlags(NewLine* line) {
  config::FlagTable flags;
  flags.Choice("--language", {"cpp", "python"}, &line->language,
               " (for other languages see the contract in share/outboard/proto)");
  flags.Text("--dir", &line->dir);
  return flags;
}

absl::Status CheckPluginName(absl::string_view name) {
  const bool ok = name.size() >= 2 && name.size() <= 50 && absl::ascii_isupper(name[0]) &&
                  std::all_of(name.begin(), name.end(), absl::ascii_isalnum);
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", name,
                                                 "\" is not a plugin name: an upper-case letter, "
                                                 "then letters and digits, such as PriceScore"));
}

absl::Status CheckNotServed(const std::string& name, const std::vector<std::string>& served) {
  if (!absl::c_linear_search(served, name) && !config::IsUpstreamPlugin(name))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is a plugin of outboard-host or kube-scheduler; choose another name",
      served.empty() ? "" : ". Names in use: ", absl::StrJoin(served, ", ")));
}

std::string NextSteps(const NewLine& line, const std::string& name, const std::string& package) {
  const bool is_cpp = line.language == "cpp";
  const std::string where = package.empty()
                                ? "PACKAGE is the package that `./dev package` writes, unpacked"
                                : absl::StrCat("PACKAGE is ", package);
  return absl::StrCat(
      line.dir, "/ contains ", name, ", a working plugin: it ",
      is_cpp ? "keeps pods off nodes that cost too much" : "prefers nodes with the pod's dataset",
      ".\n", line.dir, "/README.md says how to build, test and use it; ", where, ".\n");
}

Names NamesOf(absl::string_view name) {
  Names names;
  names.camel = std::string(name);
  for (size_t i = 0; i < name.size(); ++i) {
    // A word starts after a lower-case letter or digit, or with the last of several capitals.
    const bool begins = i > 0 && absl::ascii_isupper(name[i]) &&
                        (!absl::ascii_isupper(name[i - 1]) ||
                         (i + 1 < name.size() && absl::ascii_islower(name[i + 1])));
    if (begins) names.snake += '_';
    names.snake += absl::ascii_tolower(name[i]);
  }
  names.dashes = absl::StrReplaceAll(names.snake, {{"_", "-"}});
  return names;
}

std::string FillTemplate(absl::string_view text, const Names& names) {
  return absl::StrReplaceAll(text, {{"ExamplePlugin", names.camel},
                                    {"example_plugin", names.snake},
                                    {"EXAMPLE_PLUGIN", absl::AsciiStrToUpper(names.snake)},
                                    {"example-plugin", names.dashes}});
}

absl::Status CopyTemplate(const std::string& from, const Names& names, const std::string& into) {
  std::error_code error;
  if (fs::symlink_status(into, error).type() != fs::file_type::not_found)
    return absl::AlreadyExistsError(absl::StrCat(into, " already exists"));
  const auto failed = [&](const fs::path& path) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path.string(), error ? ": " : "",
                                               error ? error.message() : ""));
  };
  fs::create_directories(into, error);
  if (error) return failed(into);
  for (fs::recursive_directory_iterator entries(from, error), end; !error && entries != end;
       entries.increment(error)) {
    const fs::path inner = fs::relative(entries->path(), from, error);
    if (error || absl::StrContains(inner.string(), "__pycache__")) continue;
    const fs::path target = fs::path(into) / FillTemplate(inner.string(), names);
    if (entries->is_directory()) {
      fs::create_directories(target, error);
      if (error) return failed(target);
      continue;
    }
    std::stringstream text;
    text << std::ifstream(entries->path(), std::ios::binary).rdbuf();
    std::ofstream out(target, std::ios::binary);
    out << FillTemplate(text.str(), names);
    if (!out.flush()) return failed(target);
  }
  if (error) return absl::NotFoundError(absl::StrCat("cannot read ", from, ": ", error.message()));
  return absl::OkStatus();
}

int RunNew(const std::vector<std::string>& arguments) {
  NewLine line;
  config::FlagTable flags = NewFlags(&line);
  absl::Status usage = flags.Parse(arguments);
  const std::vector<std::string>& words = flags.words();
  if (usage.ok() && flags.help()) {
    fputs(kNewHelp, stdout);
    return 0;
  }
  if (usage.ok() && (words.size() < 2 || words[0] != "plugin")) {
    constexpr char kWanted[] = "the arguments must be: plugin NAME --language LANGUAGE";
    usage = absl::InvalidArgumentError(
        words.empty() || words[0] == "plugin"
            ? kWanted
            : absl::StrCat("unexpected argument \"", words[0], "\"; ", kWanted));
  }
  if (usage.ok()) usage = flags.CheckWordCount(2);
  if (usage.ok()) usage = CheckPluginName(words[1]);
  if (usage.ok()) usage = CheckNotServed(words[1], PluginsOfOurHost());
  if (usage.ok() && line.language.empty())
    usage = absl::InvalidArgumentError("--language cpp or --language python is required");
  if (!usage.ok()) return cli::UsageError("new", usage);
  const Names names = NamesOf(words[1]);
  if (line.dir.empty()) line.dir = names.snake;
  const std::string from = TemplateFolder(line.language);
  const absl::Status copied =
      from.empty()
          ? absl::NotFoundError("no templates in ../share/outboard, and this is not a source tree")
          : CopyTemplate(from, names, line.dir);
  if (!copied.ok()) {
    fprintf(stderr, "outboard new: %s\n", std::string(copied.message()).c_str());
    return 1;
  }
  fputs(NextSteps(line, names.camel, PackageFolder()).c_str(), stdout);
  return 0;
}

}  // namespace outboard::plugin_command
