// Hosts that are each wrong in one way, as a proxy for our own host. The kit must find each by the
// right cases, and nothing in the correct host.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "cli/conformance/kit.h"
#include "cli/conformance/session.h"
#include "cli/conformance/testing/bad_host.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "proto/call_errors/call_errors.h"
#include "proto/testing/fake_host.h"
#include "proto/testing/proxy_host.h"

extern char** environ;

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using google::protobuf::Message;
using handshake::v1::HandshakeResponse;
using ::testing::IsEmpty;
using ::testing::TempDir;
using ::testing::UnorderedElementsAreArray;

constexpr int kAtOnce = 12;  // they mostly wait

// The evaluation in an answer of Cycle or Plan; null: there is none.
CycleEvaluation* FusedEvaluation(Message* response) {
  if (auto* cycle = As<CycleResponse>(response); cycle != nullptr && cycle->has_evaluation())
    return cycle->mutable_evaluation();
  if (auto* plan = As<PlanResponse>(response); plan != nullptr && plan->has_evaluation())
    return plan->mutable_evaluation();
  return nullptr;
}

// Changes the first score.
void OtherScore(ScoreResponse* response) {
  char& score = (*response->mutable_plugins(0)->mutable_scores())[0];
  score = static_cast<char>(score == 0 ? 1 : score - 1);
}

// In plain and in fused answers.
// Moves rejected nodes from bitmaps to the list.
void ListRejected(FilterResponse* filter) {
  const auto has = [](const std::string& bits, uint32_t i) {
    return ((static_cast<unsigned char>(bits[i / 8]) >> (i % 8)) & 1) != 0;
  };
  std::vector<uint32_t> rejected;
  int listed = 0;
  for (uint32_t i = 0; i < filter->processed(); ++i) {
    if (has(filter->feasible(), i)) continue;
    int reason = 0;
    while (reason < filter->rejected_for_size() && !has(filter->rejected_for(reason), i)) ++reason;
    rejected.push_back(reason < filter->rejected_for_size() ? static_cast<uint32_t>(reason)
                                                            : filter->rejected(listed++));
  }
  filter->clear_rejected_for();
  filter->mutable_rejected()->Assign(rejected.begin(), rejected.end());
}

std::function<void(Wrongness*)> Filtering(std::function<void(FilterResponse*)> change) {
  return [change](Wrongness* wrong) {
    wrong->hooks.on_answer = [change](const Message&, Message* response, grpc::Status*) {
      if (auto* plain = As<FilterResponse>(response); plain != nullptr) change(plain);
      if (CycleEvaluation* fused = FusedEvaluation(response); fused != nullptr)
        change(fused->mutable_filter());
    };
  };
}

std::function<void(Wrongness*)> Scoring(std::function<void(ScoreResponse*)> change) {
  return [change](Wrongness* wrong) {
    wrong->hooks.on_answer = [change](const Message&, Message* response, grpc::Status*) {
      if (auto* plain = As<ScoreResponse>(response); plain != nullptr && plain->plugins_size() > 0)
        change(plain);
      if (CycleEvaluation* fused = FusedEvaluation(response);
          fused != nullptr && fused->score().plugins_size() > 0)
        change(fused->mutable_score());
    };
  };
}

// Warnings refuse nothing.
bool IsRefused(const ConfigureResponse& response) {
  return std::any_of(response.problems().begin(), response.problems().end(),
                     [](const ConfigProblem& problem) {
                       return problem.severity() != ConfigProblem::SEVERITY_WARNING;
                     });
}

// The header of a call about an attempt at an exact version; null for other calls.
CallHeader* ExactHeader(Message* message) {
  if (auto* request = As<PreFilterRequest>(message)) return request->mutable_header();
  if (auto* request = As<FilterRequest>(message)) return request->mutable_header();
  if (auto* request = As<PreScoreRequest>(message)) return request->mutable_header();
  if (auto* request = As<ScoreRequest>(message)) return request->mutable_header();
  if (auto* request = As<PostFilterRequest>(message)) return request->mutable_header();
  return nullptr;
}

// Evaluates at any version.
template <typename Request>
void AtAnyVersion(Wrongness* wrong, const Message& message, Message* response,
                  grpc::Status* status) {
  const auto error = call_errors::CallErrorOf(*status);
  const auto* request = As<Request>(message);
  if (request == nullptr || !error.has_value() || error->have_version() == 0) return;
  Request again = *request;
  again.mutable_header()->set_exact_version(error->have_version());
  auto answer = Call(wrong->upstream, again);
  static_cast<typename Rpc<Request>::Response*>(response)->Swap(&answer.message);
  *status = answer.status;
}

void IgnoreVersions(Wrongness* wrong) {
  wrong->hooks.on_answer = [wrong](const Message& request, Message* response,
                                   grpc::Status* status) {
    AtAnyVersion<PreFilterRequest>(wrong, request, response, status);
  };
}

void KeepOneCache(Wrongness* wrong) {
  wrong->hooks.on_request = [wrong](Message* message) {
    absl::MutexLock lock(&wrong->mu);
    if (auto* sync = As<SyncRequest>(message); sync != nullptr && !sync->session_id().empty()) {
      wrong->last_session = sync->session_id();
      wrong->synced.insert(sync->session_id());
    }
    if (CallHeader* header = ExactHeader(message);
        header != nullptr && wrong->synced.count(header->session_id()) > 0)
      header->set_session_id(wrong->last_session);
    return grpc::Status::OK;
  };
}

void ForgetAttemptsAtUnreserve(Wrongness* wrong) {
  wrong->hooks.on_request = [wrong](Message* message) {
    absl::MutexLock lock(&wrong->mu);
    if (auto* begun = As<PreFilterRequest>(message))
      wrong->attempts.emplace(begun->header().session_id(), begun->header().attempt_id());
    if (auto* undo = As<UnreserveRequest>(message);
        undo != nullptr &&
        wrong->attempts.count({undo->header().session_id(), undo->header().attempt_id()}) == 0) {
      return testing::CallFailure(CallError::REASON_ATTEMPT_UNKNOWN, "no such attempt");
    }
    return grpc::Status::OK;
  };
}

// Accepts only attempts that began here.
void ForgetResumedAttempts(Wrongness* wrong) {
  wrong->hooks.on_request = [](Message* message) {
    auto* permit = As<PermitRequest>(message);
    if (permit == nullptr || !permit->resumed()) return grpc::Status::OK;
    return testing::CallFailure(CallError::REASON_ATTEMPT_UNKNOWN, "no such attempt");
  };
}

// Gives up with a third of the call's second left. Only in the case whose change comes later than
// that: this attempt of this pod.
void GiveUpEarly(Wrongness* wrong) {
  wrong->hooks.on_request = [wrong](Message* message) {
    const auto* pre_filter = As<PreFilterRequest>(message);
    if (pre_filter == nullptr || pre_filter->pod_uid() != "pod-uid-later" ||
        pre_filter->header().attempt_id() != 2)
      return grpc::Status::OK;
    absl::MutexLock lock(&wrong->mu);
    const auto never = [] { return false; };
    wrong->mu.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(670));
    return testing::CallFailure(CallError::REASON_STALE, "behind",
                                pre_filter->header().exact_version() - 1);
  };
}

// A session without a snapshot counts as unknown.
void ForgetSessionsWithoutSnapshot(Wrongness* wrong) {
  wrong->hooks.on_answer = [](const Message&, Message*, grpc::Status* status) {
    const auto error = call_errors::CallErrorOf(*status);
    if (error.has_value() && error->reason() == CallError::REASON_STALE &&
        error->have_version() == 0)
      *status = testing::CallFailure(CallError::REASON_SESSION_UNKNOWN, "no cache");
  };
}

// A place that was assumed is kept when the API server's object names another node.
void KeepAssumedPlaces(Wrongness* wrong) {
  Asked<SyncRequest>([](Wrongness* wrong, SyncRequest* sync) {
    absl::MutexLock lock(&wrong->mu);
    for (Change& change : *sync->mutable_changes()) {
      if (change.has_pod_placement() && change.pod_placement().state() == PLACEMENT_STATE_ASSUMED)
        wrong->synced.insert(change.pod_placement().uid());
      if (change.has_pod_upsert() && wrong->synced.count(change.pod_upsert().pod().uid()) > 0)
        change.mutable_pod_upsert()->mutable_pod()->clear_node_name();
    }
  })(wrong);
}

// Pods that name a node that has not come yet are dropped.
void DropPodsOfUnknownNodes(Wrongness* wrong) {
  Asked<SyncRequest>([](Wrongness* wrong, SyncRequest* sync) {
    absl::MutexLock lock(&wrong->mu);
    google::protobuf::RepeatedPtrField<Change> kept;
    for (Change& change : *sync->mutable_changes()) {
      if (change.has_node_upsert()) wrong->synced.insert(change.node_upsert().node().name());
      const std::string& node = change.pod_upsert().pod().node_name();
      if (node.empty() || wrong->synced.count(node) > 0) kept.Add()->Swap(&change);
    }
    sync->mutable_changes()->Swap(&kept);
  })(wrong);
}

// The pods of a node of the trace that goes are placed on the next node in its slot.
void KeepSlotsOfRemovedNodes(Wrongness* wrong) {
  Asked<SyncRequest>([](Wrongness*, SyncRequest* sync) {
    for (const Change& change : sync->changes()) {
      if (change.node_upsert().node().name() != "node-d") continue;
      PodPlacement* const place = sync->add_changes()->mutable_pod_placement();
      place->set_uid("pod-5");
      place->set_state(PLACEMENT_STATE_BOUND);
      place->set_slot(change.node_upsert().slot());
      return;
    }
  })(wrong);
}

// A reference names the object of any kind that came last with the name. In events, or in removals.
std::function<void(Wrongness*)> IgnoringKinds(bool in_events) {
  const auto kinds = std::make_shared<std::map<std::string, std::string>>();  // by name
  return Asked<SyncRequest>([in_events, kinds](Wrongness* wrong, SyncRequest* sync) {
    absl::MutexLock lock(&wrong->mu);
    const auto set_last_kind = [&](ObjectReference* reference) {
      const auto known = kinds->find(reference->name());
      if (known != kinds->end()) reference->set_kind(known->second);
    };
    for (Change& change : *sync->mutable_changes()) {
      const ClusterObject& object = change.object_upsert();
      if (object.has_csi_node()) (*kinds)[object.csi_node().name()] = "CSINode";
      if (object.has_storage_class()) (*kinds)[object.storage_class().name()] = "StorageClass";
      if (!in_events && change.has_object_remove()) set_last_kind(change.mutable_object_remove());
    }
    for (QueueEvent& event : *sync->mutable_events()) {
      if (in_events && event.has_object()) set_last_kind(event.mutable_object());
    }
  });
}

// No answer instead of STALE, until the caller gives up.
void HangWhenAhead(Wrongness* wrong) {
  wrong->hooks.on_answer = [wrong](const Message& request, Message*, grpc::Status* status) {
    const auto* pre_filter = As<PreFilterRequest>(request);
    const auto error = call_errors::CallErrorOf(*status);
    if (pre_filter == nullptr || !error.has_value() || error->reason() != CallError::REASON_STALE ||
        error->have_version() >= pre_filter->header().exact_version())
      return;
    absl::MutexLock lock(&wrong->mu);
    const auto never = [] { return false; };
    wrong->mu.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(600));
  };
}

bool HasOddText(const SyncRequest& request) {
  for (const Change& change : request.changes()) {
    const std::string& name = change.node_upsert().node().name();
    if (std::any_of(name.begin(), name.end(),
                    [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
      return true;
  }
  return false;
}

std::vector<BadHost> BadHosts() {
  const std::string kHost = "PluginHostService/";
  const std::string kState = "ClusterStateService/";
  return {
      {"scores over 100", {"ScoreService/well-formed"}, Scoring([](ScoreResponse* score) {
         (*score->mutable_plugins(0)->mutable_scores())[0] = 101;
       })},
      {"a missing score", {"ScoreService/well-formed"}, Scoring([](ScoreResponse* score) {
         score->mutable_plugins(0)->mutable_scores()->pop_back();
       })},
      {"scores of a plugin twice", {"ScoreService/well-formed"}, Scoring([](ScoreResponse* score) {
         *score->add_plugins() = score->plugins(0);
       })},
      {"a bitmap that is too short",
       {"FilterService/well-formed"},
       Filtering([](FilterResponse* filter) {
         if (!filter->feasible().empty()) filter->mutable_feasible()->pop_back();
       })},
      {"bits past the end", {"FilterService/well-formed"}, Filtering([](FilterResponse* filter) {
         if (filter->processed() % 8 != 0)
           filter->mutable_feasible()->back() |= static_cast<char>(0x80);
       })},
      {"a reason index outside the table",
       {"FilterService/well-formed"},
       Filtering([](FilterResponse* filter) {
         ListRejected(filter);
         if (filter->rejected_size() > 0) filter->set_rejected(0, filter->reasons_size());
       })},
      {"a node in two bitmaps of rejected nodes",
       // Few nodes are usually in the list.
       {"FilterService/enough", "CycleService/percentage"},
       Filtering([](FilterResponse* filter) {
         if (filter->rejected_for_size() > 0)
           filter->mutable_rejected_for(0)->back() |= filter->feasible().back();
       })},
      {"rejections by an unconfigured plugin",
       {"FilterService/well-formed"},
       Filtering([](FilterResponse* filter) {
         for (PluginStatus& reason : *filter->mutable_reasons()) reason.set_plugin("Stranger");
       })},
      {"a search that ends too early",
       // Also cases that count the nodes.
       {"FilterService/well-formed", "FilterService/enough", "CycleService/percentage",
        kState + "resync"},
       Filtering([](FilterResponse* filter) {
         ListRejected(filter);
         if (filter->rejected_size() == 0 || filter->processed() % 8 == 1) return;
         const uint32_t last = filter->processed() - 1;
         if ((static_cast<unsigned char>(filter->feasible()[last / 8]) >> (last % 8)) & 1) return;
         filter->set_processed(last);
         filter->mutable_rejected()->RemoveLast();
       })},
      {"fused answers with another attempt's id",
       {"CycleService/well-formed"},
       Answering<CycleResponse>([](Wrongness*, CycleResponse* fused) {
         fused->set_attempt_id(fused->attempt_id() + 1);
       })},
      {"fused scores that differ from plain ones",
       {"CycleService/equals-plain", "PlanService/equals-cycle"},
       Answering<CycleResponse>([](Wrongness*, CycleResponse* fused) {
         if (fused->evaluation().score().plugins_size() > 0)
           OtherScore(fused->mutable_evaluation()->mutable_score());
       })},
      {"plans with another attempt's id",
       {"PlanService/well-formed"},
       Answering<PlanResponse>(
           [](Wrongness*, PlanResponse* plan) { plan->set_attempt_id(plan->attempt_id() + 1); })},
      {"scores in plans that differ from those in cycles",
       {"PlanService/equals-cycle"},
       // Of a pod that is in no batch: its pods would get other nodes.
       [](Wrongness* wrong) {
         wrong->hooks.on_answer = [](const Message& request, Message* response, grpc::Status*) {
           const auto* asked = As<PlanRequest>(request);
           if (asked == nullptr || asked->cycle().pod_uid() != "pod-uid-plain") return;
           CycleEvaluation* const evaluation = FusedEvaluation(response);
           if (evaluation != nullptr && evaluation->score().plugins_size() > 0)
             OtherScore(evaluation->mutable_score());
         };
       }},
      {"another pod in a batch",
       {"PlanService/batch"},
       Answering<PlanResponse>([](Wrongness*, PlanResponse* answer) {
         if (answer->plan().placements_size() > 1)
           answer->mutable_plan()->mutable_placements(1)->set_pod_uid("somebody");
       })},
      {"a batch on the wrong nodes",
       {"PlanService/batch"},
       Answering<PlanResponse>([](Wrongness*, PlanResponse* answer) {
         if (!answer->has_plan()) return;
         for (PlannedPlacement& place : *answer->mutable_plan()->mutable_placements())
           place.set_slot((place.slot() + 1) % 23);
       })},
      {"groups although nodes are given",
       {"PlanService/group"},
       Asked<PlanRequest>([](Wrongness*, PlanRequest* request) {
         if (request->place_group()) request->mutable_cycle()->mutable_search()->clear_nodes();
       })},
      {"errors of plans without their reason",
       {"PlanService/errors", "PlanService/group-step-errors"},
       Answering<PlanResponse>([](Wrongness*, PlanResponse* answer) {
         if (answer->has_error()) answer->mutable_error()->clear_reason();
       })},
      {"different scores for the same request",
       {"ScoreService/again", "PreFilterService/again", "CycleService/equals-plain"},
       Answering<ScoreResponse>([](Wrongness* wrong, ScoreResponse* score) {
         if (score->plugins_size() == 0) return;
         (*score->mutable_plugins(0)->mutable_scores())[0] =
             static_cast<char>(wrong->count++ % 100);
       })},
      {"versions are ignored",
       {kState + "version-ahead", kState + "version-behind"},
       IgnoreVersions},
      {"STALE long before the deadline", {kState + "version-late"}, GiveUpEarly},
      {"sessions without a snapshot are unknown",
       {kState + "no-snapshot"},
       ForgetSessionsWithoutSnapshot},
      {"assumed places that stay for ever",
       {kState + "pod-places", kState + "trace"},
       KeepAssumedPlaces},
      {"pods dropped that name an unknown node",
       {kState + "unknown-node", kState + "trace"},
       DropPodsOfUnknownNodes},
      {"silence instead of STALE",
       {kState + "version-ahead", kState + "no-snapshot"},
       HangWhenAhead},
      {"errors without a google.rpc.Status around them",
       {kHost + "end-session"},
       [](Wrongness* wrong) {
         wrong->hooks.on_answer = [](const Message&, Message*, grpc::Status* status) {
           const auto error = call_errors::CallErrorOf(*status);
           if (error.has_value() && error->reason() == CallError::REASON_DRAINING)
             *status = grpc::Status(status->error_code(), status->error_message(),
                                    error->SerializeAsString());
         };
       }},
      {"no acknowledgements",
       {kState + "ack-snapshot", kState + "ack-changes", kState + "trace"},
       [](Wrongness* wrong) {
         wrong->hooks.on_push = [](SyncResponse* push) { return !push->has_ack(); };
       }},
      {"acknowledgements of unsent versions",
       {kState + "ack-only-what-came"},
       [](Wrongness* wrong) {
         wrong->hooks.on_push = [](SyncResponse* push) {
           if (push->has_ack()) push->mutable_ack()->set_version(push->ack().version() + 7);
           return true;
         };
       }},
      {"removed nodes still get verdicts",
       {kState + "node-removed", kState + "slot-reused", kState + "wrong-changes", kState + "trace",
        kState + "trace-refused"},
       Asked<SyncRequest>([](Wrongness*, SyncRequest* request) {
         SyncRequest kept = *request;
         kept.clear_changes();
         for (const Change& change : request->changes()) {
           if (change.has_node_remove()) {
             kept.clear_node_order();
           } else {
             *kept.add_changes() = change;
           }
         }
         *request = kept;
       })},
      {"nominated pods that count on their node",
       {kState + "trace"},
       Asked<SyncRequest>([](Wrongness*, SyncRequest* request) {
         for (Change& change : *request->mutable_changes()) {
           // The nominated pod of the trace.
           if (change.pod_placement().uid() == "pod-5" &&
               change.pod_placement().state() == PLACEMENT_STATE_NOMINATED)
             change.mutable_pod_placement()->set_state(PLACEMENT_STATE_ASSUMED);
         }
       })},
      {"the places of a removed node's pods return with another node in the slot",
       {kState + "trace"},
       KeepSlotsOfRemovedNodes},
      {"changes without a version",
       {kState + "trace-refused"},
       Asked<SyncRequest>([](Wrongness*, SyncRequest* request) {
         // 5: the version of the trace's first snapshot.
         if (request->version() == 0 && request->ByteSizeLong() <= 2) request->set_version(5);
       })},
      {"ended attempts stay valid",
       {kState + "ended-attempts"},
       Asked<SyncRequest>(
           [](Wrongness*, SyncRequest* request) { request->clear_ended_attempts(); })},
      {"one cache for all sessions",
       {kState + "two-sessions", kState + "slot-reused", kState + "pod-places",
        kState + "unknown-node", kHost + "end-session", kHost + "fuzzed-handshakes",
        kState + "fuzzed-calls", kState + "fuzzed-changes", "CycleService/fuzzed-cycles",
        "PlanService/fuzzed-plans"},
       KeepOneCache},
      {"crash on unusual Unicode",
       {kState + "odd-unicode"},
       Asked<SyncRequest>([](Wrongness* wrong, SyncRequest* request) {
         if (HasOddText(*request)) wrong->proxy->Die();
       })},
      {"crash on a fuzzed request",
       {kHost + "fuzzed-handshakes"},
       Asked<ProbeRequest>([](Wrongness* wrong, ProbeRequest* request) {
         const std::string& id = request->session_id();
         const bool is_odd = absl::c_any_of(id, [](char c) {
           return !absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-';
         });
         if (id.size() > 63 || is_odd) wrong->proxy->Die();
       })},
      {"unknown plugins are configured",
       {kHost + "configure-unknown-plugin", kHost + "configure-validate-only"},
       Asked<ConfigureRequest>([](Wrongness*, ConfigureRequest* request) {
         for (ProfileConfig& profile : *request->mutable_profiles()) {
           for (PointConfig& point : *profile.mutable_points()) {
             auto* plugins = point.mutable_plugins();
             plugins->erase(std::remove(plugins->begin(), plugins->end(), "NoSuchPlugin"),
                            plugins->end());
           }
         }
       })},
      {"a refused configuration takes effect",
       {kHost + "configure-unknown-plugin", kHost + "configure-wrong-point",
        kHost + "configure-garbage-args", kHost + "configure-unknown-args",
        kHost + "configure-args-of-unknown-plugin"},
       [](Wrongness* wrong) {
         wrong->hooks.on_answer = [wrong](const Message& request, Message* response,
                                          grpc::Status*) {
           const auto* configure = As<ConfigureRequest>(request);
           const auto* said = As<ConfigureResponse>(static_cast<const Message&>(*response));
           absl::MutexLock lock(&wrong->mu);
           if (configure != nullptr && !configure->validate_only() && IsRefused(*said))
             wrong->synced.insert(configure->session_id());
         };
         wrong->hooks.on_request = [wrong](Message* message) {
           absl::MutexLock lock(&wrong->mu);
           if (CallHeader* header = ExactHeader(message);
               header != nullptr && wrong->synced.count(header->session_id()) > 0)
             return testing::CallFailure(CallError::REASON_NOT_CONFIGURED,
                                         "the configuration is lost");
           return grpc::Status::OK;
         };
       }},
      {"batches without the fused cycle",
       {kHost + "info"},
       Answering<GetHostInfoResponse>([](Wrongness*, GetHostInfoResponse* info) {
         info->clear_capabilities();
         info->add_capabilities(CAPABILITY_BATCH);
       })},
      {"ready before there is a snapshot",
       {kHost + "probe"},
       Answering<ProbeResponse>([](Wrongness*, ProbeResponse* probe) {
         if (probe->state() == ProbeResponse::STATE_INITIALIZING)
           probe->set_state(ProbeResponse::STATE_READY);
       })},
      {"not ready without a reason",
       {kHost + "probe", kHost + "end-session"},
       Answering<ProbeResponse>([](Wrongness*, ProbeResponse* probe) { probe->clear_reason(); })},
      {"EndSession is ignored",
       {kHost + "end-session"},
       Asked<EndSessionRequest>(
           [](Wrongness*, EndSessionRequest* request) { request->set_session_id("another"); })},
      {"EndSession ends another session, too",
       {kHost + "end-session"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [wrong](Message* message) {
           absl::MutexLock lock(&wrong->mu);
           if (const auto* sync = As<SyncRequest>(message);
               sync != nullptr && !sync->session_id().empty())
             wrong->last_session = sync->session_id();
           if (As<EndSessionRequest>(message) == nullptr) return grpc::Status::OK;
           EndSessionRequest last;
           last.set_session_id(wrong->last_session);
           return Call(wrong->upstream, last).status;
         };
       }},
      {"EndSession of an unknown session fails",
       {kHost + "end-unknown-session"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [wrong](Message* message) {
           absl::MutexLock lock(&wrong->mu);
           if (const auto* configure = As<ConfigureRequest>(message))
             wrong->synced.insert(configure->session_id());
           const auto* end = As<EndSessionRequest>(message);
           if (end == nullptr || wrong->synced.count(end->session_id()) > 0)
             return grpc::Status::OK;
           return testing::CallFailure(CallError::REASON_SESSION_UNKNOWN, "no such session");
         };
       }},
      {"a configuration for any instance is in force",
       {kHost + "configure-wrong-instance"},
       Asked<ConfigureRequest>([](Wrongness* wrong, ConfigureRequest* request) {
         absl::MutexLock lock(&wrong->mu);
         // The first one names the right instance.
         if (wrong->instance.empty()) wrong->instance = request->instance();
         request->set_instance(wrong->instance);
       })},
      {"calls of unknown sessions take effect",
       {kHost + "unknown-session"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [wrong](Message* message) {
           absl::MutexLock lock(&wrong->mu);
           if (const auto* configure = As<ConfigureRequest>(message))
             wrong->last_session = configure->session_id();
           if (auto* undo = As<UnreserveRequest>(message);
               undo != nullptr && undo->header().session_id() == "no-such-session")
             undo->mutable_header()->set_session_id(wrong->last_session);
           return grpc::Status::OK;
         };
       }},
      {"a check configures",
       {kHost + "configure-validate-only"},
       Asked<ConfigureRequest>(
           [](Wrongness*, ConfigureRequest* request) { request->clear_validate_only(); })},
      {"a check finds nothing",
       {kHost + "configure-validate-only"},
       [](Wrongness* wrong) {
         wrong->hooks.on_answer = [](const Message& request, Message* response, grpc::Status*) {
           const auto* configure = As<ConfigureRequest>(request);
           if (configure != nullptr && configure->validate_only())
             As<ConfigureResponse>(response)->clear_problems();
         };
       }},
      {"a new instance id in each answer",
       {kHost + "info-instance-stays", kHost + "handshake-any-version"},
       Answering<HandshakeResponse>([](Wrongness* wrong, HandshakeResponse* identity) {
         if (wrong->count++ > 0) identity->set_instance(absl::StrCat("host-", wrong->count.load()));
       })},
      {"a new start time in each answer",
       {kHost + "info-start-stays"},
       Answering<HandshakeResponse>([](Wrongness* wrong, HandshakeResponse* identity) {
         identity->set_started_unix_micros(identity->started_unix_micros() + wrong->count++);
       })},
      {"only shims of its own version are answered",
       {kHost + "handshake-any-version"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [](Message* message) {
           auto* request = As<handshake::v1::HandshakeRequest>(message);
           if (request == nullptr || request->contract_versions(0) == "v1beta1")
             return grpc::Status::OK;
           return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "unknown version");
         };
       }},
      {"Unreserve of unknown attempts fails",
       {"ReserveService/unreserve-unknown"},
       ForgetAttemptsAtUnreserve},
      {"waits of an unconfigured plugin",
       {"PermitService/permit", "PermitService/permit-resumed"},
       Answering<PermitResponse>([](Wrongness*, PermitResponse* permit) {
         PermitWait* wait = permit->add_waits();
         wait->set_plugin("Stranger");
         wait->set_timeout_micros(1'000'000);
       })},
      {"waiting pods are lost with their instance",
       {"PermitService/permit-resumed"},
       ForgetResumedAttempts},
      {"a missing sort key",
       {"QueueSortService/sort-keys"},
       Answering<SortKeysResponse>(
           [](Wrongness*, SortKeysResponse* keys) { keys->mutable_keys()->RemoveLast(); })},
      {"PreEnqueue verdicts without a plugin",
       {"PreEnqueueService/pre-enqueue"},
       Answering<PreEnqueueResponse>([](Wrongness*, PreEnqueueResponse* said) {
         if (said->verdicts().empty()) return;
         said->mutable_verdicts(0)->set_code(CODE_UNSCHEDULABLE);
         said->mutable_verdicts(0)->add_reasons("because");
       })},
      {"results of pushes end its stream",
       {kState + "push-results"},
       Asked<SyncRequest>([](Wrongness*, SyncRequest* request) {
         if (!request->push_results().empty()) request->set_version(request->version() - 1);
       })},
      {"hints about pods that do not wait",
       {"QueueingHintService/hints"},
       [](Wrongness* wrong) {
         wrong->hooks.on_push = [](SyncResponse* push) {
           if (!push->has_queue_hints()) return true;
           for (QueueHint& hint : *push->mutable_queue_hints()->mutable_hints())
             hint.set_uid("somebody");
           return true;
         };
       }},
      {"objects removed whatever their kind",
       {"QueueingHintService/references"},
       IgnoringKinds(/*in_events=*/false)},
      {"events about objects of any kind",
       {"QueueingHintService/references"},
       IgnoringKinds(/*in_events=*/true)},
      {"unknown victims",
       {"PostFilterService/post-filter"},
       Answering<PostFilterResponse>([](Wrongness*, PostFilterResponse* said) {
         PreemptionCandidate* candidate = said->mutable_candidates()->add_candidates();
         candidate->set_plugin("DefaultPreemption");
         candidate->add_victim_uids("nobody");
       })},
  };
}

// Our own host, as a process.
class GoodHost {
 public:
  explicit GoodHost(int number)
      : path_(absl::StrCat(TempDir(), "/good-", getpid(), "-", number, ".sock")) {
    const std::string listen = absl::StrCat("unix:", path_);
    const char* const arguments[] = {OUTBOARD_HOST, "--listen", listen.c_str(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, OUTBOARD_HOST, nullptr, nullptr,
                          const_cast<char* const*>(arguments), environ),
              0);
    grpc::ChannelArguments channel;
    channel.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(listen, grpc::InsecureChannelCredentials(), channel);
    EXPECT_TRUE(channel_->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(30))));
  }
  ~GoodHost() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    std::filesystem::remove(path_);
  }
  const std::string& path() const { return path_; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }

 private:
  const std::string path_;
  pid_t pid_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
};

std::map<std::string, std::string> FailuresOf(const BadHost& bad, int number) {
  GoodHost good(number);
  return FailuresOf(bad, number, good.channel(), AllCases());
}

TEST(BadHostsTest, EachFailsTheRightCases) {
  const std::vector<BadHost> bad = BadHosts();
  std::vector<std::map<std::string, std::string>> failed(bad.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < kAtOnce; ++i) {
    workers.emplace_back([&] {
      for (size_t k = next++; k < bad.size(); k = next++)
        failed[k] = FailuresOf(bad[k], static_cast<int>(k));
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (size_t k = 0; k < bad.size(); ++k) {
    const std::string said = MessagesOf(failed[k]);
    std::cout << bad[k].name << "\n" << said << std::flush;
    EXPECT_THAT(NamesOf(failed[k]), UnorderedElementsAreArray(bad[k].fails))
        << "a host with " << bad[k].name << "\n"
        << said;
  }
}

// The proxy itself causes no failure.
TEST(GoodHostTest, FailsNothingBehindAProxy) {
  const auto failed = FailuresOf({"no fault", {}, [](Wrongness*) {}}, 1001);
  EXPECT_THAT(failed, IsEmpty()) << MessagesOf(failed);
}

TEST(TimeLimitTest, TheNextCaseFailsAndTheRestIsSkipped) {
  GoodHost good(1002);
  Options options = OptionsFor(good.path());
  options.time_limit = absl::ZeroDuration();
  const auto kit = Kit::Connect(options);
  ASSERT_TRUE(kit.ok()) << kit.status();
  std::map<Result::Outcome, int> count;
  for (const Result& result : RunCases(**kit, AllCases(), [](const Result&) {}))
    ++count[result.outcome];
  EXPECT_EQ(count[Result::Outcome::kFailed], 1);
  EXPECT_EQ(count[Result::Outcome::kPassed], 0);
  EXPECT_GT(count[Result::Outcome::kSkipped], 50);
}

}  // namespace
}  // namespace outboard::conformance
