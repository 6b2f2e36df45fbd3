// What a host's largest answers cost: the receive limit of the channel (endpoint.h) must be above
// the largest answer that a host has reason to give, and low enough that the most expensive answer
// of that size fits into the shim's memory.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "outboard/v1beta1/pre_bind.pb.h"
#include "outboard/v1beta1/pre_enqueue.pb.h"
#include "outboard/v1beta1/queue_sort.pb.h"
#include "outboard/v1beta1/reserve.pb.h"
#include "outboard/v1beta1/score.pb.h"
#include "shim/hosts/endpoint.h"

namespace outboard::hosts {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

// Five eighths of the shim's memory limit in deploy/. The largest is the answer of a handshake, of
// which the connector reads one at a time from each host.
constexpr size_t kMaxParsedBytes = size_t{640} << 20;

std::vector<const Message*> AllAnswers() {
  return {&GetHostInfoResponse::default_instance(), &ConfigureResponse::default_instance(),
          &ProbeResponse::default_instance(),       &EndSessionResponse::default_instance(),
          &DrainResponse::default_instance(),       &SyncResponse::default_instance(),
          &CycleResponse::default_instance(),       &PreFilterResponse::default_instance(),
          &FilterResponse::default_instance(),      &PostFilterResponse::default_instance(),
          &PreScoreResponse::default_instance(),    &ScoreResponse::default_instance(),
          &SortKeysResponse::default_instance(),    &PreEnqueueResponse::default_instance(),
          &ReserveResponse::default_instance(),     &UnreserveResponse::default_instance(),
          &PermitResponse::default_instance(),      &PreBindResponse::default_instance(),
          &PlanResponse::default_instance()};
}

void AppendVarint(uint64_t value, std::string* out) {
  uint8_t bytes[10];
  const uint8_t* const end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, bytes);
  out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}

// `count` times the field with an empty string or message, or with zeros.
std::string EmptyElements(const FieldDescriptor& field, size_t bytes) {
  std::string element;
  if (field.is_packed()) {
    AppendVarint(static_cast<uint64_t>(field.number()) << 3 | 2, &element);
    AppendVarint(bytes, &element);
    return element + std::string(bytes, '\0');
  }
  AppendVarint(static_cast<uint64_t>(field.number()) << 3 | 2, &element);
  element.push_back('\0');
  std::string all;
  while (all.size() + element.size() <= bytes) all += element;
  return all;
}

struct Worst {
  std::string path;
  size_t bytes = 0;
};

// Tries every repeated field of the message, however deep in messages.
void TryAll(const Message& answer, const Descriptor& type, std::vector<const FieldDescriptor*> path,
            size_t wire_bytes, Worst* worst) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool seen = std::any_of(path.begin(), path.end(), [&](const FieldDescriptor* outer) {
      return outer->message_type() == field.message_type() && field.message_type() != nullptr;
    });
    if (seen) continue;
    if (field.is_repeated()) {
      std::string wire = EmptyElements(field, wire_bytes - 64);
      for (auto outer = path.rbegin(); outer != path.rend(); ++outer) {
        std::string head;
        AppendVarint(static_cast<uint64_t>((*outer)->number()) << 3 | 2, &head);
        AppendVarint(wire.size(), &head);
        wire = head + wire;
      }
      std::unique_ptr<Message> parsed(answer.New());
      ASSERT_TRUE(parsed->ParseFromString(wire)) << field.full_name();
      const size_t bytes = parsed->SpaceUsedLong();
      if (bytes > worst->bytes) *worst = {field.full_name(), bytes};
    }
    if (field.message_type() == nullptr) continue;
    std::vector<const FieldDescriptor*> deeper = path;
    deeper.push_back(&field);
    TryAll(answer, *field.message_type(), std::move(deeper), wire_bytes, worst);
  }
}

TEST(AnswerSize, TheMostExpensiveAnswerFitsIntoMemory) {
  // Measured at a sixteenth of the limit: what grows is linear.
  constexpr size_t kWireBytes = kMaxAnswerBytes / 16;
  for (const Message* answer : AllAnswers()) {
    Worst worst;
    TryAll(*answer, *answer->GetDescriptor(), {}, kWireBytes, &worst);
    const size_t at_limit = worst.bytes * 16;
    std::cout << absl::StrFormat("%-22s %3d times its bytes, %4d MiB: %s\n",
                                 answer->GetDescriptor()->name(), worst.bytes / kWireBytes,
                                 at_limit >> 20, worst.path);
    EXPECT_LE(at_limit, kMaxParsedBytes) << worst.path;
  }
}

// A cluster of three times the nodes that upstream supports.
constexpr int kManyNodes = 15000;
constexpr int kManyPlugins = 24;
constexpr int kWaitingPods = 50000;

std::string PodUid(int i) { return absl::StrFormat("%08x-0000-4000-8000-000000000000", i); }

FilterResponse LargestFilter() {
  FilterResponse filter;
  filter.set_processed(kManyNodes);
  filter.set_feasible(std::string(kManyNodes / 8, '\0'));
  // Every node rejected for a reason of its own, as plugins with per-node texts do.
  for (int i = 0; i < kManyNodes; ++i) {
    filter.add_rejected(static_cast<uint32_t>(i));
    PluginStatus* reason = filter.add_reasons();
    reason->set_plugin("NodeResourcesFit");
    reason->set_code(CODE_UNSCHEDULABLE);
    reason->add_reasons(absl::StrCat("node ", i, ": ", std::string(100, 'r')));
  }
  return filter;
}

ScoreResponse LargestScore() {
  ScoreResponse score;
  for (int plugin = 0; plugin < kManyPlugins; ++plugin) {
    PluginScores* scores = score.add_plugins();
    scores->set_plugin(absl::StrCat("Plugin", plugin));
    scores->set_scores(std::string(kManyNodes, '\x64'));
    if (plugin % 4 != 0) continue;
    for (int i = 0; i < kManyNodes; ++i) scores->add_tie_keys(int64_t{1} << 40);
  }
  return score;
}

PreFilterResponse LargestPreFilter() {
  PreFilterResponse pre_filter;
  for (int i = 0; i < kManyNodes; ++i)
    pre_filter.mutable_node_names()->add_names(absl::StrCat(i, std::string(58, 'n')));
  return pre_filter;
}

TEST(AnswerSize, TheLargestUsefulAnswersAreBelowTheLimit) {
  std::vector<std::pair<std::string, size_t>> sizes;
  const auto add = [&](const char* what, const Message& message) {
    sizes.emplace_back(what, message.ByteSizeLong());
  };
  add("Filter, another reason for each node", LargestFilter());
  add("Score, 24 plugins, 6 with tie keys", LargestScore());
  add("PreFilter, the names of all nodes", LargestPreFilter());
  {
    CycleResponse cycle;
    *cycle.mutable_evaluation()->mutable_pre_filter() = LargestPreFilter();
    *cycle.mutable_evaluation()->mutable_filter() = LargestFilter();
    *cycle.mutable_evaluation()->mutable_score() = LargestScore();
    add("Cycle, all of these", cycle);
  }
  {
    PlanResponse plan;
    for (int i = 0; i < 4096; ++i) {
      PlannedPlacement* placement = plan.mutable_plan()->add_placements();
      placement->set_pod_uid(PodUid(i));
      placement->set_slot(kManyNodes);
      placement->set_processed(kManyNodes);
      placement->set_feasible(kManyNodes);
      plan.mutable_plan()->mutable_group()->add_pod_uids(PodUid(i));
    }
    add("Plan, a group of 4,096", plan);
  }
  {
    // 110 victims on the node, and the nodes for the other 4,095 pods of the group.
    PostFilterResponse post_filter;
    for (int candidate = 0; candidate < 32; ++candidate) {
      PreemptionCandidate* out = post_filter.mutable_candidates()->add_candidates();
      out->set_plugin("Coscheduling");
      for (int i = 0; i < 110; ++i) out->add_victim_uids(PodUid(i));
      for (int i = 0; i < 4095; ++i) {
        Nomination* nomination = out->add_nominations();
        nomination->set_pod_uid(PodUid(i));
        nomination->set_slot(kManyNodes);
      }
    }
    add("PostFilter, 32 candidates for a group of 4,096", post_filter);
  }
  {
    // A tenth of the nodes with all pods of each removed and added again one by one.
    PostFilterResponse post_filter;
    for (int i = 0; i < 65536; ++i) {
      PreemptionQuestion* question = post_filter.mutable_questions()->add_questions();
      question->mutable_simulated_node()->set_slot(static_cast<uint32_t>(i));
      question->mutable_simulated_node()->set_continues(true);
      question->mutable_simulated_node()->add_added_pod_uids(PodUid(i));
    }
    add("PostFilter, 65,536 questions", post_filter);
  }
  {
    SyncResponse push;
    for (int i = 0; i < kWaitingPods; ++i) push.mutable_gate_changed()->add_pod_uids(PodUid(i));
    add("Sync, the gates of 50,000 pods", push);
  }
  {
    SyncResponse push;
    for (int i = 0; i < kWaitingPods; ++i) {
      QueueHint* hint = push.mutable_queue_hints()->add_hints();
      hint->set_uid(PodUid(i));
      hint->set_plugin("NodeResourcesFit");
      hint->mutable_event()->set_resource("Node");
      hint->mutable_event()->add_actions(ClusterEvent::ACTION_UPDATE_NODE_ALLOCATABLE);
      hint->set_number(1000000);
    }
    add("Sync, 50,000 wakes at once", push);
  }
  {
    // Four times what this repository's host serves, each plugin with a schema of 4 KiB.
    GetHostInfoResponse info;
    for (int i = 0; i < 4 * kManyPlugins; ++i) {
      PluginInfo* plugin = info.add_plugins();
      plugin->set_name(absl::StrCat("Plugin", i));
      plugin->set_args_schema(std::string(4096, 's'));
      for (int event = 0; event < 20; ++event) plugin->add_wake_up_events()->set_resource("Node");
    }
    add("GetHostInfo, 96 plugins", info);
  }
  for (const auto& [what, bytes] : sizes) {
    std::cout << absl::StrFormat("%8.1f KiB  %s\n", static_cast<double>(bytes) / 1024, what);
    EXPECT_LT(bytes, size_t{kMaxAnswerBytes}) << what;
  }
}

}  // namespace
}  // namespace outboard::hosts
