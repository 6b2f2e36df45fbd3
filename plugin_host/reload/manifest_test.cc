#include "plugin_host/reload/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::reload {
namespace {

using ::testing::HasSubstr;

const std::string kA(64, 'a');
const std::string kB(64, 'b');

TEST(ManifestTest, ReadsWhatSha256sumWrites) {
  const auto manifest = ParseManifest(
      absl::StrCat("# made by hand\n\n", kA, "  price.so\n", kB, " *./window-2.so\n"));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(*manifest, (Manifest{{"price.so", kA}, {"window-2.so", kB}}));
  EXPECT_EQ(ManifestText(*manifest), absl::StrCat(kA, "  price.so\n", kB, "  window-2.so\n"));
}

TEST(ManifestTest, NamesTheLineThatIsWrong) {
  const auto fault = [](const std::string& text) {
    return std::string(ParseManifest(text).status().message());
  };
  EXPECT_THAT(fault("\nprice.so\n"), HasSubstr("line 2: does not begin with"));
  EXPECT_THAT(fault(kA + " price.so"), HasSubstr("line 1: needs two blanks"));
  EXPECT_THAT(fault(kA + "  ../price.so"), HasSubstr("is not the name of a .so file"));
  EXPECT_THAT(fault(kA + "  below/price.so"), HasSubstr("is not the name of a .so file"));
  EXPECT_THAT(fault(kA + "  .so"), HasSubstr("is not the name of a .so file"));
  EXPECT_THAT(fault(kA + "  price.txt"), HasSubstr("is not the name of a .so file"));
  EXPECT_THAT(fault(kA + "  a.so\n" + kB + "  a.so"), HasSubstr("line 2: a.so is listed twice"));
}

TEST(ManifestTest, AFileIsReplacedAsAWhole) {
  const std::string path = absl::StrCat(::testing::TempDir(), "manifest-test.txt");
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "another").ok());
  EXPECT_EQ(ReadFile(path).value(), "another");
  EXPECT_TRUE(absl::IsNotFound(ReadFile(path + ".gone").status()));
  EXPECT_THAT(std::string(WriteFileAtomically("/proc/nothing/x", "y").message()),
              HasSubstr("cannot write /proc/nothing/.x"));
}

TEST(ManifestTest, DigestsAreThoseOfSha256sum) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace outboard::reload
