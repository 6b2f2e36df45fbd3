#include "cli/conformance/testing/inline_nodes_host.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/conformance/test_cluster.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::conformance {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

namespace {

constexpr char kPlugin[] = "Inline";
constexpr char kFailingPod[] = "huge";
constexpr int kFailingSlot = 7;

PluginStatus Verdict(Code code, const std::string& reason) {
  PluginStatus verdict;
  verdict.set_plugin(kPlugin);
  verdict.set_code(code);
  verdict.add_reasons(reason);
  return verdict;
}

PluginStatus VerdictOn(const Pod& pod, const Node& node) {
  if (pod.name() == kFailingPod && node.name() == MakeNode(kFailingSlot).name())
    return Verdict(CODE_ERROR, "the plugin failed");
  if (node.unschedulable()) return Verdict(CODE_UNSCHEDULABLE, "cordoned");
  PluginStatus success;
  success.set_code(CODE_SUCCESS);
  return success;
}

}  // namespace

std::unique_ptr<InlineNodesHost> InlineNodesHost::Start(const std::string& address,
                                                        bool single_session) {
  std::unique_ptr<InlineNodesHost> host(new InlineNodesHost(single_session));
  host->host_ = testing::FakeHost::Start(address, "inline");
  if (host->host_ == nullptr) return nullptr;
  host->ServePlugin();
  host->ServeSessions();
  return host;
}

void InlineNodesHost::ServePlugin() {
  host_->Answer<GetHostInfoRequest, GetHostInfoResponse>(
      [this](const GetHostInfoRequest&, GetHostInfoResponse* info) {
        info->add_capabilities(CAPABILITY_INLINE_NODES);
        if (single_session_) info->add_capabilities(CAPABILITY_SINGLE_SESSION);
        PluginInfo* const plugin = info->add_plugins();
        plugin->set_name(kPlugin);
        plugin->add_extension_points(EXTENSION_POINT_FILTER);
        plugin->add_extension_points(EXTENSION_POINT_SCORE);
        return grpc::Status::OK;
      });
  host_->Answer<FilterRequest, FilterResponse>(
      [this](const FilterRequest& request, FilterResponse* response) {
        return Filter(request, response);
      });
  host_->Answer<ScoreRequest, ScoreResponse>(
      [this](const ScoreRequest& request, ScoreResponse* response) {
        return Score(request, response);
      });
}

void InlineNodesHost::ServeSessions() {
  host_->Answer<ConfigureRequest, ConfigureResponse>(
      [this](const ConfigureRequest& request, ConfigureResponse* response) {
        return Configure(request, response);
      });
  host_->Answer<EndSessionRequest, EndSessionResponse>(
      [this](const EndSessionRequest& request, EndSessionResponse*) {
        absl::MutexLock lock(&mu_);
        sessions_.erase(request.session_id());
        return grpc::Status::OK;
      });
  host_->Answer<ProbeRequest, ProbeResponse>([this](const ProbeRequest& request,
                                                    ProbeResponse* probe) {
    absl::MutexLock lock(&mu_);
    const bool known = request.session_id().empty() || sessions_.count(request.session_id()) > 0;
    probe->set_state(known ? ProbeResponse::STATE_READY : ProbeResponse::STATE_INITIALIZING);
    if (!known) probe->set_reason("not configured");
    probe->set_instance(host_->instance());
    if (single_session_ && !sessions_.empty())
      probe->set_current_session_id(sessions_.begin()->first);
    return grpc::Status::OK;
  });
}

grpc::Status InlineNodesHost::Configure(const ConfigureRequest& request,
                                        ConfigureResponse* response) {
  std::set<std::string> profiles;
  for (const ProfileConfig& profile : request.profiles()) {
    profiles.insert(profile.name());
    for (const PointConfig& point : profile.points()) {
      for (const std::string& plugin : point.plugins()) {
        if (plugin == kPlugin) continue;
        ConfigProblem* const problem = response->add_problems();
        problem->set_profile(profile.name());
        problem->set_plugin(plugin);
        problem->set_message("no such plugin");
      }
    }
  }
  if (response->problems_size() > 0 || request.validate_only()) return grpc::Status::OK;
  absl::MutexLock lock(&mu_);
  if (single_session_) sessions_.clear();
  sessions_[request.session_id()] = std::move(profiles);
  return grpc::Status::OK;
}

grpc::Status InlineNodesHost::Filter(const FilterRequest& request, FilterResponse* response) {
  const int named = request.has_simulation() ? request.simulation().nodes_size()
                                             : request.search().nodes().slots_size();
  grpc::Status bad = Check(request.header(), request.has_pod(), named, request.inline_nodes_size());
  if (!bad.ok()) return bad;
  if (request.what_case() == FilterRequest::WHAT_NOT_SET)
    return testing::CallFailure(CallError::REASON_INVALID, "search or simulation is required");
  std::map<std::string, uint32_t> reasons;  // verdicts, as bytes
  for (const InlineNode& node : request.inline_nodes()) {
    PluginStatus verdict = VerdictOn(request.pod(), node.node());
    if (verdict.code() == CODE_SUCCESS) {
      response->add_verdicts(0);
      continue;
    }
    if (verdict.code() == CODE_ERROR) {
      if (request.has_search()) {
        *response->mutable_error() = std::move(verdict);
        break;
      }
      verdict.set_code(CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    }
    const auto [known, is_new] = reasons.try_emplace(
        verdict.SerializeAsString(), static_cast<uint32_t>(response->reasons_size()));
    if (is_new) *response->add_reasons() = std::move(verdict);
    response->add_verdicts(known->second + 1);
  }
  return grpc::Status::OK;
}

grpc::Status InlineNodesHost::Score(const ScoreRequest& request, ScoreResponse* response) {
  const int nodes = request.inline_nodes_size();
  grpc::Status bad =
      Check(request.header(), request.has_pod(), request.nodes().slots_size(), nodes);
  if (!bad.ok()) return bad;
  PluginScores* const scores = response->add_plugins();
  scores->set_plugin(kPlugin);
  scores->set_scores(std::string(static_cast<size_t>(nodes), '\x32'));
  return grpc::Status::OK;
}

grpc::Status InlineNodesHost::Check(const CallHeader& header, bool has_pod, int named, int sent) {
  {
    absl::MutexLock lock(&mu_);
    const auto session = sessions_.find(header.session_id());
    if (session == sessions_.end())
      return testing::CallFailure(CallError::REASON_SESSION_UNKNOWN, "no such session");
    if (session->second.count(header.profile()) == 0)
      return testing::CallFailure(CallError::REASON_NOT_CONFIGURED, "no such profile");
  }
  if (!has_pod) return testing::CallFailure(CallError::REASON_INVALID, "pod is required");
  if (named == sent) return grpc::Status::OK;
  return testing::CallFailure(CallError::REASON_INVALID,
                              absl::StrCat("the call names ", named, " nodes and has ", sent));
}

}  // namespace outboard::conformance
