#include "shim/reload/config_status.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shim/bind/api_requests.h"

namespace outboard::reload {
namespace {

constexpr char kAction[] = "Reloading";

// Takes `NUMBER:` from the front.
bool TakeNumber(absl::string_view* text) {
  const size_t colon = text->find(':');
  int number = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text->substr(0, colon), &number))
    return false;
  text->remove_prefix(colon + 1);
  return true;
}

// Whether it is the path of a field: profiles[0].plugins.score.
bool IsPath(absl::string_view text) {
  for (const char c : text) {
    const bool may = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '[' ||
                     c == ']' || c == '-' || c == '_';
    if (!may) return false;
  }
  return !text.empty();
}

std::string RestartText(const std::vector<std::string>& waiting) {
  return absl::StrCat("fields that wait for a restart: ", absl::StrJoin(waiting, ", "));
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

std::string PlaceOf(absl::string_view file, absl::string_view problem) {
  absl::string_view rest = problem;
  if (!absl::ConsumePrefix(&rest, file) || !absl::ConsumePrefix(&rest, ":") || !TakeNumber(&rest) ||
      !TakeNumber(&rest) || !absl::ConsumePrefix(&rest, " "))
    return "";
  const absl::string_view path = rest.substr(0, rest.find(": "));
  if (IsPath(path)) rest.remove_prefix(path.size());
  return std::string(absl::StripSuffix(problem.substr(0, problem.size() - rest.size()), ": "));
}

ConfigStatus::ConfigStatus(metrics::Metrics* metrics, Record record,
                           std::function<absl::Time()> wall)
    : metrics_(metrics), record_(std::move(record)), wall_(std::move(wall)) {}

void ConfigStatus::SetInForce(const config::Config& config) {
  problems_.clear();
  reported_.clear();
  metrics_->config_info.Clear();
  metrics_->config_info.With({absl::StrCat("sha256:", config.sha256)}).Set(1);
  metrics_->config_reload_successful.Set(1);
  metrics_->config_reload_time.Set(absl::ToDoubleSeconds(wall_() - absl::UnixEpoch()));
}

void ConfigStatus::TakeWaiting(std::vector<std::string> waiting) {
  waiting_ = std::move(waiting);
  metrics_->config_restart_required.Set(waiting_.empty() ? 0 : 1);
}

void ConfigStatus::Started(const config::Config& config) {
  absl::MutexLock lock(&mutex_);
  SetInForce(config);
}

void ConfigStatus::Loaded(const config::Config& config, const std::vector<std::string>& waiting,
                          absl::Time now) {
  {
    absl::MutexLock lock(&mutex_);
    SetInForce(config);
    TakeWaiting(waiting);
  }
  bind::ObjectEvent event;
  event.type = waiting.empty() ? "Normal" : "Warning";
  event.reason = "ConfigurationLoaded";
  event.action = kAction;
  event.note = bind::TruncateNote(
      absl::StrCat("loaded ", config.file, " (sha256:", config.sha256, ")",
                   waiting.empty() ? "" : absl::StrCat("; ", RestartText(waiting))));
  record_(std::move(event), now);
}

void ConfigStatus::Refused(absl::string_view file, absl::string_view sha256,
                           absl::string_view problems, absl::string_view running, absl::Time now) {
  {
    absl::MutexLock lock(&mutex_);
    file_ = std::string(file);
    problems_ = problems.empty() ? absl::StrCat(file, ": refused") : std::string(problems);
    running_ = std::string(running);
    refused_at_ = wall_();
    metrics_->config_reload_successful.Set(0);
    std::string reported = absl::StrCat(sha256, "\n", problems_);
    if (reported_ == reported) return;
    reported_ = std::move(reported);
  }
  bind::ObjectEvent event;
  event.type = "Warning";
  event.reason = "ConfigurationRefused";
  event.action = kAction;
  event.note = bind::TruncateNote(absl::StrCat(problems, "\n", running));
  record_(std::move(event), now);
}

bool ConfigStatus::is_refused() const {
  absl::MutexLock lock(&mutex_);
  return !problems_.empty();
}

std::string ConfigStatus::Note() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> notes;
  if (!problems_.empty()) {
    const std::vector<std::string> lines = absl::StrSplit(problems_, '\n');
    const std::string place = PlaceOf(file_, lines[0]);
    notes.push_back(absl::StrCat(
        "the file was refused at ", TimeText(refused_at_),
        place.empty() ? "" : absl::StrCat(" because of ", place),
        lines.size() > 1 ? absl::StrCat(" and ", lines.size() - 1, " more") : "", "; ", running_));
  }
  if (!waiting_.empty()) notes.push_back(RestartText(waiting_));
  return absl::StrJoin(notes, "; ");
}

std::string ConfigStatus::Comment() const {
  absl::MutexLock lock(&mutex_);
  std::string comment;
  if (!problems_.empty()) {
    absl::StrAppend(&comment, "# ", file_, " was refused at ", TimeText(refused_at_), "; ",
                    running_, ":\n");
    for (const absl::string_view line : absl::StrSplit(problems_, '\n'))
      absl::StrAppend(&comment, "#   ", line, "\n");
  }
  if (!waiting_.empty()) absl::StrAppend(&comment, "# ", RestartText(waiting_), "\n");
  return comment;
}

}  // namespace outboard::reload
