// Runs the fuzz target over its seeds, whole, cut off and damaged.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "integration/fuzz/run_corpus.h"
#include "plugin_host/sdk/prometheus/samples.h"
#include "plugin_host/sdk/prometheus/testing/fuzz_samples.h"

namespace outboard::prometheus {
namespace {

constexpr char kSeeds[] = "plugin_host/sdk/prometheus/testdata/samples";

TEST(PrometheusSamplesCorpus, Seeds) { fuzz::RunCorpus(kSeeds, 4, FuzzSamples); }

TEST(PrometheusSamplesCorpus, DamagedSeeds) {
  const std::string good = fuzz::ReadSeed(std::string(kSeeds) + "/vector.json");
  ASSERT_TRUE(ParseSamples(good).ok());
  std::mt19937 random(7);
  const std::string tokens("{}[]\",:0129.eE-+\\untf \x00\xff", 24);
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = tokens[random() % tokens.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text.resize(at);
      }
    }
    FuzzSamples(text);
    if (ParseSamples(text).ok()) ++read;
  }
  EXPECT_GT(read, 100);  // Otherwise it tests nothing.
}

}  // namespace
}  // namespace outboard::prometheus
