// The reader against a server that answers as the test sets.
#include "plugins/gpu_load/load_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plugin_host/sdk/prometheus/testing/fake_prometheus.h"

namespace outboard::gpu_load {
namespace {

using prometheus::testing::FakePrometheus;
using prometheus::testing::ReadCounts;
using prometheus::testing::SamplesAnswer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string HostRows(double use) {
  return absl::StrCat(R"({"metric":{"node":"n1","outboard":"use"},"value":[100,")", use,
                      R"("]},{"metric":{"node":"n1","outboard":"sampled"},"value":[100,"90"]})");
}

std::string XidRow(int code) {
  return absl::StrCat(R"(,{"metric":{"node":"n1","gpu":"3","outboard":"xid"},"value":[100,")", code,
                      R"("]})");
}

class LoadReaderTest : public ::testing::Test {
 protected:
  LoadReaderTest() {
    options_.server.address = prometheus_.address();
    options_.server.timeout = absl::Milliseconds(300);
    options_.period = absl::Milliseconds(20);
    options_.veto_codes = {48, 79};
    options_.veto_for = absl::Seconds(30);
  }
  void Start() { reader_ = std::make_unique<LoadReader>(options_, &metrics_); }

  FakePrometheus prometheus_;
  ReadCounts metrics_;
  ReaderOptions options_;
  std::unique_ptr<LoadReader> reader_;
};

TEST_F(LoadReaderTest, AsksAndPublishes) {
  prometheus_.Say(SamplesAnswer(HostRows(0.25)));
  const absl::Time before = absl::Now();
  Start();
  metrics_.Await("ok", 2);
  const auto snapshot = reader_->Latest();
  ASSERT_NE(snapshot, nullptr);
  EXPECT_THAT(snapshot->hosts, ElementsAre(HostLoad{{"n1"}, 0.25, {}, absl::Seconds(10)}));
  EXPECT_GE(snapshot->asked, before);
  EXPECT_LE(snapshot->asked, absl::Now());
  const std::string request = prometheus_.AwaitRequests(1);
  EXPECT_THAT(request, HasSubstr("DCGM_FI_PROF_GR_ENGINE_ACTIVE"));
  EXPECT_THAT(request, HasSubstr("query=label_replace%28avg%20by"));
}

// A failed reading leaves the last snapshot.
TEST_F(LoadReaderTest, FailuresLeaveWhatIsKnown) {
  prometheus_.Say(SamplesAnswer(HostRows(0.25)));
  Start();
  metrics_.Await("ok", 1);
  const auto snapshot = reader_->Latest();
  prometheus_.Say(prometheus::testing::Ok("<html>please log in</html>"));
  metrics_.Await("malformed", 2);
  ASSERT_NE(reader_->Latest(), nullptr);
  EXPECT_EQ(reader_->Latest()->hosts, snapshot->hosts);
}

TEST_F(LoadReaderTest, VetoesAreKeptAfterTheirEnd) {
  options_.veto_for = absl::Milliseconds(500);
  options_.query.max_sample_age = absl::Minutes(2);
  prometheus_.Say(SamplesAnswer(HostRows(0.25) + XidRow(79)));
  Start();
  metrics_.Await("ok", 2);
  auto snapshot = reader_->Latest();
  ASSERT_EQ(snapshot->vetoes.size(), 1u);
  EXPECT_EQ(snapshot->vetoes[0].code, 79);
  EXPECT_EQ(snapshot->vetoes[0].gpu, "3");
  // While it is shown, it holds until samples would be too old.
  EXPECT_EQ(snapshot->vetoes[0].until, snapshot->asked + absl::Minutes(2));
  // A program's error at the same time hides it: it still holds for a while.
  prometheus_.Say(SamplesAnswer(HostRows(0.25) + XidRow(43)));
  prometheus_.AwaitRequests(2);
  snapshot = reader_->Latest();
  ASSERT_EQ(snapshot->vetoes.size(), 1u);
  EXPECT_LE(snapshot->vetoes[0].until, absl::Now() + absl::Milliseconds(500));
  const absl::Time until = absl::Now() + absl::Seconds(20);
  while (!reader_->Latest()->vetoes.empty() && absl::Now() < until) std::this_thread::yield();
  EXPECT_THAT(reader_->Latest()->vetoes, IsEmpty());
}

TEST_F(LoadReaderTest, MissingSamplesAreReported) {
  prometheus_.Say(SamplesAnswer(""));
  Start();
  metrics_.Await("no_samples", 1);
  EXPECT_TRUE(reader_->Latest()->hosts.empty());
}

TEST_F(LoadReaderTest, ProfilesShareOneWithTheSameOptions) {
  prometheus_.Say(SamplesAnswer(HostRows(0.25)));
  auto one = LoadReader::Shared(options_, &metrics_);
  auto two = LoadReader::Shared(options_, &metrics_);
  EXPECT_EQ(one, two);
  metrics_.Await("ok", 1);
  one = nullptr;
  EXPECT_NE(two->Latest(), nullptr);
  ReaderOptions others = options_;
  others.query.node_labels = {"node"};
  EXPECT_NE(LoadReader::Shared(others, &metrics_), two);
  two = nullptr;
  EXPECT_EQ(LoadReader::Shared(options_, &metrics_)->Latest(), nullptr) << "a new reader";
}

}  // namespace
}  // namespace outboard::gpu_load
