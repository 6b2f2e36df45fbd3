// The contract's example of a Sync stream, proto/testing/sync_trace.json, played to the host. What
// the example says about the cache is compared with what calls can observe: which pods and slots
// are known, and which pods count on which node.
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"
#include "cli/conformance/sync_trace_text.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using nlohmann::json;

// One more than the highest slot of the trace.
constexpr uint32_t kSlots = 5;
// Above the attempts that the trace ends.
constexpr uint64_t kFirstAttempt = 100;

const json& Trace() {
  static const auto* const kTrace = new json(json::parse(kSyncTraceText));
  return *kTrace;
}

absl::Status Read(const json& message, SyncRequest* request) {
  const auto read = google::protobuf::util::JsonStringToMessage(message.dump(), request);
  if (!read.ok()) return absl::InternalError(absl::StrCat("sync_trace.json: ", read.ToString()));
  // The session's own id is sent instead.
  request->clear_session_id();
  return absl::OkStatus();
}

// What the trace says about the cache.
struct Cache {
  int64_t version = 0;  // 0: no complete snapshot
  std::vector<uint32_t> order;
  std::map<std::string, std::optional<uint32_t>> pods;  // with the slot where they count
};

Cache CacheOf(const json& step) {
  const json& text = step.at("cache");
  Cache cache;
  cache.version = text.at("version").get<int64_t>();
  if (cache.version == 0) return cache;
  cache.order = text.at("order").get<std::vector<uint32_t>>();
  for (const auto& [uid, place] : text.at("pods").items()) {
    std::optional<uint32_t>& slot = cache.pods[uid];
    if (place.is_number()) slot = place.get<uint32_t>();
  }
  return cache;
}

// The same fault, with the message of the trace after which it showed.
absl::Status After(const std::string& what, const absl::Status& fault) {
  absl::Status named(fault.code(), absl::StrCat("after \"", what, "\": ", fault.message()));
  fault.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { named.SetPayload(type, payload); });
  return named;
}

class TracePlayer {
 public:
  explicit TracePlayer(const Kit& kit) : kit_(kit), session_(kit) {}

  Session* session() { return &session_; }

  absl::Status Open() {
    CONFORMANCE_TRY(session_.Connect());
    CONFORMANCE_TRY(session_.Configure());
    session_.OpenStream();
    return absl::OkStatus();
  }

  absl::Status Send(const json& message) {
    SyncRequest request;
    CONFORMANCE_TRY(Read(message, &request));
    for (const Change& change : request.changes()) {
      if (change.has_pod_upsert()) seen_.insert(change.pod_upsert().pod().uid());
    }
    session_.Send(std::move(request));
    return absl::OkStatus();
  }

  // Sends the step, and observes the cache.
  absl::Status Play(const json& step) {
    const bool begins = step.at("request").at("phase") == "PHASE_SNAPSHOT_BEGIN";
    // Changes that a new snapshot overtakes need no acknowledgement.
    if (begins && session_.version() != 0) CONFORMANCE_TRY(ExpectAcknowledged());
    CONFORMANCE_TRY(Send(step.at("request")));
    const Cache cache = CacheOf(step);
    if (cache.version == 0) return absl::OkStatus();
    const absl::Status as_traced = ExpectCache(cache);
    CONFORMANCE_TRY(ExpectOpen());
    return as_traced;
  }

  absl::Status ExpectAcknowledged() {
    if (session_.sync().AwaitAck(session_.version(), kSoon)) return absl::OkStatus();
    return Late(Wrong(kAckBehind,
                      absl::StrCat("version ", session_.version(), " is not acknowledged within ",
                                   absl::FormatDuration(kSoon))));
  }

 private:
  absl::Status ExpectOpen() {
    grpc::Status status;
    if (session_.sync().AwaitEnd(absl::ZeroDuration(), &status))
      return Wrong(kSyncVersion, absl::StrCat("the stream ends with ", Describe(status)));
    for (const SyncResponse& response : session_.sync().received()) {
      if (response.has_resync()) {
        return Wrong(kSyncVersion,
                     absl::StrCat("the host wants a snapshot: ", response.resync().reason()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ExpectCache(const Cache& cache) {
    if (!kit_.HasAlgorithm()) return session_.AwaitReady();
    std::optional<uint64_t> observer;
    CONFORMANCE_TRY(ExpectPods(cache, &observer));
    if (!observer.has_value() || !kit_.Has(EXTENSION_POINT_FILTER)) return absl::OkStatus();
    CONFORMANCE_TRY(ExpectNodes(*observer, cache));
    return ExpectPlaces(*observer, cache);
  }

  // Only the pods of the cache are known. `observer`: an attempt that can continue with Filter.
  absl::Status ExpectPods(const Cache& cache, std::optional<uint64_t>* observer) {
    for (const std::string& uid : seen_) {
      const auto pod = cache.pods.find(uid);
      // The shim begins no attempt of a pod that has a place.
      if (pod != cache.pods.end() && pod->second.has_value()) continue;
      const auto answer = session_.PreFilter(++attempt_, uid);
      if (pod == cache.pods.end()) {
        CONFORMANCE_TRY(ExpectError(answer, {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown));
        continue;
      }
      CONFORMANCE_TRY(ExpectOk(answer));
      CONFORMANCE_TRY(CheckPreFilter(kit_, answer.message));
      if (!answer.message.has_rejection() && !answer.message.has_node_names()) *observer = attempt_;
    }
    return absl::OkStatus();
  }

  // All nodes have verdicts, and free slots have none.
  absl::Status ExpectNodes(uint64_t attempt, const Cache& cache) {
    NodeSearch all;
    all.set_num_feasible_nodes_to_find(static_cast<uint32_t>(cache.order.size()));
    const auto filter = session_.Filter(attempt, all);
    CONFORMANCE_TRY(ExpectOk(filter));
    Verdicts verdicts;
    std::vector<uint32_t> feasible;
    CONFORMANCE_TRY(
        CheckFilter(kit_, filter.message, cache.order, cache.order.size(), &verdicts, &feasible));
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      if (std::find(cache.order.begin(), cache.order.end(), slot) != cache.order.end()) continue;
      NodeSearch search;
      search.mutable_nodes()->add_slots(slot);
      CONFORMANCE_TRY(ExpectError(session_.Filter(attempt, search),
                                  {CallError::REASON_OBJECT_UNKNOWN}, kSlotFree));
    }
    return absl::OkStatus();
  }

  // Pods can leave only the node where they count.
  absl::Status ExpectPlaces(uint64_t attempt, const Cache& cache) {
    NodeSimulation as_traced;
    for (const auto& [uid, place] : cache.pods) {
      for (const uint32_t slot : cache.order) {
        SimulatedNode node;
        node.set_slot(slot);
        node.add_removed_pod_uids(uid);
        if (place == slot) {
          *as_traced.add_nodes() = node;
          continue;
        }
        NodeSimulation other;
        *other.add_nodes() = node;
        const absl::Status refused = ExpectError(
            session_.Simulate(attempt, other),
            {CallError::REASON_OBJECT_UNKNOWN, CallError::REASON_INVALID}, kHypothesisRemoved);
        if (!refused.ok()) return After(absl::StrCat(uid, " leaves slot ", slot), refused);
      }
    }
    if (as_traced.nodes().empty()) return absl::OkStatus();
    const auto simulated = session_.Simulate(attempt, as_traced);
    if (simulated.status.ok()) return absl::OkStatus();
    return Wrong(kHypothesisRemoved, absl::StrCat("a pod is not where the stream placed it: ",
                                                  Describe(simulated.status)));
  }

  const Kit& kit_;
  Session session_;
  uint64_t attempt_ = kFirstAttempt;
  std::set<std::string> seen_;  // uids of all pods of the stream so far
};

absl::Status PlayTrace(const Kit& kit) {
  TracePlayer player(kit);
  CONFORMANCE_TRY(player.Open());
  for (const json& step : Trace().at("steps")) {
    if (const absl::Status fault = player.Play(step); !fault.ok())
      return After(step.at("what").get<std::string>(), fault);
  }
  return player.ExpectAcknowledged();
}

// After the first complete snapshot of the trace.
absl::Status RefuseMessages(const Kit& kit) {
  for (const json& refused : Trace().at("refused")) {
    TracePlayer player(kit);
    CONFORMANCE_TRY(player.Open());
    for (const json& step : Trace().at("steps")) {
      CONFORMANCE_TRY(player.Send(step.at("request")));
      if (CacheOf(step).version != 0) break;
    }
    for (const json& message : refused.at("requests")) CONFORMANCE_TRY(player.Send(message));
    CONFORMANCE_TRY(ExpectStreamRefused(player.session(), refused.at("what").get<std::string>()));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Case> TraceCases() {
  static constexpr char kService[] = "ClusterStateService";
  return {
      {kService, "trace", "the contract's example of a stream gives the cache that it says",
       PlayTrace},
      {kService, "trace-refused", "each message that the example calls invalid ends the stream",
       RefuseMessages},
  };
}

}  // namespace outboard::conformance
