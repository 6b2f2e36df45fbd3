#include "shim/hosts/instance.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/hosts/inline_content.h"
#include "shim/hosts/needed_fields.h"

namespace outboard::hosts {

std::string Instance::text() const {
  return absl::StrCat("instance ", identity.instance(), " (build ", identity.build(), ")");
}

std::string Instance::warning() const {
  std::vector<absl::string_view> warnings;
  for (const std::string* each : {&probe_warning, &info_warning, &config_warning}) {
    if (!each->empty()) warnings.push_back(*each);
  }
  return absl::StrJoin(warnings, "; ");
}

bool Instance::is_fused() const {
  return framework::HasCapability(info, v1beta1::CAPABILITY_FUSED_CYCLE);
}

InlineHost* Instance::Inline(const cache::ClusterState* cluster) {
  if (!KeepsNoCache(info)) return nullptr;
  if (inline_host == nullptr) {
    inline_host = std::make_unique<InlineHost>(grpc_client.get(), cluster,
                                               PartsOf(info, NeededFields(info)), configured);
  }
  return inline_host.get();
}

framework::HostClient* Instance::client(const cache::ClusterState* cluster) {
  if (InlineHost* face = Inline(cluster)) return face;
  return grpc_client.get();
}

}  // namespace outboard::hosts
