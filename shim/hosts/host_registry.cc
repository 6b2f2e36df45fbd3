#include "shim/hosts/host_registry.h"

#include <glog/logging.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "shim/clock.h"
#include "shim/fail_point.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/host_info_check.h"
#include "shim/hosts/unserved_plugins.h"

namespace outboard::hosts {
namespace {

// How often instances that do not serve receive changes.
constexpr absl::Duration kFollowPeriod = absl::Milliseconds(50);
// How long to wait for a host of the configuration; then pods that do not need it continue.
constexpr absl::Duration kHostsTimeout = absl::Seconds(5);
// Of how many replaced instances the address is kept: enough for a host that was left running, few
// where the host is replaced every day.
constexpr size_t kMaxReplaced = 4;
// Of one configuration.
constexpr size_t kMaxWarnings = 64;

using google::protobuf::util::MessageDifferencer;

}  // namespace

absl::string_view StateName(InstanceState state) {
  switch (state) {
    case InstanceState::kWaiting:
      return "waiting";
    case InstanceState::kSyncing:
      return "syncing";
    case InstanceState::kShadow:
      return "shadow";
    case InstanceState::kServing:
      return "serving";
    case InstanceState::kStandby:
      return "standby";
    case InstanceState::kDraining:
      return "draining";
    case InstanceState::kRefused:
      return "refused";
    case InstanceState::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

namespace {

// Whether instances that the configuration does not name may answer later, with other plugins.
bool FindsInstances(const config::ShimConfig& shim) {
  return !shim.socket_directory.empty() ||
         std::any_of(shim.hosts.begin(), shim.hosts.end(),
                     [](const config::HostSpec& spec) { return spec.pods.has_value(); });
}

}  // namespace

HostRegistry::HostRegistry(std::shared_ptr<const config::Config> config, std::string session_id,
                           HostLoop* loop, scheduler::Scheduler* scheduler)
    : config_(std::move(config)),
      session_id_(std::move(session_id)),
      loop_(loop),
      scheduler_(scheduler) {}

HostRegistry::~HostRegistry() = default;

std::vector<std::string> HostRegistry::HostNames(const config::Config& config) const {
  std::vector<std::string> names;
  for (const config::HostSpec& spec : config.shim.hosts) names.push_back(spec.name);
  for (const auto& [name, host] : hosts_) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

bool HostRegistry::EveryHostAnswered() const {
  return std::all_of(config_->shim.hosts.begin(), config_->shim.hosts.end(),
                     [this](const config::HostSpec& spec) {
                       const auto it = hosts_.find(spec.name);
                       return it != hosts_.end() && it->second.info.has_value();
                     });
}

HostInfos HostRegistry::Infos() const {
  HostInfos infos;
  for (const auto& [name, host] : hosts_) {
    if (host.info.has_value()) infos[name] = *host.info;
  }
  return infos;
}

absl::StatusOr<Plans> HostRegistry::PlansWith(const std::string& host,
                                              const Instance* instance) const {
  HostInfos infos = Infos();
  if (instance != nullptr) infos[host] = instance->info;
  return MakePlans(*config_, HostNames(*config_), infos);
}

absl::StatusOr<ConfigCheck> HostRegistry::CheckReload(
    std::shared_ptr<const config::Config> config) const {
  if (!plans_.has_value()) return ConfigCheck(std::move(config), {});
  absl::StatusOr<Plans> plans = MakePlans(*config, HostNames(*config), Infos());
  if (!plans.ok()) return plans.status();
  ConfigCheck check(std::move(config), *std::move(plans));
  for (const auto& [name, host] : hosts_) {
    if (!check.IsNew(name, *plans_)) continue;
    for (const auto& instance : host.instances) {
      if (instance->state == InstanceState::kQuarantined) continue;
      check.Ask(name, NewClient(*instance, SessionOf(*instance)), SteadyNow() + limits_.configure);
    }
  }
  return check;
}

std::unique_ptr<GrpcHostClient> HostRegistry::NewClient(const Instance& instance,
                                                        const std::string& session_id) const {
  return std::make_unique<GrpcHostClient>(
      loop_, session_id, HostConnection{instance.channel, instance.identity, instance.info},
      limits_);
}

void HostRegistry::Enter(const std::string& name, Instance* instance, InstanceState state,
                         std::string why, absl::Time now) {
  if (state == InstanceState::kRefused || state == InstanceState::kQuarantined) {
    LOG(ERROR) << "Host \"" << name << "\": " << instance->text() << " is " << StateName(state)
               << ": " << why;
  } else {
    VLOG(1) << "Host \"" << name << "\": " << instance->text() << " is " << StateName(state) << ": "
            << why;
  }
  instance->state = state;
  instance->why = std::move(why);
  instance->since = now;
}

absl::Status HostRegistry::OnHandshake(const Endpoint& endpoint, HostConnection connection,
                                       absl::Time now) {
  Host& host = hosts_[endpoint.host];
  // An instance with a known address or id starts from scratch.
  for (size_t i = host.instances.size(); i-- > 0;) {
    Instance* const known = host.instances[i].get();
    if (known->endpoint.address == endpoint.address ||
        known->id() == connection.identity.instance())
      Remove(endpoint.host, known, now);
  }
  Instance* const instance = host.instances.emplace_back(std::make_unique<Instance>()).get();
  host.replaced.erase(std::remove(host.replaced.begin(), host.replaced.end(), endpoint.address),
                      host.replaced.end());
  instance->endpoint = endpoint;
  instance->acceptance = accepted_pods_.Of(endpoint.address);
  instance->recalls = host.recalls;
  instance->channel = std::move(connection.channel);
  instance->identity = std::move(connection.identity);
  instance->info = std::move(connection.info);
  // A clock that is ahead must not make the instance the newest forever.
  const int64_t started = instance->identity.started_unix_micros();
  instance->started =
      started > 0 ? std::min(absl::FromUnixMicros(started), absl::Now()) : absl::Now();
  LOG(INFO) << "Host \"" << endpoint.host << "\" at " << endpoint.address
            << " answered: " << instance->text() << ", " << instance->info.plugins_size()
            << " plugins";
  TakeWarning(endpoint.host, *instance, UnknownActions(instance->info), &instance->info_warning);
  if (!host.info.has_value() || !plans_.has_value()) host.info = instance->info;
  if (const std::string* why = host.quarantined.Find(instance->build_key()); why != nullptr) {
    Enter(endpoint.host, instance, InstanceState::kQuarantined, *why, now);
    return absl::OkStatus();
  }
  const Pause pause = host.pauses.Of(instance->id());
  instance->not_before = pause.until;
  single_sessions_.OnHandshake(instance->id());
  std::string why = WhyNoSession(*instance);
  if (now < instance->not_before) {
    why = absl::StrCat("its next session begins after a pause of ",
                       absl::FormatDuration(pause.length), "; its last one ended because ",
                       pause.why_lost);
  } else if (why.empty()) {
    why = "other hosts have not answered yet";
  }
  Enter(endpoint.host, instance, InstanceState::kWaiting, why, now);
  if (!plans_.has_value()) hosts_deadline_ = std::min(hosts_deadline_, now + kHostsTimeout);
  return BeginWaiting(now);
}

absl::Status HostRegistry::BeginWaiting(absl::Time now) {
  const bool all_answered = EveryHostAnswered();
  if (!plans_.has_value()) {
    ReportUnserved();
    if (!all_answered && now < hosts_deadline_) return absl::OkStatus();
    hosts_deadline_ = absl::InfiniteFuture();
    absl::StatusOr<Plans> plans = PlansWith("", nullptr);
    if (!plans.ok()) {
      // A later host may serve the missing plugins.
      if (all_answered && !FindsInstances(config_->shim)) return plans.status();
      LOG(WARNING) << "Profiles cannot be used yet; waiting for more hosts:\n"
                   << plans.status().message();
      return absl::OkStatus();
    }
    if (!all_answered) {
      LOG(WARNING) << "Some hosts have not answered within " << kHostsTimeout
                   << "; continuing with the others";
    }
    Adopt(*std::move(plans), "", now);
  }
  for (auto& [name, host] : hosts_) {
    // By index: unreachable instances are removed.
    for (size_t i = 0; i < host.instances.size(); ++i) {
      Instance* const instance = host.instances[i].get();
      if (instance->state == InstanceState::kWaiting && now >= instance->not_before &&
          WhyNoSession(*instance).empty())
        Begin(name, instance, now);
    }
  }
  return absl::OkStatus();
}

void HostRegistry::ReportUnserved() {
  HostInfos infos;
  std::vector<std::string> connected, missing;
  for (const std::string& name : HostNames(*config_)) {
    const auto host = hosts_.find(name);
    const bool has_answered = host != hosts_.end() && host->second.info.has_value();
    (has_answered ? connected : missing).push_back(name);
    if (has_answered) infos[name] = *host->second.info;
  }
  const std::string unserved = UnservedPlugins(*config_, infos);
  if (unserved == reported_unserved_) return;
  reported_unserved_ = unserved;
  if (unserved.empty()) return;
  for (auto& [name, host] : hosts_) {
    for (const auto& instance : host.instances) {
      if (instance->state == InstanceState::kWaiting)
        instance->why = absl::StrCat("no connected host serves all plugins of ", unserved);
    }
  }
  const std::string what =
      absl::StrCat("No connected host serves these plugins; ", unserved,
                   ". Connected hosts: ", absl::StrJoin(connected, ", "),
                   missing.empty() ? "" : "; no answer yet: ", absl::StrJoin(missing, ", "),
                   ". Pods wait until a host with these plugins connects.");
  // The hosts of a configuration usually answer one shortly after the other.
  if (missing.empty()) {
    LOG(WARNING) << what;
  } else {
    LOG(INFO) << what;
  }
}

void HostRegistry::Disconnect(Instance* instance) {
  instance->chain = nullptr;
  instance->shadow_cycle.reset();
  if (instance->cursor != 0) scheduler_->cluster()->RemoveHost(std::exchange(instance->cursor, 0));
  instance->inline_host = nullptr;
  instance->grpc_client = nullptr;
  instance->snapshot = nullptr;
  instance->awaits_cluster = false;
}

std::string HostRegistry::SessionOf(const Instance& instance) const {
  // The same at each connection with the instance, which then drops what it had.
  std::string session = absl::StrCat(
      session_id_, "-", absl::Hex(absl::Hash<std::string>()(instance.id()), absl::kZeroPad16));
  // A session that has ended stays so, and a recalled instance gets another one.
  if (instance.recalls != 0) absl::StrAppend(&session, "-", instance.recalls);
  return session;
}

void HostRegistry::Begin(const std::string& name, Instance* instance, absl::Time now) {
  Disconnect(instance);
  absl::StatusOr<Plans> plans = PlansWith(name, instance);
  if (!plans.ok()) {
    return Enter(name, instance, InstanceState::kRefused, std::string(plans.status().message()),
                 now);
  }
  const auto configure = plans->configure.find(name);
  if (configure == plans->configure.end()) {
    LOG(WARNING) << "Host \"" << name << "\" serves no profile";
    return Enter(name, instance, InstanceState::kStandby, "it serves no profile", now);
  }
  if (std::string why = WhyNoSession(*instance); !why.empty())
    return Enter(name, instance, InstanceState::kWaiting, std::move(why), now);
  instance->configured = configure->second;
  instance->began = now;
  single_sessions_.OnBegun(instance->id());
  instance->grpc_client = NewClient(*instance, SessionOf(*instance));
  instance->grpc_client->StartConfigure(instance->configured, SteadyNow() + limits_.configure);
  Enter(name, instance, InstanceState::kSyncing, "it is being configured", now);
  scheduler_->ExpectHost(name, now);
}

void HostRegistry::Adopt(Plans plans, const std::string& by_host, absl::Time now) {
  const std::optional<Plans> previous = std::exchange(plans_, std::move(plans));
  for (const std::string& warning : plans_->resolved.warnings) {
    if (previous.has_value() && previous->resolved.warnings == plans_->resolved.warnings) break;
    LOG(WARNING) << warning;
  }
  for (const framework::ProfilePlan& plan : plans_->profiles) scheduler_->SetPlan(plan);
  for (auto& [name, host] : hosts_) {
    if (name == by_host || host.serving == nullptr) continue;
    if (previous.has_value() && SameConfigure(*previous, *plans_, name)) continue;
    scheduler_->SetHost(name, nullptr, 0, now);
    Begin(name, std::exchange(host.serving, nullptr), now);
  }
}

void HostRegistry::Serve(const std::string& name, Instance* next, const std::string& reason,
                         const std::string& why, absl::Time now) {
  absl::StatusOr<Plans> plans = PlansWith(name, next);
  if (!plans.ok()) {
    Disconnect(next);
    return Enter(name, next, InstanceState::kRefused, std::string(plans.status().message()), now);
  }
  // Another host or the configuration may have changed its share since it was configured.
  const auto configure = plans->configure.find(name);
  if (configure == plans->configure.end() ||
      !MessageDifferencer::Equals(configure->second, next->configured)) {
    return Begin(name, next, now);
  }
  Host& host = hosts_[name];
  DropShadowCycle(next);
  Instance* const previous = std::exchange(host.serving, next);
  host.info = next->info;
  Adopt(*std::move(plans), name, now);
  next->grpc_client->SetCallObserver(callbacks_.call_observer(name));
  scheduler_->SetHost(name, next->client(scheduler_->cluster()), next->cursor, now);
  OUTBOARD_FAIL_POINT_IF(previous != nullptr, host_promoted);
  next->failures = next->bad_calls = 0;
  next->is_broken = false;
  Enter(name, next, InstanceState::kServing, why, now);
  if (previous != nullptr) {
    if (previous->grpc_client != nullptr) previous->grpc_client->SetCallObserver(nullptr);
    Enter(name, previous, InstanceState::kStandby, absl::StrCat(next->id(), " took over"), now);
  }
  ++switches_[{name, reason}];
  LOG(INFO) << "Host \"" << name << "\": " << next->text() << " serves"
            << (previous == nullptr ? "" : absl::StrCat(" instead of ", previous->text()))
            << ", at version " << next->grpc_client->acknowledged_version() << ": " << why;
}

void HostRegistry::Remove(const std::string& name, Instance* instance, absl::Time now) {
  Host& host = hosts_[name];
  if (host.serving == instance) {
    host.serving = nullptr;
    scheduler_->SetHost(name, nullptr, 0, now);
  }
  Disconnect(instance);
  host.instances.erase(std::find_if(host.instances.begin(), host.instances.end(),
                                    [&](const auto& held) { return held.get() == instance; }));
}

void HostRegistry::TakeWarning(const std::string& name, const Instance& instance,
                               const std::string& warning, std::string* kept) {
  const std::string cut = framework::CutText(warning);
  if (*kept == cut) return;
  *kept = cut;
  if (!cut.empty())
    LOG(WARNING) << "Host \"" << name << "\": " << instance.text() << " warns: " << cut;
}

void HostRegistry::TakeConfigWarnings(const std::string& name, Instance* instance,
                                      std::vector<std::string> warnings) {
  warnings.resize(std::min(warnings.size(), kMaxWarnings));
  std::string joined = absl::StrJoin(warnings, "; ");
  if (instance->config_warning == joined) return;
  instance->config_warning = std::move(joined);
  for (const std::string& warning : warnings)
    LOG(WARNING) << "Host \"" << name << "\": " << instance->text() << " warns: " << warning;
}

void HostRegistry::OnProbedReady(const std::string& name, const std::string& id,
                                 const v1beta1::ProbeResponse& probe, absl::Time now) {
  const auto it = hosts_.find(name);
  if (it == hosts_.end()) return;
  for (const auto& instance : it->second.instances) {
    if (instance->id() != id) continue;
    TakeWarning(name, *instance, probe.warning(), &instance->probe_warning);
    TakeProbedSession(name, instance.get(), probe.current_session_id(), now);
    break;  // It may be removed.
  }
  if (it->second.serving == nullptr || it->second.serving->id() != id) return;
  scheduler_->OnProbeAnswered(name, now);
}

void HostRegistry::OnDraining(const std::string& host_name, const std::string& id, absl::Time now) {
  Host& host = hosts_[host_name];
  for (const auto& instance : host.instances) {
    if (instance->id() != id || instance->state == InstanceState::kDraining) continue;
    const bool serves = host.serving == instance.get();
    if (instance->grpc_client != nullptr) instance->grpc_client->MarkDraining();
    if (serves) {
      if (Instance* next = host.NewestReady(instance.get()))
        Serve(host_name, next, "draining", absl::StrCat(id, " is draining"), now);
    }
    // A serving instance is kept, although unusable, until another one comes.
    Enter(host_name, instance.get(), InstanceState::kDraining, "it reported that it is draining",
          now);
    return RecallReplaced(host_name);
  }
}

void HostRegistry::TickHost(const std::string& name, Host* host, absl::Time now) {
  for (size_t i = host->instances.size(); i-- > 0;) {
    Instance* const instance = host->instances[i].get();
    if (instance->grpc_client == nullptr) continue;
    if (auto configured = instance->grpc_client->TakeConfigured()) {
      if (!configured->ok()) {
        OnLost(name, instance, absl::StrCat("Configure failed: ", configured->status().message()),
               now);
        continue;
      }
      TakeConfigWarnings(name, instance,
                         ConfigureWarnings(*config_, plans_->resolved, **configured));
      if (absl::Status problems = ConfigureError(*config_, plans_->resolved, **configured);
          !problems.ok()) {
        Disconnect(instance);
        Enter(name, instance, InstanceState::kRefused, std::string(problems.message()), now);
        continue;
      }
      instance->awaits_cluster = true;
      if (!cluster_is_complete_) instance->why = "the shim does not know the whole cluster yet";
    }
    if (instance->awaits_cluster && cluster_is_complete_) {
      instance->awaits_cluster = false;
      BeginCacheSync(name, instance, now);
      Enter(name, instance, InstanceState::kSyncing, "its cluster cache is being filled", now);
    }
    SendSnapshotPiece(*host, instance);
    EndIfBroken(name, host, instance, now);
  }
  Promote(name, host, now);
  const config::Replacement& replacement = config_->shim.replacement;
  Instance* const serving = host->serving;
  if (serving != nullptr && serving->failures >= replacement.rollback_failures &&
      now - serving->since < replacement.keep_warm) {
    Instance* previous = host->NewestOfAnotherBuild();
    // Late answers are rather its machine's load than the build's fault, and an exchange adds to
    // the load: a session ends, and the next begins with a snapshot.
    if (previous == nullptr && (serving->is_broken || scheduler_->IsHeldBack(name)))
      previous = host->NewestReady(serving);
    if (previous != nullptr) {
      GiveUp(name, host, previous,
             absl::StrCat(serving->bad_calls, " calls without a usable answer within ",
                          absl::FormatDuration(now - serving->since),
                          ", the last: ", serving->last_failure),
             now);
    }
  }
  for (size_t i = host->instances.size(); i-- > 0;) {
    Instance* const instance = host->instances[i].get();
    const bool is_over = instance->state == InstanceState::kStandby && host->serving != nullptr &&
                         host->serving != instance && instance->grpc_client != nullptr &&
                         now - instance->since >= replacement.keep_warm;
    if (!is_over) continue;
    LOG(INFO) << "Host \"" << name << "\": " << instance->text() << " was replaced; ending its "
              << "session";
    instance->grpc_client->SendEndSession();
    const std::string address = instance->endpoint.address;
    host->replaced.push_back(address);
    if (host->replaced.size() > kMaxReplaced) host->replaced.erase(host->replaced.begin());
    Remove(name, instance, now);
    callbacks_.on_retired(address);
  }
}

void HostRegistry::Tick(absl::Time now) {
  TakeAcceptances();
  for (auto& [name, host] : hosts_) TickHost(name, &host, now);
  if (now >= hosts_deadline_ || now >= NextSession()) BeginWaiting(now).IgnoreError();
  single_sessions_.SetYielding(YieldsToAnotherShim());
  if (now - followed_ < kFollowPeriod) return;
  followed_ = now;
  for (auto& [name, host] : hosts_) {
    for (const auto& instance : host.instances) {
      // An instance must not receive later changes while it evaluates.
      if (instance.get() != host.serving && instance->cursor != 0 &&
          instance->grpc_client != nullptr && instance->snapshot == nullptr &&
          !instance->grpc_client->sending() && !instance->shadow_cycle.has_value()) {
        Follow(instance.get(), now);
      }
    }
  }
}

absl::Status HostRegistry::Reload(std::shared_ptr<const config::Config> config, absl::Time now) {
  std::shared_ptr<const config::Config> old = std::exchange(config_, std::move(config));
  if (!plans_.has_value()) return BeginWaiting(now);
  absl::StatusOr<Plans> plans = PlansWith("", nullptr);
  if (!plans.ok()) {
    config_ = std::move(old);
    return plans.status();
  }
  Adopt(*std::move(plans), "", now);
  // Instances refused before may be usable now.
  for (auto& [name, host] : hosts_) {
    for (size_t i = 0; i < host.instances.size(); ++i) {
      Instance* const instance = host.instances[i].get();
      const bool served_no_profile =
          instance->state == InstanceState::kStandby && instance->grpc_client == nullptr;
      if (instance->state == InstanceState::kRefused || served_no_profile)
        Begin(name, instance, now);
    }
  }
  return absl::OkStatus();
}

bool HostRegistry::IsServed(const std::string& host) const {
  const auto it = hosts_.find(host);
  if (it == hosts_.end()) return false;
  if (WaitsToLead(it->second)) return true;
  return it->second.serving != nullptr && it->second.serving->ready() &&
         !scheduler_->IsHeldBack(host);
}

absl::Status HostRegistry::UnresolvedProfiles() const {
  if (plans_.has_value() || !EveryHostAnswered()) return absl::OkStatus();
  return PlansWith("", nullptr).status();
}

bool HostRegistry::AllReady() const {
  if (!plans_.has_value()) return false;
  return std::all_of(plans_->configure.begin(), plans_->configure.end(),
                     [this](const auto& entry) { return IsServed(entry.first); });
}

bool HostRegistry::ServesSomePods() const {
  if (!plans_.has_value()) return false;
  const auto is_served = [this](const framework::ProfilePlan& profile) {
    for (size_t i = 0; i < profile.host_names.size(); ++i) {
      const std::string& name = profile.host_names[i];
      const bool is_skipped_for_others = std::any_of(
          profile.skipped.begin(), profile.skipped.end(),
          [&](const framework::SkippedHost& skipped) { return skipped.host_name == name; });
      if (!is_skipped_for_others && !profile.CanDoWithout(i) && !IsServed(name)) return false;
    }
    return true;
  };
  return std::any_of(plans_->profiles.begin(), plans_->profiles.end(), is_served);
}

}  // namespace outboard::hosts
