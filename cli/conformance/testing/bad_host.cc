#include "cli/conformance/testing/bad_host.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace outboard::conformance {

namespace {

constexpr int kNodes = 500;
constexpr int kFuzzedRequests = 12;

std::vector<Result> ResultsOf(const std::string& path, const std::vector<Case>& cases) {
  const auto kit = Kit::Connect(OptionsFor(path));
  if (!kit.ok()) return {{"Kit", "Connect", Result::Outcome::kFailed, kit.status().ToString(), {}}};
  return RunCases(**kit, cases, [](const Result&) {});
}

}  // namespace

Options OptionsFor(const std::string& path) {
  Options options;
  options.endpoint.host = "host";
  options.endpoint.address = absl::StrCat("unix:", path);
  options.nodes = kNodes;
  options.fuzzed_requests = kFuzzedRequests;
  return options;
}

std::map<std::string, std::string> ResultsOf(const std::string& path,
                                             const std::vector<Case>& cases,
                                             Result::Outcome outcome) {
  std::map<std::string, std::string> found;
  for (const Result& result : ResultsOf(path, cases)) {
    if (result.outcome == outcome)
      found[absl::StrCat(result.service, "/", result.name)] = result.what;
  }
  return found;
}

std::map<std::string, std::string> FailuresOf(const BadHost& bad, int number,
                                              std::shared_ptr<grpc::Channel> upstream,
                                              const std::vector<Case>& cases) {
  Wrongness wrong;
  wrong.upstream = upstream;
  bad.make(&wrong);
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/bad-", getpid(), "-", number, ".sock");
  auto proxy = testing::ProxyHost::Start(absl::StrCat("unix:", path), upstream, wrong.hooks);
  if (proxy == nullptr) return {{"Start", path}};
  wrong.proxy = proxy.get();
  return ResultsOf(path, cases, Result::Outcome::kFailed);
}

std::vector<std::string> NamesOf(const std::map<std::string, std::string>& results) {
  std::vector<std::string> names;
  for (const auto& [name, what] : results) names.push_back(name);
  return names;
}

std::string MessagesOf(const std::map<std::string, std::string>& results) {
  std::string messages;
  for (const auto& [name, what] : results)
    absl::StrAppend(&messages, "  ", name, ": ", what.substr(0, 400), "\n");
  return messages;
}

}  // namespace outboard::conformance
