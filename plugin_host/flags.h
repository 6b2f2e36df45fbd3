// The command line of outboard-host.
#ifndef OUTBOARD_PLUGIN_HOST_FLAGS_H_
#define OUTBOARD_PLUGIN_HOST_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::plugin_host {

struct Flags {
  std::string listen;
  std::string tls_cert, tls_key, tls_client_ca;
  absl::Duration drain_timeout = absl::Seconds(20);
  unsigned socket_mode = 0600;
  std::vector<int64_t> allowed_uids;  // empty: this process's user and root
  int verbosity = 0;
  // Plugins to serve, or, if `all_but`, not to serve; empty: all.
  std::vector<std::string> plugins;
  bool all_but = false;
  std::string metrics_address;                               // empty: none
  bool metrics_unprotected = false;                          // metrics_address need not be loopback
  absl::Duration slow_plugin_call = absl::Milliseconds(50);  // zero: no call is slow
  std::string plugin_dir;                                    // of shared objects; empty: none
  // Instead of serving: change the content of plugin_dir.
  std::string install, remove;
  std::string node_facts;  // Instead of serving: print what is known of the nodes in this file.
  std::string price_list;  // With node_facts: prices; empty: none.
  bool probe = false;      // Instead of serving: probe the host at `listen`.
  bool help = false;
  bool version = false;
};

// Reads `--name value` and `--name=value`.
// Errors: INVALID_ARGUMENT for an unknown flag, or a missing or invalid value.
absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& args);

// "; did you mean NAME?" if a known name is similar, else empty.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& known);

extern const char kHelp[];
// All flags that ParseFlags knows.
std::vector<std::string> FlagNames();

}  // namespace outboard::plugin_host

#endif  // OUTBOARD_PLUGIN_HOST_FLAGS_H_
