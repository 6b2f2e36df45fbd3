#include "plugin_host/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace outboard::plugin_host {

const char kHelp[] =
    R"(outboard-host runs scheduling plugins for outboard-shim and answers it over gRPC.

  outboard-host --listen unix:/run/outboard/host.sock

The host holds no Kubernetes credentials and no state of its own: the shim sends it the cluster,
asks it where a pod can go, and acts. To replace a host while pods are scheduled, start a second
one on another path.

Where to listen:
  --listen unix:PATH        a Unix socket (usual). Removes a stale socket, fails on a live one.
                            {instance} in PATH stands for this instance's id. A shim that watches
                            DIR treats unix:DIR/NAME@{instance}.sock as an instance of host NAME:
                            the newest serves, and the previous one stays ready
                            for a while. Stale sockets of NAME in DIR are removed.
  --listen HOST:PORT        the network, with mutual TLS only: needs the three files below
  --tls-cert FILE           this host's certificate chain, PEM
  --tls-key FILE            its private key, PEM
  --tls-client-ca FILE      the authority that signed the shims' certificates, PEM
  --socket-mode MODE        permissions of the socket: 0600 (default), or 0660 for its group too
  --allowed-uids A,B        users whose processes may connect to the socket (default: this one's and
                            root)

What to serve:
  --plugins A,B             only these plugins; or --plugins=-A,-B, all except these (default: all).
                            If several hosts serve a profile, the shim calls each plugin on the
                            first host in its configuration that serves it.

  --plugin-dir DIR          also the plugins in DIR's shared objects listed in its SHA256SUMS. A change of DIR, or
                            SIGHUP, starts a new instance with the new set next to the old one, in this process;
                            the shim switches to it. Needs --listen unix:PATH with {instance} in it. If any plugin
                            of a set cannot be used, the host logs why, and keeps the current set.

To change DIR instead of serving (`outboard plugin` does this, and waits for the shim):
  --plugin-dir DIR --install FILE.so    tests FILE in this process, then copies it and its digest into DIR
  --plugin-dir DIR --remove FILE.so     removes it

To probe instead of serving:
  --probe --listen unix:PATH
                            exit 0 if the host on this socket answers within 2 s ({instance}: any
                            instance of this container)

To print what is known of nodes instead of serving (`outboard explain node` does this):
  --node-facts FILE         FILE holds a serialized outboard.v1beta1.SyncRequest with nodes and ResourceSlices; prints
                            each fact with its value and its source as JSON
  --price-list FILE         with --node-facts: a price list, as of CostOptimized

How to run:
  --metrics-address ADDRESS Prometheus metrics at http://ADDRESS/metrics (default: off). ADDRESS is
                            127.0.0.1:PORT or [::1]:PORT; with port 0 the log names the port
  --metrics-unprotected     with --metrics-address: ADDRESS may be any IP:PORT, such as 0.0.0.0:10273.
                            Every client that reaches it reads the metrics; only a firewall or a
                            NetworkPolicy protects them
  --slow-plugin-call DURATION
                            log a warning, at most once a minute for each plugin and point, if a
                            plugin takes longer than this for a pod (default 50ms; 0s: never)
  --drain-timeout DURATION  on SIGTERM, how long attempts in progress may take to end (default 20s)
  --v N                     log level; 4 logs every node, pod and term that plugins evaluate
  --version                 print the version
  -h, --help                print this text

`outboard hosts` shows which instances a shim knows, and which of them serves.

Exit codes: 0 after a drain, a change of DIR, a successful probe or printed facts; 1 if it cannot listen, DIR's plugins
or FILE cannot be used, or the probe fails; 2 for an invalid command line.
)";

namespace {

// "A,B" or "-A,-B", not both.
bool ReadPlugins(const std::string& value, Flags* flags) {
  flags->plugins.clear();
  flags->all_but = absl::StartsWith(value, "-");
  for (absl::string_view name : absl::StrSplit(value, ',')) {
    if (absl::ConsumePrefix(&name, "-") != flags->all_but || name.empty()) return false;
    flags->plugins.emplace_back(name);
  }
  return true;
}

// A flag: `store` returns false for an invalid value, and `what` says which are valid. Without
// `store`, a switch.
struct Row {
  const char* names;
  const char* what;
  std::function<bool(const std::string&)> store;
  bool* is_set = nullptr;
};

// Valid values of --listen.
constexpr char kAddress[] = "unix:PATH or HOST:PORT";

// The number of letters to add, remove or change.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row.back();
}

std::vector<Row> Table(Flags* flags) {
  const auto text = [](std::string* into) {
    return [into](const std::string& value) {
      *into = value;
      return !value.empty();
    };
  };
  return {
      {"--listen", kAddress, text(&flags->listen)},
      {"--tls-cert", "a file", text(&flags->tls_cert)},
      {"--tls-key", "a file", text(&flags->tls_key)},
      {"--tls-client-ca", "a file", text(&flags->tls_client_ca)},
      {"--drain-timeout", "a duration such as 20s",
       [flags](const std::string& value) {
         return absl::ParseDuration(value, &flags->drain_timeout) &&
                flags->drain_timeout >= absl::ZeroDuration();
       }},
      {"--slow-plugin-call", "a duration such as 50ms",
       [flags](const std::string& value) {
         return absl::ParseDuration(value, &flags->slow_plugin_call) &&
                flags->slow_plugin_call >= absl::ZeroDuration() &&
                flags->slow_plugin_call < absl::InfiniteDuration();
       }},
      {"--socket-mode", "0600 or 0660",
       [flags](const std::string& value) {
         if (value != "0600" && value != "600" && value != "0660" && value != "660") return false;
         flags->socket_mode = absl::EndsWith(value, "660") ? 0660 : 0600;
         return true;
       }},
      {"--allowed-uids", "numbers of users, such as 0,1000",
       [flags](const std::string& value) {
         flags->allowed_uids.clear();
         for (absl::string_view text : absl::StrSplit(value, ',')) {
           int64_t uid = -1;
           if (!absl::SimpleAtoi(text, &uid) || uid < 0 || uid > 0xffffffff) return false;
           flags->allowed_uids.push_back(uid);
         }
         return true;
       }},
      {"--plugins", "names such as A,B, or -A,-B for all except these",
       [flags](const std::string& value) { return ReadPlugins(value, flags); }},
      {"--plugin-dir", "a folder", text(&flags->plugin_dir)},
      {"--metrics-address", "127.0.0.1:PORT or [::1]:PORT", text(&flags->metrics_address)},
      {"--metrics-unprotected", "", nullptr, &flags->metrics_unprotected},
      {"--install", "a file", text(&flags->install)},
      {"--remove", "a file's name", text(&flags->remove)},
      {"--node-facts", "a file", text(&flags->node_facts)},
      {"--price-list", "a file", text(&flags->price_list)},
      {"--v", "a number, 0 or more",
       [flags](const std::string& value) {
         return absl::SimpleAtoi(value, &flags->verbosity) && flags->verbosity >= 0;
       }},
      {"--probe", "", nullptr, &flags->probe},
      {"--version", "", nullptr, &flags->version},
      {"-h,--help", "", nullptr, &flags->help},
  };
}

// Of "-h,--help" the second.
std::string LongName(const Row& row) {
  const absl::string_view names = row.names;
  return std::string(names.substr(names.rfind(',') + 1));
}

absl::Status WrongArgument(const std::string& text) { return absl::InvalidArgumentError(text); }

// CLI11 splits the arguments; the table stores the values. The last value of a flag counts.
absl::Status Read(const std::vector<std::string>& args, Flags* flags) {
  const std::vector<Row> table = Table(flags);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> options;
  for (const Row& row : table) {
    options.push_back(row.store ? app.add_option(row.names) : app.add_flag(row.names));
    options.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  for (const std::string& arg : args) {
    // CLI11 would use the next argument as the value.
    if (absl::StartsWith(arg, "--") && absl::EndsWith(arg, "="))
      return WrongArgument(absl::StrCat(arg.substr(0, arg.size() - 1), " needs a value"));
  }
  try {  // CLI11 reports errors as exceptions.
    app.parse(
        std::vector<std::string>(args.rbegin(), args.rend()));  // It wants the last one first.
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();  // "--flag: 1 required TEXT missing"
    return WrongArgument(absl::StrCat(message.substr(0, message.find(':')), " needs a value"));
  } catch (const CLI::ParseError& error) {
    return WrongArgument(error.what());
  }
  if (!app.remaining().empty()) {
    const std::string unknown = app.remaining()[0].substr(0, app.remaining()[0].find('='));
    return WrongArgument(
        absl::StrCat("unknown argument ", unknown, DidYouMean(unknown, FlagNames())));
  }
  for (size_t i = 0; i < table.size(); ++i) {
    if (options[i]->count() == 0) continue;
    const std::string value = options[i]->results().back();
    if (table[i].is_set != nullptr) *table[i].is_set = true;
    const std::string name = LongName(table[i]);
    if (!table[i].store && value != "true") return WrongArgument(name + " takes no value");
    if (table[i].store && !table[i].store(value)) {
      return WrongArgument(absl::StrCat(name, " must be ", table[i].what, ", not \"", value, "\""));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> FlagNames() {
  Flags flags;
  std::vector<std::string> names;
  for (const Row& row : Table(&flags)) {
    for (absl::string_view name : absl::StrSplit(row.names, ',')) names.emplace_back(name);
  }
  return names;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kMaxLetters = 2;
  const auto letters = [](absl::string_view text) {
    return absl::AsciiStrToLower(absl::StripPrefix(absl::StripPrefix(text, "-"), "-"));
  };
  const std::string wanted = letters(name);
  const std::string* nearest = nullptr;
  size_t best = std::min(kMaxLetters, wanted.size() / 2) + 1;
  for (const std::string& one : known) {
    const size_t distance = EditDistance(wanted, letters(one));
    if (distance >= best) continue;
    best = distance;
    nearest = &one;
  }
  return nearest == nullptr ? "" : absl::StrCat("; did you mean ", *nearest, "?");
}

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& args) {
  Flags flags;
  if (absl::Status read = Read(args, &flags); !read.ok()) return read;
  if (flags.help || flags.version) return flags;
  if (!flags.node_facts.empty()) {
    if (!flags.listen.empty() || !flags.plugin_dir.empty())
      return absl::InvalidArgumentError(
          "--node-facts FILE needs no other flag, and takes only --price-list FILE");
    return flags;
  }
  if (flags.metrics_unprotected && flags.metrics_address.empty())
    return WrongArgument("--metrics-unprotected needs --metrics-address");
  if (!flags.price_list.empty())
    return absl::InvalidArgumentError("--price-list FILE is for --node-facts FILE");
  if (!flags.install.empty() || !flags.remove.empty()) {
    if (flags.plugin_dir.empty() || !flags.listen.empty() ||
        flags.install.empty() == flags.remove.empty()) {
      return absl::InvalidArgumentError(
          "--install FILE and --remove FILE need --plugin-dir DIR, and no other flag");
    }
    return flags;
  }
  if (flags.listen.empty()) {
    return absl::InvalidArgumentError("--listen is required, for example --listen unix:host.sock");
  }
  const bool is_unix = absl::StartsWith(flags.listen, "unix:");
  if (flags.listen == "unix:" || (!is_unix && !absl::StrContains(flags.listen, ':'))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen must be ", kAddress, ", not \"", flags.listen, "\"",
                     absl::StrContains(flags.listen, '/')
                         ? absl::StrCat("; did you mean unix:", flags.listen, "?")
                         : ""));
  }
  if (flags.probe) {
    if (is_unix) return flags;
    return absl::InvalidArgumentError("--probe needs --listen unix:PATH");
  }
  if (!flags.plugin_dir.empty() && (!is_unix || !absl::StrContains(flags.listen, "{instance}"))) {
    return absl::InvalidArgumentError(
        "--plugin-dir needs --listen unix:PATH with {instance} in it, because each set of plugins "
        "has its own socket; with HOST:PORT, replace the process instead");
  }
  const bool any_tls =
      !flags.tls_cert.empty() || !flags.tls_key.empty() || !flags.tls_client_ca.empty();
  const bool all_tls =
      !flags.tls_cert.empty() && !flags.tls_key.empty() && !flags.tls_client_ca.empty();
  if (is_unix) {
    if (any_tls) {
      return absl::InvalidArgumentError(
          "--tls-cert, --tls-key and --tls-client-ca are for --listen HOST:PORT only");
    }
  } else if (!all_tls) {
    return absl::InvalidArgumentError(
        "--listen HOST:PORT needs --tls-cert, --tls-key and --tls-client-ca: the network mode is "
        "mutual TLS only");
  }
  return flags;
}

}  // namespace outboard::plugin_host
