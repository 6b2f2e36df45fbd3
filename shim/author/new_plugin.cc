#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shim/author/commands.h"
#include "shim/author/program.h"

namespace outboard::author {
namespace {

namespace fs = std::filesystem;

constexpr char kHelp[] = R"(outboard new plugin: begin a plugin

Writes a folder with a plugin that works as it stands: a filter, a score, an argument, a test, a Dockerfile and a README that says
how it is built and put to use.

Usage:
  outboard new plugin NAME --language cpp|python [--dir DIR]

NAME is as in configurations: CamelCase, such as PriceScore.

Flags:
  --language LANGUAGE    cpp: a shared object, which outboard-host loads; python: a host of its own
  --dir DIR              The folder to make (default: NAME in lower case with underscores, here). Must not exist
  -h, --help             This text

Exit codes: 0 it is there; 1 it cannot be written; 2 wrong usage.

Example:
  outboard new plugin PriceScore --language python
)";

// Where templates are: with the package (bin/ beside share/), or in the source tree above
// build/PRESET/bin.
std::string TemplateFolder(const std::string& language) {
  std::error_code error;
  for (const char* place : {"/../share/outboard/templates/", "/../../../sdk/templates/"}) {
    const std::string folder = absl::StrCat(OwnFolder(), place, language);
    if (fs::is_directory(folder, error)) return fs::path(folder).lexically_normal().string();
  }
  return "";
}

int Usage(const std::string& fault) {
  fprintf(stderr, "outboard new: %s\nTry: outboard new plugin --help\n", fault.c_str());
  return 2;
}

}  // namespace

absl::Status CheckPluginName(absl::string_view name) {
  const bool ok = name.size() >= 2 && name.size() <= 50 && absl::ascii_isupper(name[0]) &&
                  std::all_of(name.begin(), name.end(), absl::ascii_isalnum);
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name,
      "\" is no plugin's name: an upper-case letter, then letters and digits, such as PriceScore"));
}

Names NamesOf(absl::string_view name) {
  Names names;
  names.camel = std::string(name);
  for (size_t i = 0; i < name.size(); ++i) {
    // A word begins after a lower-case letter or digit, or with the last capital of several.
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
    return absl::AlreadyExistsError(absl::StrCat(into, " is there already"));
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
  std::string language, into;
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (flag == "-h" || flag == "--help") {
      fputs(kHelp, stdout);
      return 0;
    }
    if (!absl::StartsWith(flag, "-")) {
      words.push_back(flag);
      continue;
    }
    const size_t equals = flag.find('=');
    const std::string name = flag.substr(0, equals);
    if (name != "--language" && name != "--dir") return Usage(absl::StrCat("unknown flag ", name));
    if (equals == std::string::npos && i + 1 == arguments.size())
      return Usage(absl::StrCat(name, " needs a value"));
    (name == "--dir" ? into : language) =
        equals != std::string::npos ? flag.substr(equals + 1) : arguments[++i];
  }
  if (words.size() != 2 || words[0] != "plugin") return Usage("want `plugin` and a name");
  if (absl::Status name = CheckPluginName(words[1]); !name.ok())
    return Usage(std::string(name.message()));
  if (language != "cpp" && language != "python")
    return Usage(
        "--language must be cpp or python; for others see the contract in share/outboard/proto");
  const Names names = NamesOf(words[1]);
  if (into.empty()) into = names.snake;
  const std::string from = TemplateFolder(language);
  absl::Status copied =
      from.empty() ? absl::NotFoundError(
                         "the templates are neither in ../share/outboard nor in a source tree")
                   : CopyTemplate(from, names, into);
  if (!copied.ok()) {
    fprintf(stderr, "outboard new: %s\n", std::string(copied.message()).c_str());
    return 1;
  }
  printf(
      "%s/ has %s, which works as it is: keeps pods off nodes that cost too much.\nHow to build, "
      "test and use it: %s/README.md\n",
      into.c_str(), names.camel.c_str(), into.c_str());
  return 0;
}

}  // namespace outboard::author
