#include "plugin_host/sdk/run_facts/run_facts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/run_facts/run_labels.h"

namespace outboard::sdk {
namespace {

std::optional<bool> ParseKaiPreemptibility(const std::string& text) {
  if (absl::EqualsIgnoreCase(text, "preemptible")) return true;
  // A label does not tell which pods of a semi-preemptible group may be preempted.
  if (absl::EqualsIgnoreCase(text, "non-preemptible") ||
      absl::EqualsIgnoreCase(text, "semi-preemptible"))
    return false;
  return std::nullopt;
}

// Reads labels and annotations of a pod; remembers malformed ones.
class PodReader {
 public:
  PodReader(const v1beta1::Pod& pod, std::vector<MalformedLabel>* malformed)
      : pod_(pod), malformed_(malformed) {}

  RunFact<absl::Time> Time(const char* key, RunSource source) {
    return Read<absl::Time>(
        pod_.annotations(), "annotation ", key, source,
        [](const std::string& text) { return ParseTimestamp(text); },
        "a time such as 2026-01-31T22:00:00Z");
  }
  RunFact<bool> Bool(const char* key, RunSource source) {
    return ReadBool(pod_.annotations(), "annotation ", key, source);
  }
  RunFact<bool> BoolLabel(const char* key, RunSource source) {
    return ReadBool(pod_.labels(), "label ", key, source);
  }
  RunFact<absl::Duration> Seconds(const char* key, RunSource source) {
    return ReadAmount(pod_.annotations(), "annotation ", key, source, absl::Seconds(1), 0);
  }
  // Limits: at least 1.
  RunFact<absl::Duration> SecondsLabel(const char* key, RunSource source) {
    return ReadAmount(pod_.labels(), "label ", key, source, absl::Seconds(1), 1);
  }
  RunFact<absl::Duration> Minutes(const char* key, RunSource source) {
    return ReadAmount(pod_.annotations(), "annotation ", key, source, absl::Minutes(1), 1);
  }
  RunFact<bool> KaiPreemptibility() {
    return Read<bool>(pod_.labels(), "label ", run_labels::kKaiPreemptibility,
                      RunSource::kOtherScheduler, ParseKaiPreemptibility,
                      "preemptible, non-preemptible or semi-preemptible");
  }

 private:
  template <typename T, typename Parse>
  RunFact<T> Read(const StringMap& map, const char* where, const char* key, RunSource source,
                  Parse parse, const char* wanted) {
    const std::string* text = FindValue(map, key);
    if (text == nullptr) return {};
    if (std::optional<T> value = parse(*text)) return {value, source, absl::StrCat(where, key)};
    if (malformed_ != nullptr) malformed_->push_back({key, *text, wanted});
    return {};
  }
  RunFact<bool> ReadBool(const StringMap& map, const char* where, const char* key,
                         RunSource source) {
    return Read<bool>(
        map, where, key, source, [](const std::string& text) { return ParseBool(text); },
        "true or false");
  }
  RunFact<absl::Duration> ReadAmount(const StringMap& map, const char* where, const char* key,
                                     RunSource source, absl::Duration unit, int64_t least) {
    return Read<absl::Duration>(
        map, where, key, source,
        [&](const std::string& text) -> std::optional<absl::Duration> {
          const auto count = ParseCount(text, kMaxRunSeconds / absl::ToInt64Seconds(unit));
          if (!count || *count < least) return std::nullopt;
          return *count * unit;
        },
        unit == absl::Seconds(1) ? "a number of seconds" : "a number of minutes");
  }

  const v1beta1::Pod& pod_;
  std::vector<MalformedLabel>* const malformed_;
};

// Takes the fact if none is known yet.
template <typename T>
void Else(RunFact<T> next, RunFact<T>* fact) {
  if (!fact->known() && next.known()) *fact = std::move(next);
}
template <typename T>
void Else(const std::optional<T>& value, RunSource source, const char* origin, RunFact<T>* fact) {
  if (!fact->known() && value) *fact = {value, source, origin};
}
template <typename T>
void Earlier(RunFact<T> next, RunFact<T>* fact) {
  if (next.known() && (!fact->known() || *next.value < *fact->value)) *fact = std::move(next);
}
template <typename T>
void Earlier(const std::optional<T>& value, RunSource source, const char* origin,
             RunFact<T>* fact) {
  if (value) Earlier<T>({value, source, origin}, fact);
}

// No API server accepts a deadline below 1.
std::optional<absl::Duration> DeadlineOf(const v1beta1::Pod& pod) {
  const int64_t seconds = pod.active_deadline_seconds();
  if (seconds <= 0 || seconds > kMaxRunSeconds) return std::nullopt;
  return absl::Seconds(seconds);
}

void ReadTimes(const v1beta1::Pod& pod, PodReader* reader, RunFacts* facts) {
  facts->declared_start = reader->Time(run_labels::kStart, RunSource::kOwn);
  if (facts->declared_start.known() &&
      *facts->declared_start.value < absl::FromUnixSeconds(pod.creation_unix_seconds()))
    facts->declared_start = {};
  if (pod.start_unix_seconds() != 0)
    facts->pod_start = {absl::FromUnixSeconds(pod.start_unix_seconds()), RunSource::kPod,
                        "status.startTime"};
  facts->estimated_end = reader->Time(run_labels::kEstimatedEnd, RunSource::kOwn);
  facts->run_time = reader->Seconds(run_labels::kRunSeconds, RunSource::kOwn);
  Else(reader->Minutes(run_labels::kSlurmMinutes, RunSource::kOtherScheduler), &facts->run_time);
  Earlier(DeadlineOf(pod), RunSource::kPod, "spec.activeDeadlineSeconds", &facts->run_limit);
  Earlier(reader->SecondsLabel(run_labels::kKueueSeconds, RunSource::kOtherScheduler),
          &facts->run_limit);
}

void ReadCheckpoints(PodReader* reader, RunFacts* facts) {
  facts->checkpointing = reader->Bool(run_labels::kCheckpointing, RunSource::kOwn);
  for (const auto& [key, source] :
       {std::pair(run_labels::kLastCheckpoint, RunSource::kOwn),
        std::pair(run_labels::kVolcanoLastCheckpoint, RunSource::kOtherScheduler)}) {
    if (RunFact<absl::Time> checkpoint = reader->Time(key, source); checkpoint.known())
      facts->checkpoints.push_back(std::move(checkpoint));
  }
  facts->restart_time = reader->Seconds(run_labels::kRestartSeconds, RunSource::kOwn);
}

void ReadPreemptibility(PodReader* reader, RunFacts* facts) {
  facts->preemptible = reader->Bool(run_labels::kPreemptible, RunSource::kOwn);
  Else(reader->KaiPreemptibility(), &facts->preemptible);
  Else(reader->Bool(run_labels::kVolcanoPreemptable, RunSource::kOtherScheduler),
       &facts->preemptible);
  Else(reader->BoolLabel(run_labels::kVolcanoPreemptable, RunSource::kOtherScheduler),
       &facts->preemptible);
  if (facts->preemptible.value.value_or(false)) facts->restartable = facts->preemptible;
  RunFact<bool> resumes = reader->Bool(run_labels::kAutoResume, RunSource::kTrainingService);
  if (resumes.value.value_or(false)) Else(std::move(resumes), &facts->restartable);
}

void ReadOwners(const v1beta1::Pod& pod, const RunOwners& owners, RunFacts* facts) {
  const std::optional<bool> yes = true;
  if (const RunOwner* train_job = owners.TrainJobOf(pod)) {
    constexpr RunSource kSource = RunSource::kTrainJob;
    Else(train_job->estimated_end, kSource, "TrainJob status.trainerStatus", &facts->estimated_end);
    Earlier(train_job->run_limit, kSource, "TrainJob spec.activeDeadlineSeconds",
            &facts->run_limit);
    Earlier(train_job->kueue_limit, kSource, "TrainJob label kueue.x-k8s.io/max-exec-time-seconds",
            &facts->run_limit);
    if (train_job->reports_progress)
      Else(yes, kSource, "TrainJob status.trainerStatus", &facts->restartable);
  }
  if (const RunOwner* job_set = owners.JobSetOf(pod)) {
    constexpr RunSource kSource = RunSource::kJobSet;
    Else(job_set->slurm_limit, kSource, "JobSet annotation slurmjob.slinky.slurm.net/timelimit",
         &facts->run_time);
    Earlier(job_set->kueue_limit, kSource, "JobSet label kueue.x-k8s.io/max-exec-time-seconds",
            &facts->run_limit);
    if (job_set->has_restarts_left)
      Else(yes, kSource, "JobSet spec.failurePolicy.maxRestarts", &facts->restartable);
  }
  if (const RunOwner* job = owners.JobOf(pod)) {
    constexpr RunSource kSource = RunSource::kJob;
    Else(job->slurm_limit, kSource, "Job annotation slurmjob.slinky.slurm.net/timelimit",
         &facts->run_time);
    Earlier(job->kueue_limit, kSource, "Job label kueue.x-k8s.io/max-exec-time-seconds",
            &facts->run_limit);
    Earlier(job->deadline, kSource, "Job spec.activeDeadlineSeconds", &facts->deadline);
  }
}

}  // namespace

const char* RunSourceName(RunSource source) {
  switch (source) {
    case RunSource::kOwn:
      return "annotation";
    case RunSource::kPod:
      return "pod";
    case RunSource::kOtherScheduler:
      return "another scheduler's label";
    case RunSource::kTrainingService:
      return "training service";
    case RunSource::kTrainJob:
      return "TrainJob";
    case RunSource::kJobSet:
      return "JobSet";
    case RunSource::kJob:
      return "Job";
    case RunSource::kNone:
      break;
  }
  return "unknown";
}

const RunFact<absl::Time>& RunFacts::StartAt(absl::Time now) const {
  return declared_start.known() && *declared_start.value <= now ? declared_start : pod_start;
}

RunFact<absl::Time> RunFacts::CheckpointAt(absl::Time now) const {
  for (const RunFact<absl::Time>& checkpoint : checkpoints) {
    if (*checkpoint.value <= now) return checkpoint;
  }
  return {};
}

std::optional<absl::Time> RunFacts::NewestCheckpoint() const {
  std::optional<absl::Time> newest;
  for (const RunFact<absl::Time>& checkpoint : checkpoints)
    newest = std::max(newest, checkpoint.value);
  return newest;
}

RunFact<absl::Time> RunFacts::DeclaredEnd() const {
  if (estimated_end.known() || !run_time.known()) return estimated_end;
  const RunFact<absl::Time>& start = declared_start.known() ? declared_start : pod_start;
  if (!start.known()) return {};
  return {*start.value + *run_time.value, run_time.source, run_time.origin};
}

RunFact<absl::Time> RunFacts::EnforcedEnd() const {
  RunFact<absl::Time> end = deadline;
  if (run_limit.known() && pod_start.known())
    Earlier<absl::Time>({*pod_start.value + *run_limit.value, run_limit.source, run_limit.origin},
                        &end);
  return end;
}

RunFact<absl::Time> RunFacts::End() const {
  RunFact<absl::Time> end = DeclaredEnd();
  Earlier(EnforcedEnd(), &end);
  return end;
}

RunFacts RunFactsReader::Of(const v1beta1::Pod& pod, std::vector<MalformedLabel>* malformed) const {
  RunFacts facts;
  PodReader reader(pod, malformed);
  ReadTimes(pod, &reader, &facts);
  ReadCheckpoints(&reader, &facts);
  ReadPreemptibility(&reader, &facts);
  ReadOwners(pod, owners_, &facts);
  return facts;
}

std::vector<std::string> RunAnnotations() {
  return {
      run_labels::kCheckpointing,  run_labels::kLastCheckpoint, run_labels::kVolcanoLastCheckpoint,
      run_labels::kStart,          run_labels::kEstimatedEnd,   run_labels::kRunSeconds,
      run_labels::kRestartSeconds, run_labels::kPreemptible,    run_labels::kVolcanoPreemptable,
      run_labels::kSlurmMinutes,   run_labels::kAutoResume};
}

}  // namespace outboard::sdk
