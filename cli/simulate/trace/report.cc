#include "cli/simulate/trace/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace outboard::simulate::trace {
namespace {

using Json = nlohmann::ordered_json;

// More jobs would hide the summary.
constexpr size_t kJobsInTable = 40;

// Rounded to microseconds, like the trace.
double Rounded(double value) { return std::round(value * 1e6) / 1e6; }
double Seconds(absl::Duration duration) { return Rounded(absl::ToDoubleSeconds(duration)); }

Json SinceBegin(const std::optional<absl::Time>& time, const Records& records) {
  return time.has_value() ? Json(Seconds(*time - records.begin())) : Json(nullptr);
}

absl::Time WindowEnd(const Records& records, const Window& window) {
  return std::max(records.begin() + window.from,
                  std::min(records.end(), records.begin() + window.to));
}

void Count(const Job& job, const JobRecord& record, const Records& records, ClassSummary* out) {
  ++out->jobs;
  if (record.ended.has_value()) ++out->finished;
  out->preempted += record.preempted;
  out->gpu_seconds_lost += record.gpu_seconds_lost;
  out->gpu_seconds_idle += record.gpu_seconds_idle;
  if (!record.all_bound.has_value()) {
    ++out->unscheduled;
    return;
  }
  out->queue_seconds.push_back(
      absl::ToDoubleSeconds(*record.all_bound - records.begin() - job.arrival));
}

Json ToJson(const ClassSummary& summary) {
  return {{"jobs", summary.jobs},
          {"finished", summary.finished},
          {"unscheduled", summary.unscheduled},
          {"preempted", summary.preempted},
          {"queueSeconds",
           {{"mean", Rounded(summary.QueueMean())},
            {"p50", Rounded(summary.QueueQuantile(0.5))},
            {"p95", Rounded(summary.QueueQuantile(0.95))},
            {"max", Rounded(summary.QueueQuantile(1))}}},
          {"gpuSecondsLost", Rounded(summary.gpu_seconds_lost)},
          {"gpuSecondsIdle", Rounded(summary.gpu_seconds_idle)}};
}

struct Piece {
  absl::Duration from, to;
  Records::Use use;
};
std::vector<Piece> Pieces(const Records& records, const Window& window) {
  std::vector<Piece> pieces;
  if (window.interval <= absl::ZeroDuration()) return pieces;
  const absl::Time end = WindowEnd(records, window);
  for (absl::Time from = records.begin() + window.from; from < end; from += window.interval) {
    const absl::Time to = std::min(end, from + window.interval);
    pieces.push_back({from - records.begin(), to - records.begin(), records.MeanUse(from, to)});
  }
  return pieces;
}

const char* StateOf(const JobRecord& record) {
  if (record.ended.has_value()) return "finished";
  if (!record.all_bound.has_value()) return "unscheduled";
  return record.pods_waiting > 0 ? "waiting" : "running";
}

std::string ClassRow(const std::string& name, const ClassSummary& s) {
  return absl::StrFormat("%-16s %7d %9d %11d %9.1f %9.1f %9.1f %9.1f %9d %13.0f %13.0f\n", name,
                         s.jobs, s.finished, s.unscheduled, s.QueueMean(), s.QueueQuantile(0.5),
                         s.QueueQuantile(0.95), s.QueueQuantile(1), s.preempted, s.gpu_seconds_lost,
                         s.gpu_seconds_idle);
}

}  // namespace

double ClassSummary::QueueMean() const {
  if (queue_seconds.empty()) return 0;
  return std::accumulate(queue_seconds.begin(), queue_seconds.end(), 0.0) /
         static_cast<double>(queue_seconds.size());
}

double ClassSummary::QueueQuantile(double share) const {
  if (queue_seconds.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(queue_seconds.size()));
  return queue_seconds[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

Summary Summarize(const std::vector<Job>& jobs, const Records& records, const Window& window) {
  Summary summary;
  summary.from = window.from;
  summary.to = WindowEnd(records, window) - records.begin();
  summary.use = records.MeanUse(records.begin() + summary.from, records.begin() + summary.to);
  for (size_t i = 0; i < jobs.size(); ++i) {
    const JobRecord& record = records.job(i);
    if (record.ended.has_value())
      summary.makespan = std::max(summary.makespan, *record.ended - records.begin());
    summary.pods_waiting += record.pods_waiting;
    summary.pods_bound += record.pods_bound;
    if (jobs[i].arrival < summary.from || jobs[i].arrival > summary.to) continue;
    Count(jobs[i], record, records, &summary.classes[jobs[i].job_class]);
    Count(jobs[i], record, records, &summary.all);
  }
  for (auto& [name, its] : summary.classes)
    std::sort(its.queue_seconds.begin(), its.queue_seconds.end());
  std::sort(summary.all.queue_seconds.begin(), summary.all.queue_seconds.end());
  return summary;
}

std::string ToJsonLines(const std::vector<Job>& jobs, const Records& records,
                        const Window& window) {
  std::string lines;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const JobRecord& record = records.job(i);
    if (records.begin() + job.arrival > records.end()) continue;
    const Json line = {
        {"job", job.key()},
        {"class", job.job_class},
        {"state", StateOf(record)},
        {"arrival", Seconds(job.arrival)},
        {"bound", SinceBegin(record.all_bound, records)},
        {"ended", SinceBegin(record.ended, records)},
        {"queueSeconds", record.all_bound.has_value()
                             ? Json(Seconds(*record.all_bound - records.begin() - job.arrival))
                             : Json(nullptr)},
        {"preempted", record.preempted},
        {"gpuSecondsLost", Rounded(record.gpu_seconds_lost)},
        {"cpuSecondsLost", Rounded(record.cpu_seconds_lost)},
        {"gpuSecondsIdle", Rounded(record.gpu_seconds_idle)},
        {"podsBound", record.pods_bound},
        {"podsWaiting", record.pods_waiting}};
    absl::StrAppend(&lines, line.dump(), "\n");
  }
  for (const Piece& piece : Pieces(records, window)) {
    const Json line = {{"from", Seconds(piece.from)},
                       {"to", Seconds(piece.to)},
                       {"gpu", Rounded(piece.use.gpu)},
                       {"cpu", Rounded(piece.use.cpu)}};
    absl::StrAppend(&lines, line.dump(), "\n");
  }
  const Summary summary = Summarize(jobs, records, window);
  Json classes = Json::object();
  for (const auto& [name, its] : summary.classes) classes[name] = ToJson(its);
  const Json line = {{"summary",
                      {{"from", Seconds(summary.from)},
                       {"to", Seconds(summary.to)},
                       {"gpu", Rounded(summary.use.gpu)},
                       {"cpu", Rounded(summary.use.cpu)},
                       {"makespan", Seconds(summary.makespan)},
                       {"podsBound", summary.pods_bound},
                       {"podsWaiting", summary.pods_waiting},
                       {"all", ToJson(summary.all)},
                       {"classes", std::move(classes)}}}};
  absl::StrAppend(&lines, line.dump(), "\n");
  return lines;
}

std::string ToTable(const std::vector<Job>& jobs, const Records& records, const Window& window) {
  const Summary summary = Summarize(jobs, records, window);
  std::string table;
  if (jobs.size() <= kJobsInTable) {
    absl::StrAppendFormat(&table, "%-30s %-12s %-12s %10s %10s %10s %9s %13s\n", "JOB", "CLASS",
                          "STATE", "ARRIVAL", "QUEUED", "ENDED", "PREEMPTED", "GPU-S LOST");
    for (size_t i = 0; i < jobs.size(); ++i) {
      const JobRecord& record = records.job(i);
      const auto seconds = [&](const std::optional<absl::Time>& time, absl::Duration since) {
        if (!time.has_value()) return std::string("-");
        return absl::StrFormat("%.1f", absl::ToDoubleSeconds(*time - records.begin() - since));
      };
      absl::StrAppendFormat(
          &table, "%-30s %-12s %-12s %10.1f %10s %10s %9d %13.0f\n", jobs[i].key(),
          jobs[i].job_class, StateOf(record), absl::ToDoubleSeconds(jobs[i].arrival),
          seconds(record.all_bound, jobs[i].arrival), seconds(record.ended, absl::ZeroDuration()),
          record.preempted, record.gpu_seconds_lost);
    }
    table += "\n";
  }
  const std::vector<Piece> pieces = Pieces(records, window);
  if (!pieces.empty()) {
    absl::StrAppendFormat(&table, "%10s %10s %7s %7s\n", "FROM", "TO", "GPU", "CPU");
    for (const Piece& piece : pieces) {
      absl::StrAppendFormat(&table, "%10.0f %10.0f %6.1f%% %6.1f%%\n",
                            absl::ToDoubleSeconds(piece.from), absl::ToDoubleSeconds(piece.to),
                            100 * piece.use.gpu, 100 * piece.use.cpu);
    }
    table += "\n";
  }
  absl::StrAppendFormat(&table, "%-16s %7s %9s %11s %9s %9s %9s %9s %9s %13s %13s\n", "CLASS",
                        "JOBS", "FINISHED", "UNSCHEDULED", "QUEUE", "p50", "p95", "MAX",
                        "PREEMPTED", "GPU-S LOST", "GPU-S IDLE");
  for (const auto& [name, its] : summary.classes) table += ClassRow(name, its);
  table += ClassRow("all", summary.all);
  absl::StrAppendFormat(
      &table,
      "\nIn use from %.0f s to %.0f s: %.1f%% of GPUs, %.1f%% of CPU. The last job ended at %.1f "
      "s. Pods in the end: %d with a node, %d without.\n",
      absl::ToDoubleSeconds(summary.from), absl::ToDoubleSeconds(summary.to), 100 * summary.use.gpu,
      100 * summary.use.cpu, absl::ToDoubleSeconds(summary.makespan), summary.pods_bound,
      summary.pods_waiting);
  return table;
}

}  // namespace outboard::simulate::trace
