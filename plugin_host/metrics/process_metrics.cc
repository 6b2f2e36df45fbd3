#include "plugin_host/metrics/process_metrics.h"

#include <prometheus/metric_family.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "logging/stderr_log.h"
#include "plugin_host/metrics/prometheus_metrics.h"

namespace outboard::host_metrics {
namespace {

// Seconds since the epoch; below 0: not readable.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    double seconds = -1;
    if (absl::ConsumePrefix(&rest, "btime ") && absl::SimpleAtod(rest, &seconds)) return seconds;
  }
  return -1;
}

double OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  // Without the descriptor used for reading them.
  return error ? -1 : static_cast<double>(std::distance(files, {})) - 1;
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  // After the name, which may contain any character; the first of these is field 3 of proc(5).
  std::ifstream file("/proc/self/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(std::min(text.size(), text.rfind(')') + 2)), ' ');
  const auto field = [&](size_t number) {
    double value = -1;
    return number - 3 < fields.size() && absl::SimpleAtod(fields[number - 3], &value) ? value : -1;
  };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double boot = BootTime();
  const double values[] = {
      field(14) < 0 ? -1 : (field(14) + field(15)) / ticks,
      field(24) < 0 ? -1 : field(24) * static_cast<double>(sysconf(_SC_PAGESIZE)),
      OpenFiles(),
      boot < 0 || field(22) < 0 ? -1 : boot + field(22) / ticks,
      static_cast<double>(logging::DroppedLogLines()),
  };
  std::vector<prometheus::MetricFamily> families;
  for (size_t i = 0; i < std::size(values); ++i) {
    if (values[i] < 0) continue;
    const sdk::MetricSpec& spec = ProcessMetricSpecs()[i + 1];
    const bool counts = spec.type == sdk::MetricType::kCounter;
    prometheus::ClientMetric metric;
    (counts ? metric.counter.value : metric.gauge.value) = values[i];
    families.push_back({spec.name,
                        spec.help,
                        counts ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge,
                        {std::move(metric)}});
  }
  return families;
}

}  // namespace outboard::host_metrics
