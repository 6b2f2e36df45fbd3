#include "plugins/gpu_load/load_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/shared_readers.h"

namespace outboard::gpu_load {
namespace {

prometheus::ReadOptions ReadOptionsOf(const ReaderOptions& options) {
  // The query itself drops samples that are too old.
  return {options.server, QueryText(options.query), absl::ZeroDuration(), options.period};
}

prometheus::ReportOptions ReportOptionsOf(const ReaderOptions& options) {
  prometheus::ReportOptions report;
  report.plugin = "GPULoad";
  report.what = "GPU load";
  report.consequence = absl::StrCat("nodes count as neutral once their samples are older than ",
                                    absl::FormatDuration(options.query.max_sample_age));
  report.metric = kReadsMetric;
  return report;
}

}  // namespace

LoadReader::LoadReader(ReaderOptions options, sdk::Metrics* metrics)
    : options_(std::move(options)),
      reader_(ReadOptionsOf(options_), ReportOptionsOf(options_), metrics,
              [this](absl::Time asked, const std::vector<prometheus::Sample>& samples) {
                return Publish(asked, samples);
              }) {}

std::shared_ptr<LoadSource> LoadReader::Shared(const ReaderOptions& options,
                                               sdk::Metrics* metrics) {
  static auto& readers = *new prometheus::SharedReaders<ReaderOptions, LoadReader>();
  return readers.Get(options, [&] { return std::make_shared<LoadReader>(options, metrics); });
}

std::shared_ptr<const LoadSnapshot> LoadReader::Latest() const {
  absl::MutexLock lock(&mutex_);
  return latest_;
}

absl::Status LoadReader::Publish(absl::Time asked, const std::vector<prometheus::Sample>& samples) {
  Reading reading = ReadSamples(samples, options_.query);
  auto snapshot = std::make_shared<LoadSnapshot>();
  snapshot->asked = asked;
  snapshot->vetoes = VetoesAfter(asked, std::move(reading.xids));
  snapshot->hosts = std::move(reading.hosts);
  const bool empty = snapshot->hosts.empty();
  {
    absl::MutexLock lock(&mutex_);
    latest_ = std::move(snapshot);
  }
  if (!empty) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "no recent samples of DCGM's metrics that name a node",
      reading.ignored == 0 ? "" : absl::StrCat(", ", reading.ignored, " invalid ones")));
}

std::vector<Veto> LoadReader::VetoesAfter(absl::Time asked, std::vector<GpuXid> xids) {
  for (auto& [key, sighting] : sightings_) sighting.shown = false;
  for (GpuXid& xid : xids) {
    if (options_.veto_codes.count(xid.code) == 0) continue;
    std::vector<std::string> key = xid.names;
    key.push_back(xid.gpu);
    sightings_[std::move(key)] = {std::move(xid.names), std::move(xid.gpu), xid.code, asked, true};
  }
  std::vector<Veto> vetoes;
  for (auto it = sightings_.begin(); it != sightings_.end();) {
    const Sighting& seen = it->second;
    // A veto that is shown holds at least until the next readings.
    const absl::Duration holds =
        seen.shown ? std::max(options_.veto_for, options_.query.max_sample_age) : options_.veto_for;
    if (seen.last + holds <= asked) {
      sightings_.erase(it++);
      continue;
    }
    vetoes.push_back({seen.names, seen.gpu, seen.code, seen.last + holds});
    ++it;
  }
  return vetoes;
}

}  // namespace outboard::gpu_load
