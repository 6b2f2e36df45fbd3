#include "shim/hosts/single_sessions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/host_client.h"

namespace outboard::hosts {

bool KeepsOneSession(const v1beta1::GetHostInfoResponse& info) {
  return framework::HasCapability(info, v1beta1::CAPABILITY_SINGLE_SESSION);
}

const SingleSessions::Seen* SingleSessions::Find(absl::string_view instance) const {
  const auto it = std::find_if(seen_.begin(), seen_.end(),
                               [&](const Seen& seen) { return seen.instance == instance; });
  return it == seen_.end() ? nullptr : &*it;
}

SingleSessions::Seen& SingleSessions::FindOrAdd(const std::string& instance) {
  if (const Seen* seen = Find(instance); seen != nullptr) return seen_[seen - seen_.data()];
  if (seen_.size() == kMaxInstances) seen_.erase(seen_.begin());
  Seen& added = seen_.emplace_back();
  added.instance = instance;
  return added;
}

void SingleSessions::OnHandshake(const std::string& instance) {
  Seen& seen = FindOrAdd(instance);
  seen.probed = false;
  seen.current.clear();
}

void SingleSessions::OnBegun(const std::string& instance) { FindOrAdd(instance).began = true; }

void SingleSessions::OnProbe(const std::string& instance, const std::string& current) {
  Seen& seen = FindOrAdd(instance);
  seen.probed = true;
  seen.current = framework::CutText(current, 63);
}

bool SingleSessions::IsTaken(absl::string_view instance, absl::string_view own) const {
  const Seen* const seen = Find(instance);
  return seen != nullptr && !seen->current.empty() && seen->current != own;
}

std::string SingleSessions::WhyNot(absl::string_view instance, absl::string_view own) const {
  if (!leads_) return "it keeps a single session; this replica configures it when it leads";
  const Seen* const seen = Find(instance);
  if (seen == nullptr || !seen->began) return "";
  if (IsTaken(instance, own)) {
    return absl::StrCat("it keeps a single session, now session ", seen->current,
                        " of another shim, which replaced this shim's session ", own,
                        "; waiting until that shim is gone: each shim needs a host of its own");
  }
  return seen->probed ? "" : "it keeps a single session; asking whether another shim has it";
}

}  // namespace outboard::hosts
