// What is recorded of an attempt for a ShadowObserver.
#include "shim/framework/host_call_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shim/clock.h"
#include "shim/framework/multi_host/extension_point_runner.h"
#include "shim/framework/testing/scripted_host.h"

namespace outboard::framework {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using v1beta1::FilterRequest;
using v1beta1::FilterResponse;

FilterResponse Rejecting(int count) {
  FilterResponse answer;
  answer.set_processed(static_cast<uint32_t>(count));
  answer.set_feasible(std::string(static_cast<size_t>(count + 7) / 8, '\0'));
  for (int i = 0; i < count; ++i) answer.add_rejected(0);
  auto* reason = answer.add_reasons();
  reason->set_plugin("Fake");
  reason->set_code(v1beta1::CODE_UNSCHEDULABLE);
  return answer;
}

class HostCallTraceTest : public ::testing::Test {
 protected:
  HostCallTraceTest() {
    profile_.name = "p";
    profile_.filter_plugins = {"Fit", "Fake"};
    for (ScriptedHost& host : scripted_) {
      hosts_.push_back({&host, 1});
      host.num_nodes = 3;
      host.pre_filter = [](const v1beta1::PreFilterRequest&) {
        return v1beta1::PreFilterResponse();
      };
      host.filter = [this](const FilterRequest&) {
        v1beta1::PlanResponse all;
        scripted_[0].Feasible(&all);
        return all.evaluation().filter();
      };
    }
  }
  void SeveralHosts() {
    profile_.shares.resize(2);
    profile_.shares[0].filter_plugins = {"Fit"};
    profile_.shares[1].filter_plugins = {"Fake"};
    profile_.shares[1].pre_filter_fail_open = true;
    profile_.shares[1].filter_fail_open = true;
    profile_.shares[1].score_fail_open = true;
  }
  // PreFilter and Filter over these nodes, starting at the third.
  void Run(std::vector<uint32_t> candidates) {
    ExtensionPointRunner runner(&hosts_, &profile_, 7, SteadyNow() + absl::Seconds(10));
    runner.SetRecorder(&recorder_);
    EXPECT_TRUE(runner.PreFilter("uid").ok());
    v1beta1::NodeSearch search;
    search.set_start_offset(2);
    search.mutable_nodes()->mutable_slots()->Assign(candidates.begin(), candidates.end());
    EXPECT_TRUE(runner.Filter(search, candidates, 3).ok());
  }

  ScriptedHost scripted_[2];
  AttemptHosts hosts_;
  AlgorithmProfile profile_;
  CallRecorder recorder_;
};

TEST_F(HostCallTraceTest, OfASingleHost) {
  recorder_.Want(0);
  hosts_.resize(1);
  Run({10, 11, 12});
  ASSERT_EQ(recorder_.exchanges().size(), 1u);
  const HostCallTrace& exchange = recorder_.exchanges()[0];
  EXPECT_TRUE(exchange.pre_filter.has_value());
  ASSERT_TRUE(exchange.filter.has_value());
  EXPECT_THAT(exchange.filter->slots, ElementsAre(12, 10, 11));
  EXPECT_EQ(exchange.filter->search.start_offset(), 2u);
  EXPECT_EQ(exchange.filter->response.processed(), 3u);
  EXPECT_FALSE(exchange.score.has_value());
}

TEST_F(HostCallTraceTest, OfSeveralOnlyThoseThatAreWanted) {
  SeveralHosts();
  recorder_.Want(1);
  scripted_[1].filter = [](const FilterRequest&) { return Rejecting(3); };
  Run({10, 11, 12});
  ASSERT_EQ(recorder_.exchanges().size(), 1u);
  EXPECT_EQ(recorder_.exchanges()[0].host, 1u);
  ASSERT_TRUE(recorder_.exchanges()[0].filter.has_value());
  EXPECT_EQ(recorder_.exchanges()[0].filter->response.rejected_size(), 3);
}

TEST_F(HostCallTraceTest, AnAnswerThatCannotBeUsedIsNotKept) {
  SeveralHosts();
  recorder_.Want(1);
  scripted_[1].filter = [](const FilterRequest&) { return Rejecting(2); };
  Run({10, 11, 12});
  EXPECT_TRUE(recorder_.exchanges()[0].pre_filter.has_value());
  EXPECT_FALSE(recorder_.exchanges()[0].filter.has_value());
}

TEST_F(HostCallTraceTest, OfALateHostTheFirstQuestion) {
  SeveralHosts();
  profile_.shares[0].filter_plugins.clear();
  recorder_.Want(1);
  std::vector<uint32_t> candidates;
  for (uint32_t slot = 0; slot < 250; ++slot) candidates.push_back(slot);
  scripted_[0].num_nodes = 250;
  int asked = 0;
  scripted_[1].filter = [&](const FilterRequest& request) {
    ++asked;
    return Rejecting(request.search().nodes().slots_size());
  };
  Run(candidates);
  EXPECT_GT(asked, 1);
  ASSERT_TRUE(recorder_.exchanges()[0].filter.has_value());
  const HostCallTrace::Filter& filter = *recorder_.exchanges()[0].filter;
  EXPECT_EQ(filter.slots.size(), 100u);
  EXPECT_EQ(filter.slots.front(), 2u) << "where the search begins";
  EXPECT_EQ(filter.search.start_offset(), 0u);
  EXPECT_EQ(filter.search.nodes().slots_size(), 100);
  EXPECT_EQ(filter.response.processed(), 100u);
}

}  // namespace
}  // namespace outboard::framework
