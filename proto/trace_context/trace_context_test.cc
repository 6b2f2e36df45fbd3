#include "proto/trace_context/trace_context.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/trace_context/sha256.h"

namespace outboard::trace_context {
namespace {

constexpr char kUid[] = "0af76519-16cd-43dd-8448-eb211c80319c";

std::string Digest(absl::string_view text) {
  const auto digest = Sha256(text);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

// Vectors of NIST, and lengths around the end of a block.
TEST(TraceContext, Sha256IsTheStandards) {
  EXPECT_EQ(Digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Digest(std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(Digest(std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(Digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(TraceContext, OfAUuidItIsTheUuidWithoutDashes) {
  EXPECT_EQ(TraceId(kUid).text(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(TraceId("0AF76519-16CD-43DD-8448-EB211C80319C").text(), TraceId(kUid).text());
}

TEST(TraceContext, OfAnotherUidItIsADigest) {
  EXPECT_EQ(TraceId("abc").text(), "ba7816bf8f01cfea414140de5dae2223");
  EXPECT_EQ(TraceId("").text(), "e3b0c44298fc1c149afbf4c8996fb924");
  for (const std::string uid :
       {"00000000-0000-0000-0000-000000000000", "0af76519-16cd-43dd-8448-eb211c80319",
        "0af76519-16cd-43dd-8448-eb211c80319c0", "0af76519-16cd-43dd-8448-eb211c80319g",
        "0af76519016cd-43dd-8448-eb211c80319c", "0af7651916cd43dd8448eb211c80319c",
        "0af7651-916cd-43dd-8448-eb211c80319c"}) {
    EXPECT_EQ(TraceId(uid).text(), Digest(uid).substr(0, TraceId::kSize)) << uid;
  }
}

TEST(TraceContext, TheSpanIsTheAttempt) {
  EXPECT_EQ(TraceParent(kUid, 1).text(), "00-0af7651916cd43dd8448eb211c80319c-0000000000000001-01");
  EXPECT_EQ(TraceParent(kUid, 0xfedcba9876543210).text(),
            "00-0af7651916cd43dd8448eb211c80319c-fedcba9876543210-01");
  EXPECT_EQ(TraceParent("abc", 255).text(),
            "00-ba7816bf8f01cfea414140de5dae2223-00000000000000ff-01");
}

TEST(TraceContext, IsPrintedAsItsText) {
  std::ostringstream out;
  out << TraceId(kUid) << " " << TraceParent(kUid, 17);
  EXPECT_EQ(out.str(), absl::StrCat(TraceId(kUid).text(), " ", TraceParent(kUid, 17).text()));
}

}  // namespace
}  // namespace outboard::trace_context
