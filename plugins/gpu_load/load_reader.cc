#include "plugins/gpu_load/load_reader.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace outboard::gpu_load {
namespace {

// By LoadReader::Result.
constexpr const char* kResults[] = {"ok",    "unreachable", "timeout", "status",    "too_large",
                                    "token", "malformed",   "error",   "no_samples"};

// Readers in use.
struct Readers {
  absl::Mutex mutex;
  std::vector<std::pair<ReaderOptions, std::weak_ptr<LoadReader>>> all ABSL_GUARDED_BY(mutex);
};

}  // namespace

LoadReader::LoadReader(ReaderOptions options, sdk::Metrics* metrics)
    : options_(std::move(options)), client_(options_.server) {
  static_assert(std::size(kResults) == static_cast<size_t>(Result::kCount));
  for (const char* result : kResults) reads_.push_back(metrics->NewCounter(kReadsMetric, {result}));
  thread_ = std::thread([this] { Run(); });
}

LoadReader::~LoadReader() {
  client_.Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

std::shared_ptr<LoadSource> LoadReader::Shared(const ReaderOptions& options,
                                               sdk::Metrics* metrics) {
  static auto& readers = *new Readers();
  absl::MutexLock lock(&readers.mutex);
  std::shared_ptr<LoadReader> found;
  auto& all = readers.all;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const auto& entry) {
                             std::shared_ptr<LoadReader> reader = entry.second.lock();
                             if (reader != nullptr && entry.first == options) found = reader;
                             return reader == nullptr;
                           }),
            all.end());
  if (found == nullptr) {
    found = std::make_shared<LoadReader>(options, metrics);
    all.emplace_back(options, found);
  }
  return found;
}

std::shared_ptr<const LoadSnapshot> LoadReader::Latest() const {
  absl::MutexLock lock(&mutex_);
  return latest_;
}

void LoadReader::Run() {
  while (true) {
    const absl::Time next = absl::Now() + options_.period;
    ReadOnce();
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithDeadline(absl::Condition(&stopped_), next);
    if (stopped_) return;
  }
}

void LoadReader::ReadOnce() {
  // Before the query: samples may look older than they are, never younger.
  const absl::Time asked = absl::Now();
  const Answer answer = client_.Query(QueryText(options_.query));
  switch (answer.failure) {
    case Failure::kNone:
      break;
    case Failure::kStopped:
      return;
    case Failure::kUnreachable:
      return Ended(Result::kUnreachable, answer.detail);
    case Failure::kTimeout:
      return Ended(Result::kTimeout, answer.detail);
    case Failure::kStatus:
      return Ended(Result::kStatus, answer.detail);
    case Failure::kTooLarge:
      return Ended(Result::kTooLarge, answer.detail);
    case Failure::kToken:
      return Ended(Result::kToken, answer.detail);
  }
  absl::StatusOr<Reading> reading = ParseAnswer(answer.body, options_.query);
  if (!reading.ok()) {
    const bool told = reading.status().code() == absl::StatusCode::kAborted;
    return Ended(told ? Result::kError : Result::kMalformed,
                 std::string(reading.status().message()));
  }
  const size_t ignored = reading->ignored;
  const bool empty = reading->hosts.empty();
  Publish(asked, *std::move(reading));
  if (!empty) return Ended(Result::kOk, "");
  Ended(Result::kNoSamples,
        absl::StrCat("no recent samples of DCGM's metrics that name a node",
                     ignored == 0 ? "" : absl::StrCat(", ", ignored, " invalid ones")));
}

void LoadReader::Publish(absl::Time asked, Reading reading) {
  for (auto& [key, sighting] : sightings_) sighting.shown = false;
  for (GpuXid& xid : reading.xids) {
    if (options_.veto_codes.count(xid.code) == 0) continue;
    std::vector<std::string> key = xid.names;
    key.push_back(xid.gpu);
    sightings_[std::move(key)] = {std::move(xid.names), std::move(xid.gpu), xid.code, asked, true};
  }
  auto snapshot = std::make_shared<LoadSnapshot>();
  for (auto it = sightings_.begin(); it != sightings_.end();) {
    const Sighting& seen = it->second;
    // A veto that is shown holds at least until the next readings.
    const absl::Duration holds =
        seen.shown ? std::max(options_.veto_for, options_.query.max_sample_age) : options_.veto_for;
    if (seen.last + holds <= asked) {
      sightings_.erase(it++);
      continue;
    }
    snapshot->vetoes.push_back({seen.names, seen.gpu, seen.code, seen.last + holds});
    ++it;
  }
  snapshot->asked = asked;
  snapshot->hosts = std::move(reading.hosts);
  absl::MutexLock lock(&mutex_);
  latest_ = std::move(snapshot);
}

void LoadReader::Ended(Result result, const std::string& detail) {
  reads_[static_cast<size_t>(result)]->Add();
  const std::string& address = options_.server.address;
  if (result == Result::kOk) {
    if (failing_) LOG(INFO) << "GPULoad: GPU load from " << address << " is available again";
    failing_ = false;
    failed_ = 0;
    return;
  }
  ++failed_;
  if (failing_) return;
  failing_ = true;
  LOG(WARNING) << "GPULoad: reading GPU load from " << address << " failed ("
               << kResults[static_cast<size_t>(result)] << "): " << detail
               << "; nodes count as neutral once their samples are older than "
               << options_.query.max_sample_age << "; further failures are only counted";
}

}  // namespace outboard::gpu_load
