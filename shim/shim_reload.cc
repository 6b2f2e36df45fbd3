// The reload of the configuration while the process runs, and the last good configuration.
#include <glog/logging.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/clock.h"
#include "shim/shim_process.h"

namespace outboard::shim {
namespace {

// How long a custom resource that a file adds may take until it is listed, and when the file is
// tried again if it takes longer: the usual cause is a missing right, which may be granted later.
constexpr absl::Duration kListTimeout = absl::Seconds(30);
constexpr absl::Duration kRetryReload = absl::Minutes(1);
// How long another host may take that serves what the hosts of the configuration do not.
constexpr absl::Duration kHostsTimeout = absl::Seconds(30);
constexpr absl::Duration kUnknownProfilesPeriod = absl::Seconds(5);
// Events about pods of unknown profiles at a time: failed pods' own events come first.
constexpr size_t kUnknownProfileEvents = 100;
constexpr size_t kMaxWaitingSelfEvents = 16;

// Those of `config`, and of `more` what it does not have.
std::vector<kube::CustomResourceName> AllResources(const config::Config& config,
                                                   const config::Config& more) {
  std::vector<kube::CustomResourceName> all = WatchedResources(config);
  for (kube::CustomResourceName& name : WatchedResources(more)) {
    const bool is_known =
        absl::c_any_of(all, [&](const auto& known) { return known.path() == name.path(); });
    if (!is_known) all.push_back(std::move(name));
  }
  return all;
}

}  // namespace

FileStamp StampOf(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_size,
          status.st_mtim.tv_sec * int64_t{1000000000} + status.st_mtim.tv_nsec};
}

std::vector<kube::CustomResourceName> WatchedResources(const config::Config& config) {
  std::vector<kube::CustomResourceName> watched;
  // The configuration was validated, so the names parse.
  for (const config::CustomResourceRule& rule : config.shim.custom_resources) {
    kube::CustomResourceName name = *kube::ParseCustomResourceName(rule.resource);
    if (!kube::IsWriteOnly(name)) watched.push_back(std::move(name));
  }
  return watched;
}

std::string ShimProcess::RunningText() const {
  if (config_->file == options_.last_good_file)
    return absl::StrCat("running on the last good configuration, ", config_->file);
  return absl::StrCat("the configuration of sha256:", config_->sha256, " stays in force");
}

void ShimProcess::CheckConfigFile(absl::Time now) {
  const FileStamp stamp = StampOf(config_file_);
  if (!reload_wanted_.exchange(false) && stamp == config_stamp_ && now < retry_reload_) return;
  config_stamp_ = stamp;
  retry_reload_ = absl::InfiniteFuture();
  // A changed file replaces a reload in progress.
  EndReload(StartReload(now), now);
}

absl::Status ShimProcess::StartReload(absl::Time now) {
  reload_.reset();
  config::Config next;
  const absl::Status read = config::ReadConfigFile(config_file_, &next);
  read_sha256_ = next.sha256;
  if (!read.ok()) return read;
  if (absl::Status checked = CheckServed(next); !checked.ok()) return checked;
  absl::StatusOr<std::vector<std::string>> waiting = config::KeepUntilRestart(*config_, &next);
  if (!waiting.ok()) return waiting.status();
  auto shared = std::make_shared<const config::Config>(std::move(next));
  absl::StatusOr<hosts::ConfigCheck> check = host_registry_.CheckReload(shared);
  if (!check.ok()) return check.status();
  // Plugins that need a resource find its objects in their caches from the beginning.
  object_informers_.SetCustomResources(AllResources(*shared, *config_));
  reload_.emplace(PendingReload{*std::move(check), /*is_accepted=*/false, *std::move(waiting),
                                now + kListTimeout});
  return absl::OkStatus();
}

void ShimProcess::EndReload(const absl::Status& ended, absl::Time now) {
  reload_failed_ = !ended.ok();
  if (ended.ok()) return;
  reload_.reset();
  object_informers_.SetCustomResources(WatchedResources(*config_));
  config_status_.Refused(config_file_, read_sha256_, ended.message(), RunningText(), now);
  LOG(ERROR) << "Config reload failed; keeping the current configuration:\n" << ended.message();
}

void ShimProcess::TickReload(absl::Time now) {
  if (!reload_.has_value()) return;
  if (!reload_->is_accepted) {
    const std::optional<absl::Status> checked = reload_->check.Take();
    if (!checked.has_value()) return;
    if (!checked->ok()) return EndReload(*checked, now);
    reload_->is_accepted = true;
  }
  const absl::Status listed = CheckAdded(now);
  if (absl::IsUnavailable(listed)) return;
  if (!listed.ok()) {
    retry_reload_ = now + kRetryReload;
    return EndReload(listed, now);
  }
  const std::vector<std::string> waiting = std::move(reload_->waiting);
  std::shared_ptr<const config::Config> next = reload_->check.config();
  reload_.reset();
  absl::Status applied = Apply(std::move(next), now);
  if (applied.ok()) {
    config_status_.Loaded(*config_, waiting, now);
    LOG(INFO) << "Config reloaded; the new configuration is in force";
    if (!waiting.empty())
      LOG(WARNING) << "Fields that wait for a restart: " << absl::StrJoin(waiting, ", ");
  }
  EndReload(applied, now);
}

absl::Status ShimProcess::CheckAdded(absl::Time now) {
  const config::Config& next = *reload_->check.config();
  const std::vector<std::string> unsynced = object_informers_.Unsynced(WatchedResources(next));
  if (unsynced.empty() || !Synced()) return absl::OkStatus();
  if (now < reload_->list_by) return absl::UnavailableError("not listed yet");
  std::vector<std::string> problems;
  for (const config::CustomResourceRule& rule : next.shim.custom_resources) {
    if (!absl::c_linear_search(unsynced, rule.resource)) continue;
    problems.push_back(absl::StrCat(
        next.file, ":", rule.where.line, ":", rule.where.column, ": ", rule.where.path, ": ",
        rule.resource, " was not listed within ", absl::FormatDuration(kListTimeout),
        "; the log has the cause. May the shim's account list and watch it?"));
  }
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

absl::Status ShimProcess::Apply(std::shared_ptr<const config::Config> next, absl::Time now) {
  if (absl::Status taken = host_registry_.Reload(next, now); !taken.ok()) return taken;
  config_ = std::move(next);
  for (const std::string& warning : config_->warnings) LOG(WARNING) << warning;
  if (options_.verbosity < 0) FLAGS_v = config_->shim.verbosity;
  scheduler_.SetOptions(SchedulerOptionsOf(*config_));
  observer_.SetLabels(config_->shim.metrics);
  scheduler_.ChangeProfileNames(ProfileNames(*config_), now);
  connector_->SetConfig(config_->shim);
  host_pods_->SetConfig(config_->shim);
  object_informers_.SetCustomResources(WatchedResources(*config_));
  ConfigureUnknownProfiles(now);
  sampler_.WatchCertificates(*config_);
  is_kept_ = config_->file == options_.last_good_file;
  return absl::OkStatus();
}

absl::Status ShimProcess::UseLastGood(const absl::Status& problem, absl::Time now) {
  const std::string& file = options_.last_good_file;
  if (file.empty() || config_->file == file) return problem;
  const auto failed = [&](const absl::Status& why) {
    return absl::InvalidArgumentError(
        absl::StrCat(problem.message(), "\n", why.message(),
                     " (the last good configuration, which cannot be used either)"));
  };
  absl::StatusOr<config::Config> kept = config::LoadConfigFile(file);
  if (!kept.ok()) return failed(kept.status());
  // What the refused file says of these fields is in use already.
  const auto waiting = config::KeepUntilRestart(*config_, &*kept);
  if (!waiting.ok()) return failed(waiting.status());
  read_sha256_ = config_->sha256;
  if (absl::Status applied = Apply(std::make_shared<const config::Config>(*std::move(kept)), now);
      !applied.ok())
    return failed(applied);
  config_status_.Started(*config_);
  config_status_.Refused(config_file_, read_sha256_, problem.message(), RunningText(), now);
  reload_failed_ = true;
  LOG(ERROR) << "The configuration cannot be used; " << RunningText() << ":\n" << problem.message();
  return absl::OkStatus();
}

void ShimProcess::CheckProfiles(absl::Time now) {
  const bool has_other = !options_.last_good_file.empty() && !reload_failed_;
  const absl::Status why = has_other ? host_registry_.UnresolvedProfiles() : absl::OkStatus();
  if (why.ok()) {
    profiles_unresolved_ = absl::InfiniteFuture();
    return;
  }
  profiles_unresolved_ = std::min(profiles_unresolved_, now);
  if (now - profiles_unresolved_ < kHostsTimeout) return;
  if (const absl::Status used = UseLastGood(why, now); !used.ok()) {
    reload_failed_ = true;
    LOG(ERROR) << "Profiles cannot be used; waiting for more hosts:\n" << used.message();
  }
}

void ShimProcess::RecordAboutSelf(bind::ObjectEvent event, absl::Time now) {
  if (options_.pod_name.empty() || options_.pod_namespace.empty()) return;
  if (!caches_synced_) {
    if (waiting_self_events_.size() < kMaxWaitingSelfEvents)
      waiting_self_events_.push_back(std::move(event));
    return;
  }
  event.profile = kReporter;
  event.object_namespace = options_.pod_namespace;
  event.object_name = options_.pod_name;
  // `kubectl describe pod` shows events of the pod's uid.
  if (const kube::PodPtr pod =
          cluster_->FindPodNamed(absl::StrCat(options_.pod_namespace, "/", options_.pod_name)))
    event.object_uid = pod->uid();
  self_events_.Record(std::move(event), now);
}

void ShimProcess::RecordSelfEvents(absl::Time now) {
  for (bind::ObjectEvent& event : std::exchange(waiting_self_events_, {}))
    RecordAboutSelf(std::move(event), now);
}

void ShimProcess::ConfigureUnknownProfiles(absl::Time now) {
  unknown_profiles_.Configure(ProfileNames(*config_), config_->shim.unknown_profiles.prefixes);
  cluster_->ForEachPod(
      [&](const kube::PodPtr& pod, bool assumed) { unknown_profiles_.OnPod(pod, now); });
}

void ShimProcess::ReportUnknownProfiles(absl::Time now) {
  if (now - unknown_profiles_reported_ < kUnknownProfilesPeriod) return;
  unknown_profiles_reported_ = now;
  for (const auto& [scheduler, pods] : unknown_profiles_.Count(now))
    metrics_.unknown_profile_pods.With({scheduler}).Set(static_cast<double>(pods));
  if (!Leading()) return;
  unknown_profiles_.TakeUnreported(kUnknownProfileEvents, now, [&](const kube::PodObject& pod) {
    bind::ObjectEvent event = bind::FailedSchedulingEvent(
        pod, kReporter,
        absl::StrCat("no profile is named \"", pod.pod.scheduler_name(),
                     "\"; the pod waits until a scheduler with this name runs. Profiles here: ",
                     absl::StrJoin(ProfileNames(*config_), ", ")));
    event.reason = "UnknownProfile";
    events_.Record(std::move(event), now);
  });
}

}  // namespace outboard::shim
