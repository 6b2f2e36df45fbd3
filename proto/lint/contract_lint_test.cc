#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/lint/contract_rules.h"
#include "proto/lint/render.h"

namespace outboard::lint {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Packages whose wire format must not change by accident. Beside v1beta1: the handshake, which
// never changes, and the version that the shim still serves.
constexpr const char* kPackages[] = {"handshake.v1", "v1alpha1", "v1beta1"};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The files of a descriptor set from protoc, built with their comments.
class DescriptorFile {
 public:
  explicit DescriptorFile(const std::string& path) {
    FileDescriptorSet set;
    EXPECT_TRUE(set.ParseFromString(ReadFile(path))) << path;
    for (const FileDescriptorProto& file : set.file()) {
      const FileDescriptor* built = pool_.BuildFile(file);
      if (built == nullptr) {
        ADD_FAILURE() << "cannot build " << file.name();
      } else if (absl::StartsWith(file.name(), "outboard/")) {
        files_.push_back(built);
      }
    }
  }
  const std::vector<const FileDescriptor*>& files() const { return files_; }
  std::vector<const FileDescriptor*> Package(const std::string& package) const {
    std::vector<const FileDescriptor*> files;
    for (const FileDescriptor* file : files_) {
      if (file->package() == absl::StrCat("outboard.", package)) files.push_back(file);
    }
    return files;
  }

 private:
  DescriptorPool pool_;
  std::vector<const FileDescriptor*> files_;
};

std::vector<std::string> CheckAll(const std::vector<const FileDescriptor*>& files) {
  std::vector<std::string> complaints;
  for (const FileDescriptor* file : files) {
    for (std::string& complaint : CheckFile(*file)) complaints.push_back(std::move(complaint));
  }
  return complaints;
}

TEST(ContractTest, FilesKeepTheRules) {
  DescriptorFile contract(OUTBOARD_CONTRACT_DESCRIPTORS);
  EXPECT_GE(contract.Package("v1beta1").size(), 17u);
  EXPECT_GE(contract.Package("handshake.v1").size(), 1u);
  for (const char* package : {"v1beta1", "handshake.v1"}) {
    const std::vector<std::string> complaints = CheckAll(contract.Package(package));
    EXPECT_THAT(complaints, IsEmpty()) << absl::StrJoin(complaints, "\n");
  }
}

TEST(ContractTest, GoldenDescriptor) {
  DescriptorFile contract(OUTBOARD_CONTRACT_DESCRIPTORS);
  for (const char* package : kPackages) {
    const std::string path = absl::StrCat("proto/lint/", package, ".golden.txt");
    const std::string rendered = Render(contract.Package(package));
    const std::string golden = ReadFile(path);
    const std::vector<std::string> complaints = CheckRemoved(golden, contract.Package(package));
    ASSERT_THAT(complaints, IsEmpty()) << absl::StrJoin(complaints, "\n");
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      std::ofstream(path) << rendered;
      continue;
    }
    EXPECT_EQ(Difference(golden, rendered), "")
        << "The contract's wire format differs from " << path << ".\n"
        << "If the change is intended and compatible with other versions of shims and hosts, run\n"
        << "  UPDATE_GOLDEN=1 build/release/tests/contract_lint_test\n"
        << "in the repository root and commit the changed file together with the .proto files.";
  }
}

// The rules themselves, on files parsed by protoc like the contract.
class RulesTest : public ::testing::Test {
 protected:
  const FileDescriptor* Parse(const std::string& text, const std::string& name = "a/v1/a.proto") {
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(::testing::TempDir()) /
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() /
                            std::to_string(pools_.size());
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
    const std::string out = folder / "descriptors";
    const std::string command =
        absl::StrCat(OUTBOARD_PROTOC, " -I ", folder.string(), " --include_source_info",
                     " --descriptor_set_out=", out, " ", (folder / name).string());
    if (std::system(command.c_str()) != 0) return nullptr;
    FileDescriptorSet set;
    EXPECT_TRUE(set.ParseFromString(ReadFile(out)));
    fs::remove_all(folder);
    pools_.push_back(std::make_unique<DescriptorPool>());
    return pools_.back()->BuildFile(set.file(0));
  }
  std::vector<std::string> Check(const std::string& body) {
    const FileDescriptor* file = Parse("syntax = \"proto3\"; package a.v1;\n" + body);
    return file == nullptr ? std::vector<std::string>{"does not parse"} : CheckFile(*file);
  }

 private:
  std::vector<std::unique_ptr<DescriptorPool>> pools_;
};

TEST_F(RulesTest, NothingToSayOfAFileInOrder) {
  EXPECT_THAT(Check(R"(
    // Serves.
    service AService {
      // Does.
      rpc Do(DoRequest) returns (stream DoResponse);
    }
    // Asks.
    message DoRequest {
      // How long.
      int64 wait_micros = 1;
      // A map.
      map<string, string> labels = 2;
    }
    // Answers.
    message DoResponse {}
    // Kinds.
    enum Kind {
      // Never sent.
      KIND_UNSPECIFIED = 0;
    })"),
              IsEmpty());
}

TEST_F(RulesTest, MissingComments) {
  EXPECT_THAT(
      Check(R"(
    message M {
      int64 x = 1;
      oneof which {
        // Commented.
        int64 y = 2;
      }
      enum E {
        E_UNSPECIFIED = 0;
      }
    })"),
      ElementsAre(EndsWith("a.proto:3: a.v1.M: has no comment"),
                  EndsWith("a.v1.M.x: has no comment"), EndsWith("a.v1.M.which: has no comment"),
                  EndsWith("a.v1.M.E: has no comment"), EndsWith("E_UNSPECIFIED: has no comment")));
}

TEST_F(RulesTest, ServicesAndTheirMessages) {
  EXPECT_THAT(
      Check(R"(
    // Serves.
    service A {
      rpc Do(Empty) returns (Empty);
    }
    // Nothing.
    message Empty {})"),
      ElementsAre(HasSubstr("is not named …Service"), HasSubstr("a.v1.A.Do: has no comment"),
                  HasSubstr("takes Empty, not DoRequest"),
                  HasSubstr("returns Empty, not DoResponse")));
}

TEST_F(RulesTest, ZeroOfAnEnumAndUnits) {
  EXPECT_THAT(Check(R"(
    // M.
    message M {
      // Time.
      int64 timeout_ms = 1;
      // Time.
      int64 wait_millis = 2;
      // Time.
      uint32 wait_micros = 3;
      // Thousandths of a core.
      int64 cpu_millis = 4;
    }
    // E.
    enum E {
      // One.
      E_ONE = 0;
    })"),
              ElementsAre(HasSubstr("a.v1.M.timeout_ms: is not in _micros"),
                          HasSubstr("a.v1.M.wait_millis: is not in _micros"),
                          HasSubstr("a.v1.M.wait_micros: is not an int64"),
                          HasSubstr("is zero and is not named …_UNSPECIFIED")));
}

TEST_F(RulesTest, ShapesAreNotStatedInWords) {
  EXPECT_THAT(Check(R"(
    // M.
    message M {
      // OPTIONAL. If this is set, no other
      // field is set.
      int64 x = 1;
      // Names it. Empty: all.
      repeated string names = 2;
    })"),
              ElementsAre(HasSubstr("M.x: says \"no other field is set\": use a oneof"),
                          HasSubstr("M.names: says \"empty: all\"")));
}

TEST_F(RulesTest, ValuesCarryTheNameOfTheirEnum) {
  EXPECT_THAT(Check(R"(
    // K.
    enum KindOfThing {
      // Never sent.
      KIND_OF_THING_UNSPECIFIED = 0;
      // Right.
      KIND_OF_THING_BIG = 1;
      // Wrong.
      SMALL = 2;
    })"),
              ElementsAre(HasSubstr("SMALL: does not begin with KIND_OF_THING_")));
}

TEST_F(RulesTest, FolderAndVersion) {
  EXPECT_THAT(CheckFile(*Parse("syntax = \"proto3\"; package a.v1;", "b/v1/a.proto")),
              ElementsAre(HasSubstr("is not the folder")));
  EXPECT_THAT(CheckFile(*Parse("syntax = \"proto3\"; package a;", "a/a.proto")),
              ElementsAre(HasSubstr("has no version")));
}

TEST_F(RulesTest, RemovedElementsMustBeReserved) {
  const std::string before = Render({Parse(R"(syntax = "proto3"; package a.v1;
    message M { int64 x = 1; int64 y = 2; } enum E { Z = 0; ONE = 1; })")});
  EXPECT_THAT(
      CheckRemoved(before, {Parse(R"(syntax = "proto3"; package a.v1;
    message M { int64 y = 2; } enum E { Z = 0; })")}),
      ElementsAre(HasSubstr("a.v1.M: x = 1 is gone"), HasSubstr("a.v1.E: ONE = 1 is gone")));
  EXPECT_THAT(CheckRemoved(before, {Parse(R"(syntax = "proto3"; package a.v1;
    message M { reserved 1; reserved "x"; int64 y = 2; } enum E { reserved 1; reserved "ONE"; Z = 0; })")}),
              IsEmpty());
}

TEST_F(RulesTest, RenderingShowsWhatTheWireDependsOn) {
  const std::string text = Render({Parse(R"(syntax = "proto3"; package a.v1;
    message M { optional int64 x = 1; repeated M all = 2; map<string, M> by_name = 3; oneof o { bool b = 4; } reserved 9 to 11; })")});
  EXPECT_EQ(text,
            "file a/v1/a.proto proto3\nmessage a.v1.M\nfield a.v1.M x 1 optional int64\n"
            "field a.v1.M all 2 repeated a.v1.M\nfield a.v1.M by_name 3 map<string,a.v1.M>\n"
            "field a.v1.M b 4 bool oneof o\nreserved a.v1.M 9-11\n");
  EXPECT_EQ(Difference("a\nb\n", "a\nc\n"), "- b\n+ c\n");
  EXPECT_EQ(Difference("a\nb\n", "b\na\n"), "only the order of elements differs\n");
}

}  // namespace
}  // namespace outboard::lint
