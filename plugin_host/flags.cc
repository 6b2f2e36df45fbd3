#include "plugin_host/flags.h"

#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

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
asks it where a pod can go, and acts. Start a second one on another path to replace the first while
pods are scheduled.

Where to listen:
  --listen unix:PATH        a Unix socket, the usual way. Removes a stale one, refuses a live one.
                            {instance} in PATH stands for this instance's id. A shim that watches
                            DIR takes unix:DIR/NAME@{instance}.sock for an instance of host NAME:
                            the one that started last serves, and the one before it stays ready
                            for a while. Stale sockets of NAME in DIR are removed.
  --listen HOST:PORT        the network, with mutual TLS only: needs the three files below.
  --tls-cert FILE           this host's certificate chain, PEM
  --tls-key FILE            its private key, PEM
  --tls-client-ca FILE      the authority that signed the shims' certificates, PEM
  --socket-mode MODE        permissions of the socket: 0600 (default), or 0660 for its group too
  --allowed-uids A,B        users whose processes may connect to the socket (default: this one's and
                            root)

What to serve:
  --plugins A,B             only these plugins; or --plugins=-A,-B, all but these. By default all.
                            Where several hosts serve a profile, the shim gives each plugin to the
                            first host in its configuration that serves it.

  --plugin-dir DIR          also the plugins of DIR's shared objects that its SHA256SUMS names. A change of DIR, or
                            SIGHUP, starts a new instance with the new set beside the old one, in this process; the
                            shim puts it in the old one's place. Needs --listen unix:PATH with {instance} in it. A
                            set that cannot be used as a whole is refused with the reason, and changes nothing.

Changing what DIR holds, instead of serving (`outboard plugin` does that, and waits for the shim):
  --plugin-dir DIR --install FILE.so    tries FILE out in this process, then puts it and its digest into DIR
  --plugin-dir DIR --remove FILE.so     takes it away

Asking, instead of serving:
  --probe --listen unix:PATH  exit 0 if the host that listens there answers within 2 s ({instance}: any of
                            this container's)

How to run:
  --metrics-address ADDRESS Prometheus' text at http://ADDRESS/metrics (default: nowhere). ADDRESS is
                            127.0.0.1:PORT or [::1]:PORT; with port 0 the log tells which it became
  --drain-timeout DURATION  on SIGTERM, how long attempts under way may take to end (default 20s)
  --v N                     log level; 4 logs every node, pod and term that plugins look at
  --help, --version

`outboard hosts` shows which instances a shim knows, and which of them serves.

Exit codes: 0 after a drain, a change of DIR or an answer, 1 if it cannot listen, DIR's plugins cannot be used or nobody
answers, 2 for a wrong command line.
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

}  // namespace

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& args) {
  Flags flags;
  auto text = [](std::string* into) {
    return [into](const std::string& value) {
      *into = value;
      return !value.empty();
    };
  };
  const std::map<std::string, std::function<bool(const std::string&)>> values = {
      {"--listen", text(&flags.listen)},
      {"--tls-cert", text(&flags.tls_cert)},
      {"--tls-key", text(&flags.tls_key)},
      {"--tls-client-ca", text(&flags.tls_client_ca)},
      {"--drain-timeout",
       [&](const std::string& value) {
         return absl::ParseDuration(value, &flags.drain_timeout) &&
                flags.drain_timeout >= absl::ZeroDuration();
       }},
      {"--socket-mode",
       [&](const std::string& value) {
         if (value != "0600" && value != "600" && value != "0660" && value != "660") return false;
         flags.socket_mode = absl::EndsWith(value, "660") ? 0660 : 0600;
         return true;
       }},
      {"--allowed-uids",
       [&](const std::string& value) {
         flags.allowed_uids.clear();
         for (absl::string_view text : absl::StrSplit(value, ',')) {
           int64_t uid = -1;
           if (!absl::SimpleAtoi(text, &uid) || uid < 0 || uid > 0xffffffff) return false;
           flags.allowed_uids.push_back(uid);
         }
         return true;
       }},
      {"--plugins", [&](const std::string& value) { return ReadPlugins(value, &flags); }},
      {"--plugin-dir", text(&flags.plugin_dir)},
      {"--metrics-address", text(&flags.metrics_address)},
      {"--install", text(&flags.install)},
      {"--remove", text(&flags.remove)},
      {"--v",
       [&](const std::string& value) {
         return absl::SimpleAtoi(value, &flags.verbosity) && flags.verbosity >= 0;
       }},
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--help" || args[i] == "-h") {
      flags.help = true;
      continue;
    }
    if (args[i] == "--probe") {
      flags.probe = true;
      continue;
    }
    if (args[i] == "--version") {
      flags.version = true;
      continue;
    }
    const size_t equals = args[i].find('=');
    const std::string name = args[i].substr(0, equals);
    auto flag = values.find(name);
    if (flag == values.end()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown argument ", args[i]));
    }
    std::string value;
    if (equals != std::string::npos) {
      value = args[i].substr(equals + 1);
    } else if (i + 1 < args.size()) {
      value = args[++i];
    } else {
      return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
    }
    if (!flag->second(value)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", value, "\" is no value for ", name));
    }
  }
  if (flags.help || flags.version) return flags;
  if (!flags.install.empty() || !flags.remove.empty()) {
    if (flags.plugin_dir.empty() || !flags.listen.empty() ||
        flags.install.empty() == flags.remove.empty()) {
      return absl::InvalidArgumentError(
          "--install FILE and --remove FILE want --plugin-dir DIR, and nothing else");
    }
    return flags;
  }
  if (flags.listen.empty()) {
    return absl::InvalidArgumentError("--listen is required, for example --listen unix:host.sock");
  }
  if (flags.probe) {
    if (absl::StartsWith(flags.listen, "unix:")) return flags;
    return absl::InvalidArgumentError("--probe wants --listen unix:PATH");
  }
  if (!flags.plugin_dir.empty() && (!absl::StartsWith(flags.listen, "unix:") ||
                                    !absl::StrContains(flags.listen, "{instance}"))) {
    return absl::InvalidArgumentError(
        "--plugin-dir needs --listen unix:PATH with {instance} in it, since each set of plugins "
        "gets a "
        "socket of its own; behind HOST:PORT, replace the process instead");
  }
  const bool any_tls =
      !flags.tls_cert.empty() || !flags.tls_key.empty() || !flags.tls_client_ca.empty();
  const bool all_tls =
      !flags.tls_cert.empty() && !flags.tls_key.empty() && !flags.tls_client_ca.empty();
  if (absl::StartsWith(flags.listen, "unix:")) {
    if (any_tls) return absl::InvalidArgumentError("TLS files are for --listen HOST:PORT only");
  } else if (!all_tls) {
    return absl::InvalidArgumentError(
        "--listen HOST:PORT needs --tls-cert, --tls-key and --tls-client-ca: the network mode is "
        "mutual TLS only");
  }
  return flags;
}

}  // namespace outboard::plugin_host
