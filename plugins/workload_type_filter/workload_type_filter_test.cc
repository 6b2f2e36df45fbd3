#include "plugins/workload_type_filter/workload_type_filter.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::workload_type_filter {
namespace {

TEST(WorkloadTypeFilterTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/workload_type_filter/testdata");
}

}  // namespace
}  // namespace outboard::workload_type_filter
