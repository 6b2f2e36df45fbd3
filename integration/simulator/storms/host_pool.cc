#include "integration/simulator/storms/host_pool.h"

#include <signal.h>

#include <algorithm>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/clock.h"
#include "shim/hosts/grpc_host_client.h"

namespace outboard::simulate::storms {

HostPool::HostPool(std::shared_ptr<const config::Config> config, std::string binary,
                   hosts::HostLoop* loop, scheduler::Scheduler* scheduler)
    : binary_(std::move(binary)),
      loop_(loop),
      scheduler_(scheduler),
      hosts_(std::move(config), "storm", loop, scheduler) {
  hosts_.SetCallbacks({[](const std::string&) {},
                       [this](const std::string& address) { retired_.push_back(address); }});
  scheduler_->SetShadowObserver(&hosts_);
}

HostPool::~HostPool() { scheduler_->SetShadowObserver(nullptr); }

std::string HostPool::ServingAddress() const {
  for (const hosts::HostRegistry::View& view : hosts_.Describe()) {
    if (view.state == hosts::InstanceState::kServing && view.usable) return view.address;
  }
  return "";
}

std::string HostPool::Describe() const {
  std::string text;
  for (const hosts::HostRegistry::View& view : hosts_.Describe()) {
    absl::StrAppend(&text, view.instance, " is ", hosts::StateName(view.state), " (", view.why, ")",
                    view.usable ? "" : ", unusable", ", sent version ", view.sent_version,
                    ", says ", view.acknowledged_version, "; ");
  }
  return text;
}

absl::Status HostPool::Start(absl::Time now) {
  absl::StatusOr<std::unique_ptr<HostProcess>> process = HostProcess::Start(binary_, 0);
  if (!process.ok()) return process.status();
  const std::string address = (*process)->address();
  processes_[address] = *std::move(process);
  const absl::Time deadline = SteadyNow() + kAnswerTimeout;
  absl::StatusOr<hosts::HostConnection> host;
  do {
    // It needs a moment until it listens; until then a connection fails at once.
    host = hosts::Handshake(hosts::NewHostChannel(address), deadline - SteadyNow());
    if (!host.ok()) absl::SleepFor(absl::Milliseconds(2));
  } while (absl::IsUnavailable(host.status()) && SteadyNow() < deadline);
  if (!host.ok()) return host.status();
  absl::Status taken = hosts_.OnHandshake({kHost, address, std::nullopt, 0}, *std::move(host), now);
  if (!taken.ok()) return taken;
  while (ServingAddress() != address) {
    if (SteadyNow() >= deadline)
      return absl::UnavailableError(absl::StrCat("a new host does not serve: ", Describe()));
    loop_->Wait(std::min(deadline, hosts_.NextWakeup()));
    hosts_.Tick(now);
  }
  return absl::OkStatus();
}

bool HostPool::Kill() {
  const auto process = processes_.find(ServingAddress());
  if (process == processes_.end()) return false;
  ::kill(process->second->pid(), SIGKILL);
  processes_.erase(process);
  return true;
}

bool HostPool::SwapBack(absl::Time now) { return hosts_.Swap(kHost, "", now).ok(); }

absl::Status HostPool::Poll(absl::Time now) {
  hosts_.Tick(now);
  std::string told = ServingAddress();
  scheduler_->AdvanceHostClocks(now);
  const absl::Time deadline = SteadyNow() + kAnswerTimeout;
  while (!scheduler_->HostClocksAdvanced()) {
    if (SteadyNow() >= deadline)
      return absl::UnavailableError(
          absl::StrCat("a host does not acknowledge the time: ", Describe()));
    loop_->Wait(std::min(deadline, hosts_.NextWakeup()));
    hosts_.Tick(now);
    // If it was lost meanwhile, another one may serve now that did not get the time.
    if (std::string serving = ServingAddress(); serving != told) {
      told = std::move(serving);
      scheduler_->AdvanceHostClocks(now);
    }
  }
  for (const std::string& address : std::exchange(retired_, {})) processes_.erase(address);
  return absl::OkStatus();
}

}  // namespace outboard::simulate::storms
