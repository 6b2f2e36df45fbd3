// The kit: one host under test, the cases and their results.
#ifndef OUTBOARD_CLI_CONFORMANCE_KIT_H_
#define OUTBOARD_CLI_CONFORMANCE_KIT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/conformance/calls.h"
#include "shim/hosts/endpoint.h"

namespace outboard::conformance {

struct Options {
  hosts::Endpoint endpoint;
  std::string only;  // a pattern of SERVICE/CASE; empty: all
  // Plugins to configure; empty: all plugins of the host.
  std::vector<std::string> plugins;
  std::map<std::string, std::string> args;  // JSON, by plugin
  // Labels of every node, for plugins that reject nodes without them.
  std::map<std::string, std::string> node_labels;
  uint64_t seed = 1;
  int nodes = 20000;         // of the large cluster
  int fuzzed_requests = 60;  // per method
  // Of all cases. A host that answers nothing makes each case wait for its deadlines.
  absl::Duration time_limit = absl::Minutes(10);
};

struct Result {
  enum class Outcome { kPassed, kFailed, kSkipped };
  std::string service;
  std::string name;
  Outcome outcome = Outcome::kPassed;
  std::string what;  // the error, or why it was skipped
  absl::Duration took;
};

// The version of the contract that the cases are about.
inline constexpr char kContractVersion[] = "v1beta1";

class Kit;

// One promise of the contract. Cases are independent: each has its own sessions.
struct Case {
  const char* service;
  const char* name;
  const char* what;  // a description, for --list
  absl::Status (*run)(const Kit& kit);
};
// In the order in which they run.
std::vector<Case> AllCases();

// A host with its handshake and GetHostInfo, and the configuration for the tests.
//
// Threading: immutable after Connect.
// Lifetime: does not own channels.
class Kit {
 public:
  // Calls Handshake and GetHostInfo, and finds a configuration that the host accepts. Leaves out
  // plugins that need arguments and have none. Errors: UNAVAILABLE without an answer;
  // FAILED_PRECONDITION if no plugin can be configured; INVALID_ARGUMENT for a plugin that the host
  // does not serve.
  static absl::StatusOr<std::unique_ptr<Kit>> Connect(Options options);

  const Options& options() const { return options_; }
  const handshake::v1::HandshakeResponse& identity() const { return identity_; }
  const v1beta1::GetHostInfoResponse& info() const { return info_; }
  // The configuration, with the instance, without a session.
  const v1beta1::ConfigureRequest& configuration() const { return configuration_; }
  // Omitted plugins, with the host's messages.
  const std::vector<std::pair<std::string, std::string>>& left_out() const { return left_out_; }

  // Configured plugins of a point, in order.
  std::vector<std::string> At(v1beta1::ExtensionPoint point) const;
  bool Has(v1beta1::ExtensionPoint point) const { return !At(point).empty(); }
  // Whether a plugin is at a point from preFilter to score; then attempts begin with PreFilter.
  bool HasAlgorithm() const;
  bool Can(v1beta1::Capability capability) const;

  // Opens a new connection.
  absl::StatusOr<Channel> Dial() const;
  // A globally new id.
  std::string NewSessionId() const;

 private:
  Kit() = default;
  absl::Status FindConfiguration();

  Options options_;
  std::string run_;  // part of all session ids
  handshake::v1::HandshakeResponse identity_;
  v1beta1::GetHostInfoResponse info_;
  v1beta1::ConfigureRequest configuration_;
  std::vector<std::pair<std::string, std::string>> left_out_;
};

// Runs the cases that match `options.only`. Calls `report` after each. If the host dies, the
// remaining cases fail or are skipped; after the time limit the next one fails, and the rest are
// skipped.
std::vector<Result> RunCases(const Kit& kit, const std::vector<Case>& cases,
                             void (*report)(const Result&));

// Whether a text matches a pattern with `*` and `?`.
bool Matches(const std::string& pattern, const std::string& text);

// Parts of AllCases, by file.
std::vector<Case> PluginHostCases();
std::vector<Case> SessionCases();
std::vector<Case> SingleSessionCases();
std::vector<Case> ClusterStateCases();
std::vector<Case> CacheCases();
std::vector<Case> TraceCases();
std::vector<Case> QueueCases();
std::vector<Case> AttemptCases();
std::vector<Case> FilterCases();
std::vector<Case> ScoreCases();
std::vector<Case> ColumnCases();
std::vector<Case> CycleCases();
std::vector<Case> GroupCases();
std::vector<Case> PlanCases();
std::vector<Case> PlacementCases();
std::vector<Case> PostFilterCases();
std::vector<Case> FuzzCases();

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_KIT_H_
