#include "shim/hosts/host_set.h"

#include <glog/logging.h>
#include <google/protobuf/util/message_differencer.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace outboard::hosts {
namespace {

constexpr absl::Duration kConfigureDeadline = absl::Seconds(5);

// Whether the host has the same to do by both plans.
bool SameConfigure(const Plans& a, const Plans& b, const std::string& host) {
  const auto in_a = a.configure.find(host);
  const auto in_b = b.configure.find(host);
  if (in_a == a.configure.end() || in_b == b.configure.end()) {
    return in_a == a.configure.end() && in_b == b.configure.end();
  }
  return google::protobuf::util::MessageDifferencer::Equals(in_a->second, in_b->second);
}

}  // namespace

HostSet::HostSet(const config::Config* config, std::string session_id, HostLoop* loop,
                 cycle::Scheduler* scheduler)
    : config_(config), session_id_(std::move(session_id)), loop_(loop), scheduler_(scheduler) {}

HostSet::~HostSet() = default;

absl::Status HostSet::OnHandshake(const std::string& name, std::shared_ptr<grpc::Channel> channel,
                                  v1alpha1::GetHostInfoResponse info, absl::Time now) {
  LOG(INFO) << "Host \"" << name << "\" answered: instance " << info.host_instance() << ", build "
            << info.build() << ", " << info.plugins_size() << " plugins";
  infos_[name] = info;
  Host& host = hosts_[name];
  host.channel = std::move(channel);
  host.info = std::move(info);
  if (infos_.size() < config_->shim.hosts.size()) return absl::OkStatus();

  // An instance may serve other plugins than its predecessor, so the plans are made anew.
  absl::StatusOr<Plans> plans = MakePlans(*config_, infos_);
  if (!plans.ok()) return plans.status();
  for (const std::string& warning : plans->resolved.warnings) LOG(WARNING) << warning;
  const bool first_time = !plans_.has_value();
  const std::optional<Plans> previous = std::exchange(plans_, *std::move(plans));
  for (const cycle::ProfilePlan& plan : plans_->profiles) scheduler_->SetPlan(plan);
  for (auto& [other_name, other] : hosts_) {
    const bool is_changed =
        first_time || other_name == name || !SameConfigure(*previous, *plans_, other_name);
    if (!is_changed) continue;
    // A host that gains or loses plugins by another's coming begins anew.
    if (other.in_use) scheduler_->SetHost(other_name, nullptr, 0, now);
    if (absl::Status begun = Begin(other_name, &other, now); !begun.ok()) return begun;
  }
  return absl::OkStatus();
}

absl::Status HostSet::Begin(const std::string& name, Host* host, absl::Time now) {
  const auto configure = plans_->configure.find(name);
  if (configure == plans_->configure.end()) {
    LOG(WARNING) << "Host \"" << name << "\" serves no profile";
    if (host->cursor != 0) scheduler_->cluster()->RemoveHost(std::exchange(host->cursor, 0));
    host->client = nullptr;
    host->in_use = false;
    return absl::OkStatus();
  }
  auto client = std::make_unique<GrpcHostClient>(loop_, session_id_, host->channel, host->info);
  auto answer = client->Configure(configure->second, absl::Now() + kConfigureDeadline);
  if (!answer.ok()) {
    if (on_lost_) on_lost_(name);
    LOG(WARNING) << "Host \"" << name << "\" could not be configured: " << answer.status();
    return absl::OkStatus();
  }
  if (absl::Status problems = ConfigureError(*config_, plans_->resolved, *answer); !problems.ok())
    return problems;
  if (host->cursor != 0) scheduler_->cluster()->RemoveHost(host->cursor);
  host->cursor = scheduler_->cluster()->AddHost(NeededFields(host->info));
  host->client = std::move(client);
  host->in_use = false;
  for (const v1alpha1::SyncRequest& chunk : scheduler_->cluster()->TakeChanges(host->cursor, now)) {
    host->client->SendChanges(chunk);
  }
  host->client->AwaitSnapshot(scheduler_->cluster()->VersionOf(host->cursor));
  return absl::OkStatus();
}

void HostSet::OnDraining(const std::string& name) {
  if (const auto it = hosts_.find(name); it != hosts_.end() && it->second.client != nullptr)
    it->second.client->MarkDraining();
}

void HostSet::Drop(const std::string& name, Host* host, absl::Time now) {
  scheduler_->SetHost(name, nullptr, 0, now);
  scheduler_->cluster()->RemoveHost(std::exchange(host->cursor, 0));
  host->client = nullptr;
  host->in_use = false;
  if (on_lost_) on_lost_(name);
}

void HostSet::Tick(absl::Time now) {
  for (auto& [name, host] : hosts_) {
    if (host.client == nullptr) continue;
    if (host.client->lost() || scheduler_->WantsNewSession(name)) {
      LOG(WARNING) << "Host \"" << name << "\" is lost: instance " << host.info.host_instance();
      Drop(name, &host, now);
    } else if (!host.in_use && host.client->usable()) {
      LOG(INFO) << "Host \"" << name << "\" is ready: instance " << host.info.host_instance()
                << " at version " << host.client->acknowledged_version();
      host.in_use = true;
      scheduler_->SetHost(name, host.client.get(), host.cursor, now);
    }
  }
}

std::vector<HostSet::Progress> HostSet::progress() const {
  std::vector<Progress> all;
  for (const auto& [name, host] : hosts_) {
    if (host.client == nullptr) continue;
    all.push_back({name, host.info.host_instance(), host.client->usable(),
                   scheduler_->cluster()->VersionOf(host.cursor),
                   host.client->acknowledged_version()});
  }
  return all;
}

bool HostSet::AllReady() const {
  if (!plans_.has_value()) return false;
  for (const auto& [name, request] : plans_->configure) {
    const auto it = hosts_.find(name);
    if (it == hosts_.end() || !it->second.in_use) return false;
  }
  return true;
}

}  // namespace outboard::hosts
