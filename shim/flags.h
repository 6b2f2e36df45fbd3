// The command line of outboard-shim.
#ifndef OUTBOARD_SHIM_FLAGS_H_
#define OUTBOARD_SHIM_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/config/flag_table.h"
#include "shim/http/client.h"

namespace outboard::shim {

struct Flags {
  std::string config;
  std::string kubeconfig;        // empty: from the configuration
  std::string service_account;   // empty: the default directory
  std::string last_good_config;  // empty: none is kept
  bool allow_insecure_api_server = false;
  int verbosity = -1;             // below 0: from the configuration
  std::string probe;              // ADDRESS/PATH; empty: schedule
  http::ShimAddress credentials;  // for `probe`
  bool help = false;
  bool version = false;
};

extern const char kHelp[];

config::FlagTable MakeFlagTable(Flags* flags);

// Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments);

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_FLAGS_H_
