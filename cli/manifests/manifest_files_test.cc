#include "cli/manifests/manifest_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outboard::manifests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kNode[] =
    "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {pods: 110}}\n";

std::string Pod(const std::string& name, const std::string& more = "") {
  return absl::StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
                      "}\nspec: {containers: [{name: c}]", more, "}\n");
}

class ManifestFilesTest : public ::testing::Test {
 protected:
  ManifestFilesTest() : directory_(::testing::TempDir() + "manifest_files_test/") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~ManifestFilesTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(directory_ + name).parent_path());
    std::ofstream(directory_ + name) << text;
    return directory_ + name;
  }
  Manifests Read(const std::vector<std::string>& cluster, const std::vector<std::string>& pods,
                 const std::string& input = "") {
    std::istringstream stream(input);
    return ReadManifestFiles({cluster, pods}, /*strict=*/false, &stream);
  }
  // The errors, without the test's folder.
  std::vector<std::string> Errors(const std::vector<std::string>& cluster,
                                  const std::vector<std::string>& pods = {},
                                  const std::string& input = "") {
    std::vector<std::string> errors = Read(cluster, pods, input).errors;
    for (std::string& error : errors) error = absl::StrReplaceAll(error, {{directory_, ""}});
    return errors;
  }

  const std::string directory_;
};

TEST_F(ManifestFilesTest, ReadsFilesOfADirectoryByName) {
  Write("all/b.yml", Pod("b"));
  Write("all/a.yaml", Pod("a"));
  Write(
      "all/c.json",
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},"spec":{"containers":[{"name":"c"}]}})");
  Write("all/comments.yaml", "# nothing yet\n");
  Write("all/notes.txt", "no manifest");
  Write("all/below/d.yaml", Pod("d"));
  Write("all/folder.yaml/e.yaml", Pod("e"));
  const Manifests manifests = Read({Write("n.yaml", kNode)}, {directory_ + "all"});
  EXPECT_THAT(manifests.errors, IsEmpty());
  EXPECT_THAT(manifests.pods, IsEmpty());
  ASSERT_THAT(manifests.pods_to_schedule, SizeIs(3));
  EXPECT_EQ(manifests.pods_to_schedule[0]->key(), "default/a");
  EXPECT_EQ(manifests.pods_to_schedule[1]->key(), "default/b");
  EXPECT_EQ(manifests.pods_to_schedule[2]->key(), "default/c");
}

TEST_F(ManifestFilesTest, NothingToReadIsAnError) {
  Write("none/a.txt", "");
  Write("comments/a.yaml", "# a\n---\n");
  Write("comments/b.yaml", "");
  EXPECT_THAT(
      Errors({directory_ + "none", directory_ + "comments", Write("empty.yaml", ""),
              Write("c.yaml", "# a comment\n---\n# and another\n"), "-"}),
      ElementsAre("none: a directory without *.yaml, *.yml or *.json",
                  "comments: no Kubernetes object in its 2 files", "empty.yaml: is empty",
                  "c.yaml: contains no Kubernetes object, only comments", "stdin: is empty"));
  EXPECT_THAT(Errors({Write("n.yaml", kNode)}, {Write("m.yaml", absl::StrCat(kNode)), "-"},
                     "{apiVersion: v1, kind: PodList, items: []}"),
              ElementsAre("m.yaml:3:18: metadata.name: Node n1 is already defined at n.yaml:3:18"));
}

TEST_F(ManifestFilesTest, ThereMustBeAPodToSchedule) {
  EXPECT_THAT(Errors({Write("n.yaml", kNode)}, {"-"}, "{apiVersion: v1, kind: PodList, items: []}"),
              ElementsAre("no Pod in --pods -"));
  EXPECT_THAT(Errors({Write("n.yaml", kNode)}), IsEmpty());
}

TEST_F(ManifestFilesTest, SaysTheReasonOfTheSystem) {
  const std::string secret = Write("secret.yaml", kNode);
  std::filesystem::create_symlink(directory_ + "loop.yaml", directory_ + "loop.yaml");
  EXPECT_THAT(
      Errors({directory_ + "none.yaml", directory_ + "n.yaml/a.yaml", directory_ + "loop.yaml"}),
      ElementsAre("none.yaml: No such file or directory",
                  "n.yaml/a.yaml: No such file or directory",
                  "loop.yaml: Too many levels of symbolic links"));
  EXPECT_EQ(ReadText(::testing::TempDir()).status().message(),
            ::testing::TempDir() + ": Is a directory");
  chmod(secret.c_str(), 0);
  if (std::ifstream(secret)) GTEST_SKIP() << "root may read all files";
  EXPECT_THAT(Errors({secret}), ElementsAre("secret.yaml: Permission denied"));
}

TEST_F(ManifestFilesTest, StandardInputIsOneOfThem) {
  const std::string mine = Write("mine.yaml", Pod("mine"));
  const Manifests manifests = Read({"-"}, {mine}, kNode);
  EXPECT_THAT(manifests.errors, IsEmpty());
  EXPECT_THAT(manifests.nodes, SizeIs(1));
  EXPECT_THAT(manifests.pods_to_schedule, SizeIs(1));
  EXPECT_THAT(Errors({"-"}, {"-"}, kNode),
              ElementsAre("-: standard input can be read only once; give it to --cluster or to "
                          "--pods"));
  EXPECT_THAT(Errors({"-"}, {mine}, "kind: Node\n"),
              ElementsAre("stdin:1:1: apiVersion: must not be empty; Node is in v1"));
}

TEST_F(ManifestFilesTest, NamesWhatIsNoText) {
  EXPECT_THAT(
      Errors({Write("a.yaml", std::string("kind: P\no\0d", 11)), Write("b.yaml", "\xff\xfek\0"),
              Write("c.yaml", "a: 1\nb: gr\xfcn\n"), Write("d.yaml", "\x1b[31mkind\x1b[0m: Pod"),
              Write("e.yaml", "<!DOCTYPE html>")}),
      ElementsAre("a.yaml:2:2: byte 0x00: is binary, not YAML or JSON",
                  "b.yaml:1:1: is UTF-16; save it as UTF-8", "c.yaml:2:6: byte 0xfc is not UTF-8",
                  "d.yaml:1:1: byte 0x1b: is binary, not YAML or JSON",
                  "e.yaml:1:1: is HTML or XML, not YAML or JSON"));
  // The mark of UTF-8 is none of the text.
  EXPECT_THAT(Errors({Write("n.yaml", absl::StrCat("\xef\xbb\xbf", kNode))}), IsEmpty());
  EXPECT_THAT(Errors({Write("n.json", "\xef\xbb\xbf{\"apiVersion\": 7}")}),
              ElementsAre("n.json:1:16: apiVersion: must be a string, not a number"));
}

TEST_F(ManifestFilesTest, AllMistakesOfAllFilesInOneRun) {
  const std::vector<std::string> errors =
      Errors({Write("a.yaml", "kind: Node\n---\n{a: [}\n---\nkind: Nod\n"), directory_ + "none"},
             {Write("b.yaml", Pod("A") + "---\n" + Pod("b", ", priority: x"))});
  EXPECT_THAT(
      errors,
      ElementsAre("none: No such file or directory",
                  "a.yaml:1:1: apiVersion: must not be empty; Node is in v1",
                  "a.yaml:3:6: this } closes nothing", "a.yaml:5:1: apiVersion: must not be empty",
                  "b.yaml:3:18: metadata.name: \"A\" must consist of lower case "
                  "alphanumeric characters, '-' or '.', and must start and end with an "
                  "alphanumeric character (a lowercase RFC 1123 subdomain)",
                  "b.yaml:9:43: spec.priority: must be an integer, not a string"));
  EXPECT_EQ(ToStatus({"a", "b"}).message(), "the manifests have errors:\na\nb");
  EXPECT_EQ(ToStatus({"a"}).message(), "a");
  EXPECT_TRUE(ToStatus({}).ok());
}

TEST_F(ManifestFilesTest, ClassesMayStandBehindTheirPods) {
  const std::string pods = Write("a.yaml", Pod("a", ", priorityClassName: high"));
  const std::string classes = Write("b.yaml",
                                    "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
                                    "metadata: {name: high}\nvalue: 7\n");
  for (const Manifests& manifests : {Read({classes}, {pods}), Read({}, {pods, classes})}) {
    EXPECT_THAT(manifests.errors, IsEmpty());
    ASSERT_THAT(manifests.pods_to_schedule, SizeIs(1));
    EXPECT_EQ(manifests.pods_to_schedule[0]->pod.priority(), 7);
  }
  // A class with a mistake is not missing.
  EXPECT_THAT(Errors({Write("b.yaml",
                            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
                            "metadata: {name: high}\nvalue: much\n")},
                     {pods}),
              ElementsAre("b.yaml:4:8: value: must be an integer, not a string"));
}

}  // namespace
}  // namespace outboard::manifests
