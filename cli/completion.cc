#include "cli/completion.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace outboard::cli {
namespace {

using Flag = config::FlagTable::Flag;
using Commands = std::vector<CompletedCommand>;

// In single quotes for a shell.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string AllNames(const CompletedCommand& command) {
  std::vector<std::string> names;
  for (const Flag& flag : command.flags)
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  return absl::StrJoin(names, " ");
}

std::string NamesOf(const Commands& commands) {
  return absl::StrJoin(commands, " ", [](std::string* out, const CompletedCommand& command) {
    absl::StrAppend(out, command.name);
  });
}

std::string Bash(const Commands& commands) {
  std::string values, flags;
  for (const CompletedCommand& command : commands) {
    std::map<std::string, std::vector<std::string>> patterns;  // by choices
    for (const Flag& flag : command.flags) {
      if (!flag.takes_value) continue;
      for (const std::string& name : flag.names)
        patterns[absl::StrJoin(flag.choices, " ")].push_back(absl::StrCat(command.name, ":", name));
    }
    for (const auto& [choices, names] : patterns) {
      absl::StrAppend(&values, "    ", absl::StrJoin(names, " | "), ") choices=", Quoted(choices),
                      " ;;\n");
    }
    absl::StrAppend(&flags, "    ", command.name, ") flags=", Quoted(AllNames(command)),
                    " words=", Quoted(absl::StrJoin(command.words, " ")), " ;;\n");
  }
  return absl::StrCat(R"(# Completion of outboard for bash. Now: source <(outboard completion bash)
# For every shell: outboard completion bash >~/.local/share/bash-completion/completions/outboard
_outboard() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} choices=none flags= words=
  COMPREPLY=()
  # bash takes --flag=value apart.
  [[ $word != '=' ]] || word=
  [[ $previous != '=' ]] || previous=${COMP_WORDS[COMP_CWORD-2]}
  if [[ $COMP_CWORD == 1 ]]; then
    mapfile -t COMPREPLY < <(compgen -W ')",
                      NamesOf(commands), R"( --help --version' -- "$word")
    return
  fi
  case ${COMP_WORDS[1]}:$previous in
)",
                      values, R"(  esac
  case ${COMP_WORDS[1]} in
)",
                      flags, R"(  esac
  # Without an entry of its own, bash completes file names.
  if [[ $choices != none ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  elif [[ $COMP_CWORD == 2 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  fi
}
complete -o default -F _outboard outboard
)");
}

std::string Zsh(const Commands& commands) {
  std::string described, cases;
  for (const CompletedCommand& command : commands) {
    // A colon ends the name.
    absl::StrAppend(
        &described, "    ",
        Quoted(absl::StrCat(command.name, ":", absl::StrReplaceAll(command.line, {{":", "\\:"}}))),
        "\n");
    absl::StrAppend(&cases, "    ", command.name, ")\n      _arguments");
    for (const Flag& flag : command.flags) {
      for (const std::string& name : flag.names) {
        const std::string action = flag.choices.empty()
                                       ? "_files"
                                       : absl::StrCat("(", absl::StrJoin(flag.choices, " "), ")");
        const std::string value =
            flag.takes_value
                ? absl::StrCat(absl::StartsWith(name, "--") ? "=" : "", ":value:", action)
                : "";
        absl::StrAppend(&cases, " \\\n        ", Quoted(absl::StrCat("*", name, value)));
      }
    }
    if (!command.words.empty()) {
      absl::StrAppend(&cases, " \\\n        ",
                      Quoted(absl::StrCat("1:word:(", absl::StrJoin(command.words, " "), ")")));
    }
    absl::StrAppend(&cases, " \\\n        '*:file:_files'\n      ;;\n");
  }
  return absl::StrCat(R"(#compdef outboard
# Completion of outboard for zsh. Now: source <(outboard completion zsh)
# For every shell: outboard completion zsh >"${fpath[1]}/_outboard"
_outboard() {
  local -a commands
  commands=(
)",
                      described, R"(  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=${words[2]}
  shift words
  ((CURRENT--))
  case $command in
)",
                      cases, R"(  esac
}
if [[ ${funcstack[1]:-} == _outboard ]]; then
  _outboard "$@"
else
  compdef _outboard outboard
fi
)");
}

std::string Fish(const Commands& commands) {
  std::string script = R"(# Completion of outboard for fish. Now: outboard completion fish | source
# For every shell: outboard completion fish >~/.config/fish/completions/outboard.fish
complete -c outboard -n __fish_use_subcommand -f
complete -c outboard -n __fish_use_subcommand -l help -l version
)";
  for (const CompletedCommand& command : commands) {
    absl::StrAppend(&script, "complete -c outboard -n __fish_use_subcommand -a ", command.name,
                    " -d ", Quoted(command.line), "\n");
    const std::string here =
        absl::StrCat("complete -c outboard -n ",
                     Quoted(absl::StrCat("__fish_seen_subcommand_from ", command.name)));
    if (!command.words.empty())
      absl::StrAppend(&script, here, " -a ", Quoted(absl::StrJoin(command.words, " ")), "\n");
    for (const Flag& flag : command.flags) {
      absl::StrAppend(&script, here);
      for (const std::string& name : flag.names) {
        absl::StrAppend(&script, absl::StartsWith(name, "--")
                                     ? absl::StrCat(" -l ", name.substr(2))
                                     : absl::StrCat(" -s ", name.substr(1)));
      }
      if (!flag.choices.empty()) {
        absl::StrAppend(&script, " -x -a ", Quoted(absl::StrJoin(flag.choices, " ")));
      } else if (flag.takes_value) {
        absl::StrAppend(&script, " -r");
      }
      absl::StrAppend(&script, "\n");
    }
  }
  return script;
}

}  // namespace

const std::vector<std::string>& CompletedShells() {
  static const auto& shells = *new std::vector<std::string>{"bash", "zsh", "fish"};
  return shells;
}

std::string CompletionScript(absl::string_view shell, const Commands& commands) {
  if (shell == "bash") return Bash(commands);
  return shell == "zsh" ? Zsh(commands) : Fish(commands);
}

}  // namespace outboard::cli
