#include "shim/metrics/process_metrics.h"

#include <dirent.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "logging/stderr_log.h"
#include "shim/metrics/names.h"

namespace outboard::metrics {
namespace {

prometheus::MetricFamily Family(const MetricSpec& spec, double value) {
  prometheus::MetricFamily family;
  family.name = spec.name;
  family.help = spec.help;
  prometheus::ClientMetric metric;
  if (spec.type == MetricType::kCounter) {
    family.type = prometheus::MetricType::Counter;
    metric.counter.value = value;
  } else {
    family.type = prometheus::MetricType::Gauge;
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
  return family;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::optional<double> ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  long size = 0, resident = 0;
  if (!(file >> size >> resident)) return std::nullopt;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::optional<double> OpenFds() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return std::nullopt;
  int count = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(directory);
  return count - 1;  // without the descriptor of this read
}

// Start of the process, from boot time and field 22 of /proc/self/stat.
std::optional<double> StartTime() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  if (!std::getline(stat, text)) return std::nullopt;
  const size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end_of_name + 1));
  std::string skipped;
  for (int i = 0; i < 19; ++i) fields >> skipped;
  double ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  std::ifstream system("/proc/stat");
  std::string key;
  while (system >> key) {
    double boot = 0;
    if (key == "btime" && system >> boot)
      return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
    std::getline(system, skipped);
  }
  return std::nullopt;
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    families.push_back(Family(kProcessCpu, Seconds(usage.ru_utime) + Seconds(usage.ru_stime)));
  }
  const std::pair<const MetricSpec*, std::optional<double>> others[] = {
      {&kProcessRss, ResidentBytes()}, {&kProcessFds, OpenFds()}, {&kProcessStart, StartTime()}};
  for (const auto& [spec, value] : others) {
    if (value.has_value()) families.push_back(Family(*spec, *value));
  }
  families.push_back(Family(kLogLinesDropped, static_cast<double>(logging::DroppedLogLines())));
  return families;
}

}  // namespace outboard::metrics
