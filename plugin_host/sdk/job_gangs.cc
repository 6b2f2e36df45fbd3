#include "plugin_host/sdk/job_gangs.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

using nlohmann::json;

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
// The API server accepts no longer list of indexes.
constexpr size_t kMaxIndexesText = size_t{1} << 20;

// A number between 0 and kMaxInt32; nullopt if absent, null or malformed.
std::optional<int64_t> ReadNumber(const json& whole, const char* part, const char* field,
                                  JobObject* job) {
  const json* value = JsonAt(whole, {part, field});
  if (value == nullptr || value->is_null()) return std::nullopt;
  const std::optional<int64_t> number = IntAt(whole, {part, field});
  if (number && *number >= 0 && *number <= kMaxInt32) return number;
  job->malformed.push_back(
      {absl::StrCat(part, ".", field), JsonText(*value), "a number that is not negative"});
  return std::nullopt;
}

// The number of indexes in `1,3-5,7`; nullopt for any other text.
std::optional<int64_t> CountIndexes(absl::string_view text) {
  if (text.size() > kMaxIndexesText) return std::nullopt;
  int64_t count = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    const bool is_range = part.find('-') != absl::string_view::npos;
    const std::optional<int64_t> first = ParseCount(ends.first, kMaxInt32);
    const std::optional<int64_t> last = is_range ? ParseCount(ends.second, kMaxInt32) : first;
    if (!first || !last || *first > *last) return std::nullopt;
    count += *last - *first + 1;
  }
  return count;
}

// Indexes that the Job controller gives up (backoffLimitPerIndex).
int64_t FailedIndexes(const json& whole, JobObject* job) {
  const std::optional<std::string> text = TextAt(whole, {"status", "failedIndexes"});
  if (!text) return 0;
  if (const std::optional<int64_t> count = CountIndexes(*text)) return *count;
  job->malformed.push_back({"status.failedIndexes", *text, "a list of indexes such as 1,3-5"});
  return 0;
}

}  // namespace

JobGangRules ReadJobGangRules(const ArgsObject& root) {
  JobGangRules rules;
  const std::string which = root.String("jobGangs", "labelled");
  if (which == "never") {
    rules.which = JobGangs::kNever;
  } else if (which == "all") {
    rules.which = JobGangs::kAll;
  } else if (which != "labelled") {
    root.Problem("jobGangs", InvalidValue(which, "must be never, labelled or all"));
  }
  for (std::string& ns : root.Strings("jobGangNamespaces")) rules.namespaces.insert(std::move(ns));
  return rules;
}

// As manageJob of Kubernetes' pkg/controller/job/job_controller.go: it keeps `parallelism` pods, or
// as many as completions are left; without completions it creates no more pods after the first
// success.
JobObject ReadJob(const v1beta1::GenericObject& object) {
  JobObject job;
  job.key = {GroupDialect::kJobName, object.namespace_(), object.name(), object.uid()};
  job.spec.only_first_start = true;
  const json whole = ParseCustomObject(object);
  const json* labels = JsonAt(whole, {"metadata", "labels"});
  if (const auto text = labels == nullptr ? std::nullopt : TextAt(*labels, {kGangLabel})) {
    job.wants_gang = ParseBool(*text);
    if (!job.wants_gang)
      job.malformed.push_back(
          {absl::StrCat("metadata.labels['", kGangLabel, "']"), *text, "true or false"});
  }
  int64_t size = ReadNumber(whole, "spec", "parallelism", &job).value_or(1);
  const int64_t succeeded = ReadNumber(whole, "status", "succeeded", &job).value_or(0);
  if (const auto completions = ReadNumber(whole, "spec", "completions", &job)) {
    size = std::min(size, *completions - succeeded - FailedIndexes(whole, &job));
  } else if (succeeded > 0) {
    size = 1;
  }
  if (size > kMaxGroupMembers) {
    job.spec.fault = absl::StrCat("spec.parallelism of the Job: ", size, " members are more than ",
                                  kMaxGroupMembers);
  } else {
    job.spec.min = {std::max<int64_t>(1, size), "spec.parallelism"};
  }
  return job;
}

v1beta1::DeclaredResource JobResource() {
  v1beta1::DeclaredResource resource;
  resource.set_resource(kJobs);
  resource.set_optional(true);
  return resource;
}

}  // namespace outboard::sdk
