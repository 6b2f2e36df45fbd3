// What people and files tell the process while it runs, and what it tells them.
#include <glog/logging.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "shim/host_report/host_report.h"
#include "shim/hosts/plans.h"
#include "shim/queue_report/queue_report.h"
#include "shim/shim_process.h"

namespace outboard::shim {
namespace {

// What a page waits for the scheduling thread; its own calls end within a second or so.
constexpr absl::Duration kPageAnswer = absl::Seconds(10);

absl::Status NotInTime() {
  return absl::UnavailableError("the scheduling thread did not come to it in time");
}

}  // namespace

FileStamp StampOf(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_size,
          status.st_mtim.tv_sec * int64_t{1000000000} + status.st_mtim.tv_nsec};
}

cycle::SchedulerOptions SchedulerOptionsOf(const config::Config& config) {
  cycle::SchedulerOptions options;
  options.cycle_deadline = config.shim.deadlines.cycle;
  options.reserve_deadline = config.shim.deadlines.reserve;
  options.permit_deadline = config.shim.deadlines.permit;
  options.queue_deadline = config.shim.deadlines.queue;
  options.custom_resources = hosts::AllowedResources(config.shim.custom_resources);
  return options;
}

std::vector<std::string> ProfileNames(const config::Config& config) {
  std::vector<std::string> names;
  for (const config::ProfileSpec& profile : config.scheduler.profiles)
    names.push_back(profile.scheduler_name);
  return names;
}

absl::Status CheckServed(const config::Config& config) {
  if (!config.shim.hosts.empty() || !config.shim.socket_directory.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(config.file,
                   ": hosts: name at least one plugin host, or a socketDirectory, in the "
                   "ShimConfiguration document"));
}

absl::StatusOr<std::string> ShimProcess::DescribeQueue(size_t limit, const std::string& pod) {
  queue_report::Query query;
  if (limit != 0) query.limit = limit;
  query.pod = pod;
  const std::optional<queue_report::Report> report = inbox_.Ask<queue_report::Report>(
      [this, query](absl::Time now) {
        // What hosts have said counts: an acknowledgement comes with it.
        scheduler_.Tick(now);
        queue_report::Report report = queue_report::Collect(scheduler_.queue(), query, now);
        for (const hosts::HostSet::View& view : host_set_.Describe()) {
          if (view.state != hosts::InstanceState::kServing) continue;
          report.hosts.push_back({view.host, view.instance, view.usable, view.sent_version,
                                  view.acknowledged_version});
        }
        return report;
      },
      kPageAnswer);
  if (!report.has_value()) return NotInTime();
  return queue_report::ToJson(*report);
}

void ShimProcess::OnHandshake(const hosts::Endpoint& endpoint,
                              std::shared_ptr<grpc::Channel> channel,
                              v1alpha1::GetHostInfoResponse info, absl::Time now) {
  // At the start a configuration that cannot work ends the process; later, what works goes on.
  fatal_.Update(host_set_.OnHandshake(endpoint, std::move(channel), std::move(info), now));
}

std::string ShimProcess::DescribeConfig() {
  const auto text = inbox_.Ask<std::string>(
      [this](absl::Time) { return config::EffectiveConfigYaml(*config_, nullptr); }, kPageAnswer);
  return text.value_or("# the scheduling thread did not come to it in time\n");
}

absl::StatusOr<std::string> ShimProcess::DescribeHosts() {
  const auto report = inbox_.Ask<host_report::Report>(
      [this](absl::Time now) { return host_report::Collect(host_set_, now); }, kPageAnswer);
  if (!report.has_value()) return NotInTime();
  return host_report::ToJson(*report);
}

absl::Status ShimProcess::Command(const http::HostCommand& command) {
  const auto ended = inbox_.Ask<absl::Status>(
      [this, command](absl::Time now) {
        switch (command.kind) {
          case http::HostCommand::Kind::kSwap:
            return host_set_.Swap(command.host, command.instance, now);
          case http::HostCommand::Kind::kRollback:
            return host_set_.Rollback(command.host, now);
          case http::HostCommand::Kind::kForgive:
            return host_set_.Forgive(command.host, now);
        }
        return absl::InvalidArgumentError("unknown command");
      },
      kPageAnswer);
  return ended.value_or(NotInTime());
}

void ShimProcess::LookAtConfigFile(absl::Time now) {
  const FileStamp stamp = StampOf(config_->file);
  if (!reload_wanted_.exchange(false) && stamp == config_stamp_) return;
  config_stamp_ = stamp;
  const absl::Status reloaded = LoadAgain(now);
  if (reloaded.ok()) return;
  LOG(ERROR) << "The configuration stays as it was; the file's is of no use:\n"
             << reloaded.message();
}

absl::Status ShimProcess::LoadAgain(absl::Time now) {
  absl::StatusOr<config::Config> loaded = config::LoadConfigFile(config_->file);
  if (!loaded.ok()) return loaded.status();
  if (absl::Status checked = CheckServed(*loaded); !checked.ok()) return checked;
  if (absl::Status checked = config::CheckReload(*config_, *loaded); !checked.ok()) return checked;
  auto next = std::make_shared<const config::Config>(*std::move(loaded));
  if (absl::Status taken = host_set_.Reload(next, now); !taken.ok()) return taken;
  config_ = std::move(next);
  for (const std::string& warning : config_->warnings) LOG(WARNING) << warning;
  scheduler_.SetOptions(SchedulerOptionsOf(*config_));
  scheduler_.ChangeProfileNames(ProfileNames(*config_), now);
  connector_->SetConfig(config_->shim);
  LOG(INFO) << "The configuration was read again and is in force";
  return absl::OkStatus();
}

}  // namespace outboard::shim
