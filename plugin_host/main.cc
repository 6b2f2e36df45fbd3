// outboard-host: flags → plugins → instances → wait for a signal or another set of plugins → drain.
#include <elf.h>
#include <errno.h>
#include <glog/logging.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "logging/log_to_stderr.h"
#include "plugin_host/flags.h"
#include "plugin_host/metrics/metrics_server.h"
#include "plugin_host/metrics/prometheus_metrics.h"
#include "plugin_host/node_facts_output.h"
#include "plugin_host/reload/directory_watch.h"
#include "plugin_host/reload/install.h"
#include "plugin_host/reload/instances.h"
#include "plugin_host/runtime/plugin_times.h"
#include "plugin_host/services/listen_address.h"
#include "plugin_host/services/probe.h"
#include "plugins/builtin_plugins.h"

namespace outboard::plugin_host {
namespace {

constexpr int kExitCannotServe = 1;
constexpr int kExitUsage = 2;
constexpr unsigned kCertificateReloadSeconds = 10;
constexpr int kSettleMillis = 100;
constexpr int kRetireMillis = 1000;
constexpr absl::Duration kProbeTimeout = absl::Seconds(2);

// Errors: NOT_FOUND for a file without content, which gRPC would wait for.
absl::Status CheckTlsFile(const char* flag, const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!text.str().empty()) return absl::OkStatus();
  // Of a directory only reading fails.
  return absl::NotFoundError(
      absl::StrCat(flag, " ", path, ": ", errno == 0 ? "the file is empty" : strerror(errno)));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const Flags& flags,
                                                                         bool is_unix) {
  if (is_unix) return std::shared_ptr<grpc::ServerCredentials>();
  for (const auto& [flag, file] :
       {std::pair("--tls-cert", flags.tls_cert), std::pair("--tls-key", flags.tls_key),
        std::pair("--tls-client-ca", flags.tls_client_ca)}) {
    if (absl::Status read = CheckTlsFile(flag, file); !read.ok()) return read;
  }
  // New connections see new certificates within the period.
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      flags.tls_key, flags.tls_cert, flags.tls_client_ca, kCertificateReloadSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

// The plugins that the flags ask for.
absl::Status Choose(const Flags& flags, const sdk::PluginRegistry& all,
                    sdk::PluginRegistry* chosen) {
  for (const std::string& name : flags.plugins) {
    if (all.Find(name) != nullptr) continue;
    std::vector<std::string> known;
    for (const auto& [known_name, descriptor] : all.descriptors()) known.push_back(known_name);
    std::string hint = DidYouMean(name, known);
    if (hint.empty()) hint = absl::StrCat("; available: ", absl::StrJoin(known, ", "));
    return absl::NotFoundError(absl::StrCat("--plugins: unknown plugin ", name, hint));
  }
  for (const auto& [name, descriptor] : all.descriptors()) {
    const bool is_named = absl::c_linear_search(flags.plugins, name);
    if (!flags.plugins.empty() && is_named == flags.all_but) continue;
    if (absl::Status added = chosen->Add(descriptor); !added.ok()) return added;
  }
  return absl::OkStatus();
}

// The linker's build id of this program, in hexadecimal; empty if it has none.
std::string BuildId() {
  std::string id;
  const auto visit = [](dl_phdr_info* program, size_t, void* out) {
    for (int i = 0; i < program->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = program->dlpi_phdr[i];
      if (header.p_type != PT_NOTE) continue;
      const char* at = reinterpret_cast<const char*>(program->dlpi_addr + header.p_vaddr);
      const char* const end = at + header.p_memsz;
      const auto padded = [](ElfW(Word) size) { return (size + 3) & ~ElfW(Word){3}; };
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
        const char* const name = at + sizeof(*note);
        const char* const bytes = name + padded(note->n_namesz);
        if (note->n_type == NT_GNU_BUILD_ID &&
            absl::string_view(name, note->n_namesz) == absl::string_view("GNU\0", 4)) {
          *static_cast<std::string*>(out) =
              absl::BytesToHexString(absl::string_view(bytes, note->n_descsz));
        }
        at = bytes + padded(note->n_descsz);
      }
    }
    return 1;  // The first is the program itself.
  };
  dl_iterate_phdr(visit, &id);
  return id;
}

// Without --plugin-dir only signals.
struct Watched {
  std::unique_ptr<reload::DirectoryWatch> directory;
  int signals = -1;  // a signalfd
};

std::string WarningAbout(const std::string& directory, const absl::Status& why) {
  return absl::StrCat("--plugin-dir ", directory,
                      ": refused, nothing has changed: ", why.message());
}

// Logs why a directory is refused; the same reason only once.
void Refused(const std::string& directory, const absl::Status& why, std::string* last) {
  if (*last == why.message()) return;
  *last = std::string(why.message());
  LOG(ERROR) << WarningAbout(directory, why);
}

// Runs until SIGTERM or SIGINT; returns the signal.
int Watch(const Flags& flags, const Watched& watched, reload::Instances* instances) {
  std::string refused;
  bool dirty = false;
  while (true) {
    pollfd wanted[] = {{watched.signals, POLLIN, 0},
                       {watched.directory == nullptr ? -1 : watched.directory->fd(), POLLIN, 0}};
    // Waits until several changes of files in a row are complete.
    const int timeout = dirty ? kSettleMillis : instances->superseded() ? kRetireMillis : -1;
    const int ready = poll(wanted, 2, timeout);
    if (ready < 0 && errno != EINTR) return 0;
    if ((wanted[0].revents & POLLIN) != 0) {
      signalfd_siginfo info;
      if (read(watched.signals, &info, sizeof(info)) != sizeof(info)) return 0;
      if (info.ssi_signo != SIGHUP) return static_cast<int>(info.ssi_signo);
      refused.clear();
      dirty = watched.directory != nullptr;
    }
    if ((wanted[1].revents & POLLIN) != 0) {
      watched.directory->Clear();
      dirty = true;
      continue;
    }
    if (dirty && ready == 0) {
      dirty = false;
      const absl::StatusOr<bool> refreshed = instances->Refresh();
      if (refreshed.ok()) refused.clear();
      if (!refreshed.ok()) Refused(flags.plugin_dir, refreshed.status(), &refused);
      instances->SetWarning(refreshed.ok() ? ""
                                           : WarningAbout(flags.plugin_dir, refreshed.status()));
    }
    instances->Retire(absl::Now());
  }
}

int Serve(const Flags& flags, const sigset_t& signals, const sdk::PluginRegistry& builtin) {
  const absl::StatusOr<services::ListenAddress> address =
      services::ListenAddress::Parse(flags.listen);
  if (!address.ok()) {
    std::cerr << "outboard-host: --listen: " << address.status().message() << "\n";
    return kExitUsage;
  }
  if (flags.plugin_dir.empty()) {
    sdk::PluginRegistry chosen;
    if (absl::Status known = Choose(flags, builtin, &chosen); !known.ok()) {
      std::cerr << "outboard-host: " << known.message() << "\n";
      return kExitUsage;
    }
  }
  reload::Instances::Options options;
  options.listen = flags.listen;
  options.directory = flags.plugin_dir;
  options.engine.socket_mode = flags.socket_mode;
  options.engine.allowed_uids = flags.allowed_uids;
  options.version = OUTBOARD_VERSION;
  options.program_digest = BuildId();
  options.choose = [&flags](const sdk::PluginRegistry& all, sdk::PluginRegistry* chosen) {
    return Choose(flags, all, chosen);
  };
  // Before the instances, which keep metrics there.
  std::unique_ptr<host_metrics::PrometheusMetrics> metrics;
  std::unique_ptr<host_metrics::MetricsServer> metrics_server;
  Watched watched;
  watched.signals = signalfd(-1, &signals, SFD_CLOEXEC);
  absl::Status status;
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials =
      MakeCredentials(flags, address->is_unix);
  status.Update(credentials.status());
  if (credentials.ok()) options.engine.credentials = *credentials;
  if (status.ok() && !flags.plugin_dir.empty()) {
    // Before the first read, so that no change is missed.
    auto watch = reload::DirectoryWatch::Open(flags.plugin_dir);
    status.Update(watch.status());
    if (watch.ok()) watched.directory = *std::move(watch);
  }
  if (status.ok() && !flags.metrics_address.empty()) {
    metrics = std::make_unique<host_metrics::PrometheusMetrics>(OUTBOARD_VERSION);
    auto server = host_metrics::MetricsServer::Start(flags.metrics_address, metrics.get(),
                                                     flags.metrics_unprotected);
    if (absl::IsInvalidArgument(server.status())) {
      std::cerr << "outboard-host: " << server.status().message() << "\n";
      return kExitUsage;
    }
    status.Update(server.status());
    if (server.ok()) {
      metrics_server = *std::move(server);
      LOG(INFO) << "Serving metrics at http://" << metrics_server->address() << "/metrics";
    }
    options.engine.metrics = metrics.get();
  }
  reload::Instances instances(std::move(options), &builtin);
  if (status.ok()) status = instances.Refresh().status();
  if (!status.ok()) {
    std::cerr << "outboard-host: " << status.message() << "\n";
    return kExitCannotServe;
  }
  const int signal = Watch(flags, watched, &instances);
  LOG(INFO) << "Signal " << signal << " received; draining for at most " << flags.drain_timeout;
  const bool drained = instances.Drain(flags.drain_timeout);
  LOG(INFO) << (drained ? "Drain complete; exiting"
                        : "Drain timed out with attempts in progress; exiting");
  // A plugin that never returns would block the instance's destructor, and so the process.
  if (!drained) _exit(0);
  return 0;
}

// `--install` and `--remove`. `outboard plugin` parses the last two lines.
int Change(const Flags& flags, const sdk::PluginRegistry& builtin) {
  const absl::StatusOr<reload::Installed> changed =
      flags.remove.empty() ? reload::Install(flags.install, flags.plugin_dir, builtin)
                           : reload::Remove(flags.remove, flags.plugin_dir, builtin);
  if (!changed.ok()) {
    std::cerr << "outboard-host: " << changed.status().message() << "\n";
    return kExitCannotServe;
  }
  std::cout << flags.plugin_dir << " holds "
            << (changed->plugins.empty() ? "no plugins" : absl::StrJoin(changed->plugins, ", "))
            << "\nbefore " << (changed->previous_digest.empty() ? "-" : changed->previous_digest)
            << "\nset " << (changed->set_digest.empty() ? "-" : changed->set_digest) << "\n";
  return 0;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Flags> flags = ParseFlags(std::vector<std::string>(argv + 1, argv + argc));
  if (!flags.ok()) {
    std::cerr << "outboard-host: " << flags.status().message() << "\nTry: outboard-host --help\n";
    return kExitUsage;
  }
  if (flags->help) {
    std::cout << kHelp;
    return 0;
  }
  if (flags->version) {
    std::cout << "outboard-host " << OUTBOARD_VERSION << "\n";
    return 0;
  }
  if (!flags->node_facts.empty()) {
    const absl::StatusOr<std::string> facts = NodeFactsOfFile(flags->node_facts, flags->price_list);
    if (facts.ok()) std::cout << *facts << "\n";
    if (!facts.ok()) std::cerr << "outboard-host: " << facts.status().message() << "\n";
    return facts.ok() ? 0 : kExitCannotServe;
  }
  if (flags->probe) {
    const absl::Status answered = services::ProbeListener(flags->listen, kProbeTimeout);
    if (answered.ok()) return 0;
    std::cerr << "outboard-host: " << answered.message() << "\n";
    return absl::IsInvalidArgument(answered) ? kExitUsage : kExitCannotServe;
  }
  logging::LogToStderr(argv[0]);
  // Debian's Abseil checks the order of all locks, under a lock of all threads. Tests keep that.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  FLAGS_v = flags->verbosity;
  runtime::SetSlowPluginCall(flags->slow_plugin_call);
  // Before any thread starts, so that only this thread receives the signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  sdk::PluginRegistry builtin;
  if (absl::Status status = RegisterBuiltinPlugins(&builtin); !status.ok()) {
    std::cerr << "outboard-host: " << status.message() << "\n";
    return kExitCannotServe;
  }
  if (!flags->install.empty() || !flags->remove.empty()) return Change(*flags, builtin);
  return Serve(*flags, signals, builtin);
}

}  // namespace
}  // namespace outboard::plugin_host

int main(int argc, char** argv) { return outboard::plugin_host::Main(argc, argv); }
