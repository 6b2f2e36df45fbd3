#include "plugins/gpu_load/load_query.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::gpu_load {
namespace {

// Distinguishes the kinds of rows.
constexpr char kKind[] = "outboard";
constexpr char kUse[] = "use";
constexpr char kMemory[] = "memory";
constexpr char kSampled[] = "sampled";
constexpr char kXid[] = "xid";

// Rounding may raise means of floating point numbers slightly above 1.
constexpr double kMostUse = 1.01;
constexpr int64_t kMostXid = 65535;
// If a clock is further ahead of Prometheus', ages are meaningless.
constexpr double kMostSecondsAhead = 60;

// A host's figures from its rows.
struct Parts {
  std::optional<double> use, memory, age_seconds;
};

}  // namespace

std::string QueryText(const QueryOptions& options) {
  const std::string where = prometheus::SelectorOf(options.matchers);
  const std::string host = absl::StrJoin(options.node_labels, ",");
  const std::string limit =
      absl::StrCat("(time() - ", absl::ToInt64Milliseconds(options.max_sample_age) / 1000.0, ")");
  const auto sampled = [&](absl::string_view metric) {
    return absl::StrCat("timestamp(", metric, where, ") >= ", limit);
  };
  const auto fresh = [&](absl::string_view metric) {
    return absl::StrCat("(", metric, where, " and (", sampled(metric), "))");
  };
  // One figure per GPU, or per instance of it (MIG). Several series may report it: one per pod that
  // shares it, or per replica of Prometheus.
  const auto of_gpu = [&](absl::string_view expression) {
    return absl::StrCat("max by (", host, ",gpu,GPU_I_ID) (", expression, ")");
  };
  const auto sum = [&](absl::string_view metric) {
    return absl::StrCat("sum by (", host, ") (", of_gpu(fresh(metric)), ")");
  };
  const auto row = [](const char* kind, absl::string_view expression) {
    return absl::StrCat("label_replace(", expression, ", \"", kKind, "\", \"", kind,
                        "\", \"\", \"\")");
  };
  constexpr char kActive[] = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";  // 0..1
  constexpr char kUtil[] = "DCGM_FI_DEV_GPU_UTIL";             // 0..100
  constexpr char kUsed[] = "DCGM_FI_DEV_FB_USED";
  // The second metric for GPUs without the first.
  const std::string otherwise = absl::StrCat(" or on (", host, ",gpu) ");
  const std::string rows[] = {
      row(kUse, absl::StrCat("avg by (", host, ") (", of_gpu(fresh(kActive)), otherwise,
                             of_gpu(fresh(kUtil)), " / 100)")),
      row(kSampled, absl::StrCat("min by (", host, ") (", of_gpu(sampled(kActive)), otherwise,
                                 of_gpu(sampled(kUtil)), ")")),
      row(kMemory,
          absl::StrCat(sum(kUsed), " / (", sum(kUsed), " + ", sum("DCGM_FI_DEV_FB_FREE"), ")")),
      row(kXid,
          absl::StrCat("max by (", host, ",gpu) (", fresh("DCGM_FI_DEV_XID_ERRORS"), ") > 0")),
  };
  return absl::StrJoin(rows, " or ");
}

Reading ReadSamples(const std::vector<prometheus::Sample>& samples, const QueryOptions& options) {
  Reading reading;
  std::map<std::vector<std::string>, Parts> hosts;
  for (const prometheus::Sample& sample : samples) {
    std::vector<std::string> names = sample.Values(options.node_labels);
    const std::string& kind = sample.Label(kKind);
    const std::optional<double> number = sample.Number();
    if (names.empty() || !number) {
      ++reading.ignored;
      continue;
    }
    const double value = *number;
    if (kind == kXid) {
      if (value < 1 || value > kMostXid || value != std::floor(value)) {
        ++reading.ignored;
      } else {
        reading.xids.push_back(
            {std::move(names), sample.Label("gpu"), static_cast<int64_t>(value)});
      }
    } else if (kind == kSampled && value <= sample.time + kMostSecondsAhead) {
      hosts[std::move(names)].age_seconds = std::max(0.0, sample.time - value);
    } else if ((kind == kUse || kind == kMemory) && value >= 0 && value <= kMostUse) {
      Parts& parts = hosts[std::move(names)];
      (kind == kUse ? parts.use : parts.memory) = std::min(value, 1.0);
    } else {
      ++reading.ignored;
    }
  }
  for (const auto& [names, parts] : hosts) {
    // Memory alone does not indicate load.
    if (!parts.use || !parts.age_seconds) continue;
    reading.hosts.push_back({names, *parts.use, parts.memory, absl::Seconds(*parts.age_seconds)});
  }
  return reading;
}

}  // namespace outboard::gpu_load
