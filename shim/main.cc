// `outboard-shim`: the scheduler process.
#include <glog/logging.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "logging/log_to_stderr.h"
#include "shim/config/config.h"
#include "shim/flags.h"
#include "shim/http/client.h"
#include "shim/shim.h"

namespace {

int Usage(const std::string& problem) {
  fprintf(stderr, "outboard-shim: %s\nTry: outboard-shim --help\n", problem.c_str());
  return 2;
}

// `page` has the form ADDRESS/PATH.
int Probe(const std::string& page, outboard::http::ShimAddress shim) {
  constexpr absl::Duration kTimeout = absl::Seconds(5);
  const size_t scheme = page.find("://");
  // A socket's path has slashes itself.
  const size_t slash = absl::StartsWith(page, "unix:")
                           ? page.rfind('/')
                           : page.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  if (slash == std::string::npos || slash == 0 || slash + 1 == page.size())
    return Usage(absl::StrCat("--probe must have the form ADDRESS/PATH, not \"", page, "\""));
  shim.flag = "--probe";
  shim.server = page.substr(0, slash);
  const absl::StatusOr<std::string> answer =
      outboard::http::GetPage(shim, page.substr(slash), {}, kTimeout);
  if (answer.ok()) return 0;
  if (absl::IsInvalidArgument(answer.status()))
    return Usage(std::string(answer.status().message()));
  fprintf(stderr, "outboard-shim: %s\n", std::string(answer.status().message()).c_str());
  return 1;
}

using outboard::config::Config;

// The value of an environment variable; "" if it is not set.
std::string Variable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "" : value;
}

// Loads the last good configuration in place of one with `problem`, and notes that in `options`.
// Returns false, with both problems on standard error, if it cannot be used either.
bool LoadLastGood(const absl::Status& problem, const std::string& sha256,
                  outboard::shim::ShimOptions* options, Config* config) {
  *config = {};
  const absl::Status kept = outboard::config::ReadConfigFile(options->last_good_file, config);
  if (!kept.ok()) {
    fprintf(stderr, "%s\n%s (the last good configuration)\n",
            std::string(problem.message()).c_str(), std::string(kept.message()).c_str());
    return false;
  }
  options->refused = {sha256, std::string(problem.message())};
  LOG(ERROR) << "The configuration cannot be used; running on the last good one, "
             << options->last_good_file << ":\n"
             << problem.message();
  return true;
}

// Puts the settings of the process into force.
void Use(const Config& config, int verbosity) {
  for (const std::string& warning : config.warnings) LOG(WARNING) << warning;
  outboard::kube::SetReading(config.shim.reading.Options());
  FLAGS_v = verbosity >= 0 ? verbosity : config.shim.verbosity;
}

}  // namespace

int main(int argc, char** argv) {
  outboard::logging::LogToStderr(argv[0]);
  // Debian's Abseil checks the order of all locks, under a lock of all threads. Tests keep that.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const absl::StatusOr<outboard::shim::Flags> flags =
      outboard::shim::ParseFlags(std::vector<std::string>(argv + 1, argv + argc));
  if (!flags.ok()) return Usage(std::string(flags.status().message()));
  if (flags->help) {
    fputs(outboard::shim::kHelp, stdout);
    return 0;
  }
  if (flags->version) {
    puts("outboard-shim " OUTBOARD_VERSION);
    return 0;
  }
  if (!flags->probe.empty()) return Probe(flags->probe, flags->credentials);
  outboard::shim::ShimOptions options;
  options.kubeconfig = flags->kubeconfig;
  options.allow_insecure_api_server = flags->allow_insecure_api_server;
  if (!flags->service_account.empty()) options.service_account = flags->service_account;

  options.config_file = flags->config;
  options.last_good_file = flags->last_good_config;
  options.verbosity = flags->verbosity;
  options.pod_ips = Variable("POD_IPS");
  options.pod_namespace = Variable("POD_NAMESPACE");
  options.pod_name = Variable("POD_NAME");

  Config config;
  const absl::Status read = outboard::config::ReadConfigFile(flags->config, &config);
  if (!read.ok() && options.last_good_file.empty()) {
    // What is wrong in the file begins with its name and line, for editors.
    fprintf(stderr, "%s%s\n", absl::IsInvalidArgument(read) ? "" : "outboard-shim: ",
            std::string(read.message()).c_str());
    return 2;
  }
  if (!read.ok() && !LoadLastGood(read, std::string(config.sha256), &options, &config)) return 2;
  Use(config, flags->verbosity);

  // One thread receives the signals. The mask is set before any other thread starts and inherits
  // it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  const std::string sha256 = config.sha256;
  auto shim = outboard::shim::Shim::Create(std::move(config), options);
  if (absl::IsInvalidArgument(shim.status()) && !options.last_good_file.empty() &&
      options.refused.problems.empty()) {
    if (!LoadLastGood(shim.status(), sha256, &options, &config)) return 2;
    Use(config, flags->verbosity);
    shim = outboard::shim::Shim::Create(std::move(config), options);
  }
  if (!shim.ok()) {
    fprintf(stderr, "outboard-shim: %s\n", std::string(shim.status().message()).c_str());
    return absl::IsInvalidArgument(shim.status()) ? 2 : 1;
  }
  std::thread([&signals, &shim] {
    bool stopping = false;
    while (true) {
      int signal_number = 0;
      sigwait(&signals, &signal_number);
      if (signal_number == SIGHUP) {
        if (!stopping) (*shim)->Reload();
        continue;
      }
      // The second signal ends the process at once.
      if (std::exchange(stopping, true)) _exit(1);
      LOG(INFO) << "Signal " << signal_number << ": stopping";
      (*shim)->Stop();
    }
  }).detach();
  const absl::Status ended = (*shim)->Run();
  if (!ended.ok()) {
    LOG(ERROR) << ended.message();
    // Another replica may hold the lease, or the configuration is invalid: exit without waiting.
    fflush(stderr);
    _exit(absl::IsInvalidArgument(ended) ? 2 : 1);
  }
  return 0;
}
