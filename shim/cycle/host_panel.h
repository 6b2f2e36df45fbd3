// All hosts of a profile, asked at once and heard as one.
#ifndef OUTBOARD_SHIM_CYCLE_HOST_PANEL_H_
#define OUTBOARD_SHIM_CYCLE_HOST_PANEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/outboard/v1alpha1/cycle.pb.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/host_client.h"
#include "shim/cycle/host_exchange.h"

namespace outboard::cycle {

// What one of several hosts does in a profile: names of plugins, in the profile's order.
struct AlgorithmShare {
  std::vector<std::string> pre_filter_plugins;
  std::vector<std::string> filter_plugins;
  std::vector<std::string> pre_score_plugins;
  std::vector<WeightedPlugin> score_plugins;
  // Whether an attempt goes on without the host's answer at a point: no plugin that it has there
  // insists on being heard (failurePolicies). What it would have said counts as: every node, no
  // score.
  bool pre_filter_is_open = false;
  bool filter_is_open = false;
  bool score_is_open = false;  // PreScore too
  // Instead of no score, that of the last pod of the same owner, if it is not older than 5 s.
  bool score_uses_last = false;
  // It can be asked several points in one message.
  bool can_fuse = false;

  // Whether the algorithm can do without the host.
  bool is_optional() const { return pre_filter_is_open && filter_is_open && score_is_open; }
};

// What the algorithm needs of a profile.
struct AlgorithmProfile {
  std::string name;
  uint32_t percentage_of_nodes_to_score = 0;  // 0: adapts to the size of the cluster
  // Names, for counting who was asked.
  std::vector<std::string> pre_filter_plugins;
  std::vector<std::string> filter_plugins;
  std::vector<std::string>
      post_filter_plugins;  // empty: nothing is tried for a pod that fits nowhere
  std::vector<std::string> pre_score_plugins;
  std::vector<WeightedPlugin> score_plugins;  // empty: the first feasible node is taken
  // Plugins at Score whose host is spared the pod: they give 0 to every node.
  std::vector<std::string> spared_score_plugins;
  // One for each host that has a plugin at one of these points, if there are several, or if the
  // only one keeps no mirror.
  std::vector<AlgorithmShare> shares;
  // The main host, by its index in `shares`: it filters, and can be asked all points in one
  // message. The others are late: they are asked at Filter once it has answered, about what it
  // left. Without one all are.
  std::optional<size_t> main_host;
};

// A host, and the version of the cluster at which it is asked.
struct HostAtVersion {
  HostClient* client = nullptr;  // null: it is away, and can be done without
  int64_t version = 0;
};
using AttemptHosts = absl::InlinedVector<HostAtVersion, 2>;

// An answer that is missing, and that a policy lets pass.
struct LeftOut {
  size_t host = 0;
  v1alpha1::ExtensionPoint point = v1alpha1::EXTENSION_POINT_UNSPECIFIED;
  bool used_last = false;
  absl::Status status;
};

// What hosts scored last, for pods whose owner has others like them. Bounded.
//
// Threading: thread-compatible.
class LastScores {
 public:
  static constexpr absl::Duration kMaxAge = absl::Seconds(5);
  void Keep(const std::string& key, const v1alpha1::NodeSet& nodes,
            const v1alpha1::ScoreResponse& scores, absl::Time now);
  // Null if there is none for all of these nodes.
  std::optional<v1alpha1::ScoreResponse> Find(const std::string& key,
                                              const v1alpha1::NodeSet& nodes, absl::Time now) const;

 private:
  struct Entry {
    absl::Time time;
    absl::flat_hash_map<uint32_t, size_t> position;  // by slot
    v1alpha1::ScoreResponse scores;
  };
  static constexpr size_t kMaxEntries = 64;
  std::map<std::string, Entry> entries_;
};

// Several hosts are asked in parallel, and each of their answers is checked before they are merged.
// One host is simply asked; its answers are the caller's to check.
//
// Threading: the scheduling thread; a call blocks until the slowest host has answered.
// Lifetime:  of one attempt; hosts and profile outlive it.
// Errors:    a status: some host, `silent_host`, gave no answer or one that cannot be used.
class HostPanel {
 public:
  HostPanel(const AttemptHosts* hosts, const AlgorithmProfile* profile, uint64_t attempt_id,
            absl::Time deadline)
      : hosts_(*hosts), profile_(*profile), attempt_id_(attempt_id), deadline_(deadline) {}

  // Where scores are kept for hosts that may be silent; `owner` tells pods like this one. Without
  // it such hosts have no score.
  void UseLastScores(LastScores* scores, std::string owner) {
    last_scores_ = scores;
    owner_ = std::move(owner);
  }

  // Has hosts say what scores are made of.
  void SetExplain(bool explain) { explain_ = explain; }
  // Keeps what is asked and answered from now on; outlives the panel.
  void SetRecorder(ExchangeRecorder* recorder) { recorder_ = recorder; }

  // Has PreFilter ask the main host all points in one message, `request`, with the sampling that it
  // would be given alone. Its answer on the nodes stands unless another host restricts the nodes,
  // or rejects one of its sample; if it gives none, it is asked point by point, since each point
  // has its own failure policy. Both outlive the panel.
  void AskMainAtOnce(const v1alpha1::CycleRequest* request, v1alpha1::CycleResponse* answer) {
    at_once_ = AtOnce();
    at_once_.request = request;
    at_once_.answer = answer;
  }
  // Whether the nodes that the main host searched were those of the attempt.
  bool main_search_stands() const { return at_once_.search_stands; }

  // Begins the attempt on every host.
  absl::StatusOr<v1alpha1::PreFilterResponse> PreFilter(const std::string& pod_uid);
  // `candidates` are the nodes that `request` is about.
  absl::StatusOr<v1alpha1::FilterResponse> Filter(v1alpha1::FilterRequest request,
                                                  absl::Span<const uint32_t> candidates,
                                                  uint32_t num_to_find);
  absl::StatusOr<v1alpha1::PreScoreResponse> PreScore(const v1alpha1::NodeSet& nodes);
  absl::StatusOr<v1alpha1::ScoreResponse> Score(const v1alpha1::NodeSet& nodes);
  // What the hosts, but for `excepted`, say of each hypothesis: at its position the verdicts of
  // those that object, in no order.
  absl::StatusOr<std::vector<std::vector<v1alpha1::PluginStatus>>> Judge(
      const google::protobuf::RepeatedPtrField<v1alpha1::Hypothesis>& hypotheses, size_t excepted);
  // The same to a host's questions, its own verdicts included: the one that stands first.
  absl::StatusOr<std::vector<v1alpha1::PluginStatus>> AnswerQuestions(
      const google::protobuf::RepeatedPtrField<v1alpha1::PreemptionQuestion>& questions,
      size_t asking);

  absl::Time deadline() const { return deadline_; }
  // Index of the host that the last error is about.
  size_t silent_host() const { return silent_host_; }
  // Whose answers the attempt did without.
  const std::vector<LeftOut>& left_out() const { return left_out_; }

 private:
  bool alone() const { return profile_.shares.empty(); }
  // `sample`: the number of nodes in the main host's, if it is what the late hosts are asked about;
  // else 0.
  absl::StatusOr<v1alpha1::FilterResponse> AskFilter(const v1alpha1::FilterRequest& request,
                                                     absl::Span<const uint32_t> candidates,
                                                     uint32_t num_to_find, bool late,
                                                     uint32_t sample, bool somebody_must_answer);
  // Asks a late host about the sample, in one message with the points behind Filter.
  PendingAnswer<v1alpha1::FilterResponse> AskAtOnce(size_t host,
                                                    const v1alpha1::FilterRequest& request,
                                                    uint32_t sample);
  // The main host's answer at PreFilter, and all that goes with it.
  PendingAnswer<v1alpha1::PreFilterResponse> AskMain(v1alpha1::PreFilterRequest request);
  // What it said of its sample.
  absl::StatusOr<v1alpha1::FilterResponse> TakeMainSearch(uint32_t num_nodes, uint32_t num_to_find,
                                                          bool must_answer);
  bool IsLeftOut(size_t host) const;
  template <typename Response>
  absl::StatusOr<Response> Recorded(absl::StatusOr<Response> answer);
  void FillHeader(size_t host, v1alpha1::CallHeader* header) const;
  // Calls under way, by host, in their order.
  template <typename Response>
  using Pending = std::vector<std::pair<size_t, PendingAnswer<Response>>>;
  template <typename Response>
  struct Answers {
    std::vector<size_t> hosts;
    std::vector<Response> answers;
  };
  // Asks the hosts for which `takes_part` holds.
  template <typename Response, typename Request, typename TakesPart>
  Pending<Response> StartAll(const Request& request, TakesPart takes_part);
  // The same, but for hosts that have answered already: their answer holds `part`.
  template <typename Response, typename Request, typename TakesPart>
  Pending<Response> StartOrRecall(const Request& request, TakesPart takes_part,
                                  const Response& (v1alpha1::CycleResponse::*part)() const);
  // Their answers. `is_open`: whether the attempt can do without this host's, which is then left
  // out of what follows.
  template <typename Response, typename IsOpen, typename Check>
  absl::StatusOr<Answers<Response>> TakeAll(v1alpha1::ExtensionPoint point,
                                            Pending<Response> pending, IsOpen is_open, Check check,
                                            bool somebody_must_answer);

  const AttemptHosts& hosts_;
  const AlgorithmProfile& profile_;
  const uint64_t attempt_id_;
  const absl::Time deadline_;
  struct AtOnce {
    const v1alpha1::CycleRequest* request = nullptr;  // null: point by point
    v1alpha1::CycleResponse* answer = nullptr;
    bool answered = false;
    bool search_stands = false;  // until another host restricts the nodes
    bool scores_stand = false;   // until another host rejects one of the sample
    // What late hosts answered about the sample, by host. As long as it stands.
    std::map<size_t, v1alpha1::CycleResponse> late;
  };
  AtOnce at_once_;
  size_t silent_host_ = 0;
  std::vector<LeftOut> left_out_;
  LastScores* last_scores_ = nullptr;
  std::string owner_;
  bool explain_ = false;
  ExchangeRecorder* recorder_ = nullptr;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_HOST_PANEL_H_
