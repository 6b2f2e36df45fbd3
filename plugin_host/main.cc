// outboard-host: flags → plugins → engine → wait for a signal → drain.
#include <elf.h>
#include <glog/logging.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "plugin_host/flags.h"
#include "plugin_host/services/engine.h"
#include "plugin_host/services/listen_address.h"
#include "plugins/builtin_plugins.h"

namespace outboard::plugin_host {
namespace {

constexpr int kExitCannotServe = 1;
constexpr int kExitUsage = 2;
constexpr unsigned kCertificateReloadSeconds = 10;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return text.str();
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const Flags& flags,
                                                                         bool is_unix) {
  if (is_unix) return std::shared_ptr<grpc::ServerCredentials>();
  for (const std::string* file : {&flags.tls_client_ca, &flags.tls_key, &flags.tls_cert}) {
    if (absl::StatusOr<std::string> text = ReadFile(*file); !text.ok()) return text.status();
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
    const auto name_of = [](std::string* out, const auto& entry) { out->append(entry.first); };
    return absl::NotFoundError(absl::StrCat("--plugins: there is no plugin ", name, "; there are ",
                                            absl::StrJoin(all.descriptors(), ", ", name_of)));
  }
  for (const auto& [name, descriptor] : all.descriptors()) {
    const bool is_named = absl::c_linear_search(flags.plugins, name);
    if (!flags.plugins.empty() && is_named == flags.all_but) continue;
    if (absl::Status added = chosen->Add(descriptor); !added.ok()) return added;
  }
  return absl::OkStatus();
}

// The linker's digest of this program, in hexadecimal; empty if there is none.
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

int Serve(const Flags& flags, const sigset_t& signals) {
  absl::BitGen random;
  const std::string instance = absl::StrFormat("host-%016x", absl::Uniform<uint64_t>(random));
  const std::string listen = absl::StrReplaceAll(flags.listen, {{"{instance}", instance}});
  absl::StatusOr<services::ListenAddress> address = services::ListenAddress::Parse(listen);
  if (!address.ok()) {
    std::cerr << "outboard-host: " << address.status().message() << "\n";
    return kExitUsage;
  }
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials =
      MakeCredentials(flags, address->is_unix);
  sdk::PluginRegistry all;
  sdk::PluginRegistry registry;
  absl::Status status = credentials.status();
  status.Update(RegisterBuiltinPlugins(&all));
  if (absl::Status chosen = Choose(flags, all, &registry); !chosen.ok()) {
    std::cerr << "outboard-host: " << chosen.message() << "\n";
    return kExitUsage;
  }
  if (status.ok() && address->is_unix) {
    status = services::PrepareSocketPath(address->path);
    if (listen != flags.listen) services::RemoveStaleSiblings(address->path);
  }
  if (!status.ok()) {
    std::cerr << "outboard-host: " << status.message() << "\n";
    return kExitCannotServe;
  }
  services::Engine::Options options;
  options.address = address->target;
  if (address->is_unix) options.socket_path = address->path;
  options.socket_mode = flags.socket_mode;
  options.allowed_uids = flags.allowed_uids;
  options.credentials = *credentials;
  options.identity.instance = instance;
  options.identity.build = OUTBOARD_VERSION;
  options.identity.build_digest = BuildId();
  options.identity.started = absl::Now();
  absl::StatusOr<std::unique_ptr<services::Engine>> engine =
      services::Engine::Start(options, &registry);
  if (!engine.ok()) {
    std::cerr << "outboard-host: " << engine.status().message() << "\n";
    return kExitCannotServe;
  }
  LOG(INFO) << "outboard-host " << OUTBOARD_VERSION << " instance " << options.identity.instance
            << " listens on " << listen << " with " << registry.descriptors().size() << " plugins";
  int signal = 0;
  sigwait(&signals, &signal);
  LOG(INFO) << "signal " << signal << ": draining for at most " << flags.drain_timeout;
  const bool drained = (*engine)->Drain(flags.drain_timeout);
  LOG(INFO) << (drained ? "drained" : "attempts are still under way; exiting all the same");
  return 0;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Flags> flags = ParseFlags(std::vector<std::string>(argv + 1, argv + argc));
  if (!flags.ok()) {
    std::cerr << "outboard-host: " << flags.status().message() << "\nTry --help.\n";
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
  FLAGS_logtostderr = true;
  FLAGS_v = flags->verbosity;
  google::InitGoogleLogging(argv[0]);
  // Before any thread starts, so that all of them leave the signals to this one.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return Serve(*flags, signals);
}

}  // namespace
}  // namespace outboard::plugin_host

int main(int argc, char** argv) { return outboard::plugin_host::Main(argc, argv); }
