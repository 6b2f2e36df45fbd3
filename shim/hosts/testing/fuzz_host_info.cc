#include "shim/hosts/testing/fuzz_host_info.h"

#include <string>

#include "google/protobuf/stubs/logging.h"
#include "integration/fuzz/seeds.h"
#include "shim/hosts/host_info_check.h"
#include "shim/hosts/inline_host.h"
#include "shim/hosts/needed_fields.h"
#include "shim/hosts/plans.h"
#include "shim/hosts/unserved_plugins.h"
#include "shim/hosts/version_skew.h"

namespace outboard::hosts {
namespace {

constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: A}, {name: B}, {name: C}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: h, address: "unix:/h"}]
customResources: [{resource: things.v1.example.com, verbs: [create]}]
)";

const config::Config& Configuration() {
  static const auto* const config =
      new config::Config(*config::ParseConfig(kConfiguration, "f.yaml"));
  return *config;
}

}  // namespace

void FuzzHostInfo(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;  // of lines about invalid UTF-8
  handshake::v1::HandshakeResponse identity;
  if (identity.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    if (CheckIdentity(identity).ok()) (void)AreTooFarApart("0.1.0", identity.build());
  }
  v1beta1::GetHostInfoResponse info;
  if (!info.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const absl::Status checked = CheckHostInfo(info);
  fuzz::Require(checked.message().size() < 4096, "the text of a fault is bounded");
  if (!checked.ok()) return;
  fuzz::Require(info.plugins_size() <= 256, "plugins are bounded");
  if (!CheckInlineInfo(info).ok()) return;
  (void)NeededFields(info);
  const HostInfos infos = {{"h", info}};
  (void)UnservedPlugins(Configuration(), infos);
  const absl::StatusOr<Plans> plans = MakePlans(Configuration(), {"h"}, infos);
  if (!plans.ok()) {
    fuzz::Require(!plans.status().message().empty(), "an error has a text");
    return;
  }
  for (const framework::ProfilePlan& plan : plans->profiles)
    fuzz::Require(plan.num_algorithm_hosts() <= plan.host_names.size(), "a profile has its hosts");
  (void)SharesOf(*plans, "h");
}

}  // namespace outboard::hosts
