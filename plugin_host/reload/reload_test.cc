// Directories with real objects, and their instances, as a shim sees them.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "outboard/handshake/v1/handshake.grpc.pb.h"
#include "outboard/v1beta1/cluster_state.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "plugin_host/reload/directory_watch.h"
#include "plugin_host/reload/install.h"
#include "plugin_host/reload/instances.h"
#include "plugin_host/reload/plugin_set.h"
#include "plugin_host/sdk/shared_object.h"

namespace outboard::reload {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Object(const std::string& name) { return absl::StrCat(OBJECTS, name, ".so"); }

absl::Status TakeAll(const sdk::PluginRegistry& all, sdk::PluginRegistry* chosen) {
  for (const auto& [name, descriptor] : all.descriptors()) {
    if (absl::Status added = chosen->Add(descriptor); !added.ok()) return added;
  }
  return absl::OkStatus();
}

// How many copies of objects this process has mapped, each with its memfd's name.
int MappedObjects() {
  const std::string maps = ReadFile("/proc/self/maps").value();
  int count = 0;
  for (absl::string_view line : absl::StrSplit(maps, '\n')) {
    // The first mapping of each begins at offset 0.
    if (absl::StrContains(line, "/memfd:") && absl::StrContains(line, " 00000000 ")) ++count;
  }
  return count;
}

class ReloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(::testing::TempDir(), "reload-", getpid());
    fs::remove_all(directory_);
    fs::create_directory(directory_);
    sdk::PluginDescriptor builtin;
    builtin.name = "NodeName";
    builtin.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
    builtin.args_schema = "built in";
    builtin.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
      return absl::UnimplementedError("not in this test");
    };
    ASSERT_TRUE(builtin_.Add(builtin).ok());
  }
  void TearDown() override { fs::remove_all(directory_); }

  void Put(const std::string& object, const std::string& name) {
    fs::copy_file(Object(object), absl::StrCat(directory_, "/", name),
                  fs::copy_options::overwrite_existing);
  }
  void WriteManifest(const std::vector<std::string>& names) {
    Manifest manifest;
    for (const std::string& name : names)
      manifest[name] = Sha256(ReadFile(absl::StrCat(directory_, "/", name)).value());
    ASSERT_TRUE(
        WriteFileAtomically(absl::StrCat(directory_, "/", kManifestName), ManifestText(manifest))
            .ok());
  }
  absl::StatusOr<std::unique_ptr<PluginSet>> Load(const PluginSet* previous = nullptr) {
    auto content = ReadDirectory(directory_);
    if (!content.ok()) return content.status();
    return PluginSet::Load(builtin_, *content, TakeAll, previous);
  }
  std::string WhyNot() { return std::string(Load().status().message()); }
  static std::string Build(const PluginSet& set, const std::string& plugin = "Labelled") {
    const sdk::PluginDescriptor* const found = set.registry().Find(plugin);
    return found == nullptr ? "" : found->args_schema;
  }

  std::string directory_;
  sdk::PluginRegistry builtin_;
};

TEST_F(ReloadTest, LoadsWhatTheManifestNamesBesideTheBuiltInPlugins) {
  Put("good", "labelled.so");
  WriteManifest({"labelled.so"});
  const auto set = Load();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(Build(**set), "node(s) had no label good");
  EXPECT_EQ(Build(**set, "NodeName"), "built in");
  EXPECT_THAT((*set)->from_objects(), ElementsAre("Labelled"));
  EXPECT_THAT((*set)->description(), HasSubstr("labelled.so@"));
  EXPECT_THAT((*set)->digest(), SizeIs(16));
}

TEST_F(ReloadTest, AnEmptyDirectoryIsTheBuiltInPlugins) {
  const auto set = Load();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT((*set)->registry().descriptors(), SizeIs(1));
  EXPECT_EQ((*set)->digest(), "");
}

TEST_F(ReloadTest, AnObjectTakesABuiltInPluginsPlace) {
  Put("twin", "twin.so");
  WriteManifest({"twin.so"});
  const auto set = Load();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(Build(**set, "NodeName"), "node(s) had no label better");
}

TEST_F(ReloadTest, RefusesWithFileAndReason) {
  Put("good", "labelled.so");
  EXPECT_EQ(WhyNot(), "labelled.so: it is not in SHA256SUMS, and what is not there is not loaded");
  WriteManifest({"labelled.so"});
  Put("better", "labelled.so");
  EXPECT_THAT(WhyNot(), HasSubstr("labelled.so: its sha256 is "));
  WriteManifest({"labelled.so"});
  EXPECT_EQ(WhyNot(), "");

  Put("stranger", "stranger.so");
  WriteManifest({"labelled.so", "stranger.so"});
  EXPECT_EQ(
      WhyNot(),
      "stranger.so: it was built for abi=999, this host is abi=1; build it against this host's "
      "package");
  Put("nameless", "stranger.so");
  WriteManifest({"labelled.so", "stranger.so"});
  EXPECT_THAT(WhyNot(), HasSubstr("stranger.so: it does not declare its ABI"));
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/stranger.so", "text").ok());
  WriteManifest({"labelled.so", "stranger.so"});
  EXPECT_EQ(WhyNot(), "stranger.so: it is not a shared object");
  Put("good", "stranger.so");
  WriteManifest({"labelled.so", "stranger.so"});
  EXPECT_EQ(WhyNot(), "stranger.so: two plugins are named Labelled");
  fs::remove(directory_ + "/stranger.so");
  EXPECT_THAT(WhyNot(), HasSubstr("stranger.so: SHA256SUMS names it: cannot read "));
  EXPECT_EQ(MappedObjects(), 0);
}

TEST_F(ReloadTest, RejectsWorldWritableFiles) {
  Put("good", "labelled.so");
  WriteManifest({"labelled.so"});
  fs::permissions(directory_ + "/labelled.so", fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(WhyNot(), HasSubstr("labelled.so: all users may write to it"));
  fs::permissions(directory_ + "/labelled.so", fs::perms::others_write, fs::perm_options::remove);
  fs::permissions(directory_ + "/SHA256SUMS", fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(WhyNot(), HasSubstr("SHA256SUMS: all users may write to it"));
}

// Every prefix of an object, and every byte of its headers inverted: an error, not a crash.
TEST_F(ReloadTest, ABrokenObjectIsOnlyRejected) {
  const std::string whole = ReadFile(Object("good")).value();
  EXPECT_EQ(AbiOf(whole).value(), OUTBOARD_ABI);
  for (size_t size = 0; size < 4096; ++size)
    EXPECT_FALSE(AbiOf(whole.substr(0, size)).ok()) << size;
  for (size_t i = 0; i < 64; ++i) {
    for (const char change : {'\x01', '\x80', '\xff'}) {
      std::string broken = whole;
      broken[i] = static_cast<char>(broken[i] ^ change);
      const auto abi = AbiOf(broken);
      if (abi.ok()) {
        EXPECT_LE(abi->size(), 512u);
      }
    }
  }
}

TEST_F(ReloadTest, TwoVersionsOfOneObjectAtOnceAndBothAreUnloaded) {
  Put("good", "labelled.so");
  WriteManifest({"labelled.so"});
  auto first = Load();
  ASSERT_TRUE(first.ok()) << first.status();
  Put("better", "labelled.so");  // while the first is loaded
  WriteManifest({"labelled.so"});
  auto second = Load(first->get());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Build(**first), "node(s) had no label good");
  EXPECT_EQ(Build(**second), "node(s) had no label better");
  EXPECT_EQ(MappedObjects(), 2);
  // An identical object is not loaded again.
  auto third = Load(second->get());
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(MappedObjects(), 2);
  *first = nullptr;
  EXPECT_EQ(MappedObjects(), 1);
  *second = nullptr;
  EXPECT_EQ(Build(**third), "node(s) had no label better");
  *third = nullptr;
  EXPECT_EQ(MappedObjects(), 0);
}

TEST_F(ReloadTest, InstallAndRemove) {
  const auto installed = Install(Object("good"), directory_, builtin_);
  ASSERT_TRUE(installed.ok()) << installed.status();
  EXPECT_THAT(installed->plugins, ElementsAre("Labelled"));
  const auto content = ReadDirectory(directory_);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->Digest(), installed->set_digest);

  const auto refused = Install(Object("stranger"), directory_, builtin_);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("stranger.so: it was built for"));
  EXPECT_EQ(ReadDirectory(directory_).value().Digest(), installed->set_digest);
  EXPECT_FALSE(Install("/etc/passwd", directory_, builtin_).ok());

  EXPECT_FALSE(Remove("better.so", directory_, builtin_).ok());
  const auto removed = Remove("good.so", directory_, builtin_);
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->set_digest, "");
  EXPECT_THAT(ReadDirectory(directory_).value().objects, IsEmpty());
  EXPECT_EQ(MappedObjects(), 0);
}

TEST_F(ReloadTest, TheWatchSeesChanges) {
  auto watch = DirectoryWatch::Open(directory_);
  ASSERT_TRUE(watch.ok()) << watch.status();
  char byte;
  EXPECT_EQ(read((*watch)->fd(), &byte, 0), -1);  // no event yet, or no room for one
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/x", "y").ok());
  char events[4096];
  EXPECT_GT(read((*watch)->fd(), events, sizeof(events)), 0);
  EXPECT_FALSE(DirectoryWatch::Open(directory_ + "/nothing").ok());
}

// Instances with real engines; `Shim` is a minimal shim.
class InstancesTest : public ReloadTest {
 protected:
  struct Shim {
    std::shared_ptr<grpc::Channel> channel;
    handshake::v1::HandshakeResponse identity;
    v1beta1::GetHostInfoResponse info;
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientReaderWriter<v1beta1::SyncRequest, v1beta1::SyncResponse>> stream;
  };
  void SetUp() override {
    ReloadTest::SetUp();
    sockets_ = directory_ + "-sockets";
    fs::create_directory(sockets_);
    Instances::Options options;
    options.listen = absl::StrCat("unix:", sockets_, "/main@{instance}.sock");
    options.directory = directory_;
    options.version = "0.0.1";
    options.program_digest = "abcd";
    options.choose = TakeAll;
    instances_ = std::make_unique<Instances>(options, &builtin_);
  }
  void TearDown() override {
    instances_ = nullptr;
    EXPECT_EQ(MappedObjects(), 0);
    fs::remove_all(sockets_);
    ReloadTest::TearDown();
  }
  int Sockets() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(sockets_), fs::directory_iterator()));
  }
  static void Deadline(grpc::ClientContext* context) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  }
  static std::string Warning(const Shim& shim) {
    grpc::ClientContext context;
    Deadline(&context);
    v1beta1::ProbeResponse response;
    const grpc::Status status = v1beta1::PluginHostService::NewStub(shim.channel)
                                    ->Probe(&context, v1beta1::ProbeRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.warning();
  }
  Shim Meet(const std::string& id) {
    Shim shim;
    shim.channel = grpc::CreateChannel(absl::StrCat("unix:", sockets_, "/main@", id, ".sock"),
                                       grpc::InsecureChannelCredentials());
    grpc::ClientContext context;
    Deadline(&context);
    const grpc::Status status =
        handshake::v1::HandshakeService::NewStub(shim.channel)
            ->Handshake(&context, handshake::v1::HandshakeRequest(), &shim.identity);
    EXPECT_TRUE(status.ok()) << status.error_message();
    grpc::ClientContext second;
    Deadline(&second);
    const grpc::Status answered =
        v1beta1::PluginHostService::NewStub(shim.channel)
            ->GetHostInfo(&second, v1beta1::GetHostInfoRequest(), &shim.info);
    EXPECT_TRUE(answered.ok()) << answered.error_message();
    return shim;
  }
  // Configures a profile with the object's plugin, and opens a Sync stream, up to the first answer.
  static void Connect(Shim* shim) {
    v1beta1::ConfigureRequest request;
    request.set_session_id("shim-1");
    request.set_instance(shim->identity.instance());
    v1beta1::ProfileConfig* profile = request.add_profiles();
    profile->set_name("default-scheduler");
    v1beta1::PointConfig* point = profile->add_points();
    point->set_extension_point(v1beta1::EXTENSION_POINT_FILTER);
    point->add_plugins("Labelled");
    v1beta1::ConfigureResponse response;
    grpc::ClientContext context;
    Deadline(&context);
    const grpc::Status status =
        v1beta1::PluginHostService::NewStub(shim->channel)->Configure(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.problems_size(), 0) << response.ShortDebugString();
    shim->context = std::make_unique<grpc::ClientContext>();
    Deadline(shim->context.get());
    shim->stream = v1beta1::ClusterStateService::NewStub(shim->channel)->Sync(shim->context.get());
    v1beta1::SyncRequest snapshot;
    snapshot.set_session_id("shim-1");
    snapshot.set_version(1);
    snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    ASSERT_TRUE(shim->stream->Write(snapshot));
    snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
    ASSERT_TRUE(shim->stream->Write(snapshot));
    v1beta1::SyncResponse answer;
    ASSERT_TRUE(shim->stream->Read(&answer));
  }
  // The object, in another build for each number: bytes after its sections have no meaning.
  void PutBuild(size_t number) {
    const std::string bytes = ReadFile(Object("good")).value() + std::string(number, 'x');
    ASSERT_TRUE(WriteFileAtomically(directory_ + "/good.so", bytes).ok());
    WriteManifest({"good.so"});
  }
  static std::string Build(const Shim& shim) {
    for (const auto& plugin : shim.info.plugins()) {
      if (plugin.name() == "Labelled") return plugin.args_schema();
    }
    return "";
  }
  // Calls Retire as the program does, with a clock that is ahead, until this many instances are
  // left.
  bool RetireTo(size_t left) {
    const absl::Time until = absl::Now() + absl::Seconds(30);
    while (instances_->ids().size() > left) {
      if (absl::Now() > until) return false;
      instances_->Retire(absl::Now());
      absl::SleepFor(absl::Milliseconds(20));
    }
    return true;
  }

  std::string sockets_;
  std::unique_ptr<Instances> instances_;
};

TEST_F(InstancesTest, AnotherSetIsAnotherInstanceAndTheOldOneLivesWhileItIsUsed) {
  ASSERT_TRUE(Install(Object("good"), directory_, builtin_).ok());
  ASSERT_TRUE(instances_->Refresh().value());
  EXPECT_FALSE(instances_->Refresh().value()) << "nothing has changed";
  Shim old = Meet(instances_->ids()[0]);
  Connect(&old);
  EXPECT_EQ(Build(old), "node(s) had no label good");

  fs::copy_file(Object("better"), directory_ + "/good.so", fs::copy_options::overwrite_existing);
  const auto refused = instances_->Refresh();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("good.so: its sha256 is"));
  EXPECT_THAT(instances_->ids(), SizeIs(1));
  instances_->SetWarning(refused.status().message());
  EXPECT_THAT(Warning(old), HasSubstr("good.so: its sha256 is"));
  instances_->SetWarning("");
  EXPECT_EQ(Warning(old), "");
  WriteManifest({"good.so"});
  ASSERT_TRUE(instances_->Refresh().value());
  ASSERT_THAT(instances_->ids(), SizeIs(2));
  Shim fresh = Meet(instances_->ids()[1]);
  EXPECT_EQ(Build(fresh), "node(s) had no label better");
  EXPECT_NE(fresh.identity.instance(), old.identity.instance());
  EXPECT_NE(fresh.identity.build_digest(), old.identity.build_digest());
  EXPECT_TRUE(absl::StartsWith(fresh.identity.build_digest(), "abcd+"));
  EXPECT_GT(fresh.identity.started_unix_micros(), old.identity.started_unix_micros());
  EXPECT_THAT(fresh.identity.build(), HasSubstr("0.0.1 with good.so@"));
  EXPECT_EQ(Sockets(), 2);

  // The old instance stays as long as a shim is connected to it.
  instances_->Retire(absl::Now());
  instances_->Retire(absl::Now() + absl::Hours(1));
  EXPECT_THAT(instances_->ids(), SizeIs(2));
  EXPECT_EQ(MappedObjects(), 2);
  Connect(&fresh);
  old.context->TryCancel();
  old = Shim();
  ASSERT_TRUE(RetireTo(1));
  EXPECT_EQ(MappedObjects(), 1);
  EXPECT_EQ(Sockets(), 1);
  // The last one never ends.
  fresh.context->TryCancel();
  fresh = Shim();
  instances_->Retire(absl::Now() + absl::Hours(1));
  EXPECT_THAT(instances_->ids(), SizeIs(1));
}

TEST_F(InstancesTest, OfManyTheOldestDrains) {
  std::vector<Shim> shims;
  for (size_t i = 0; i <= Instances::kMaxWarm; ++i) {
    PutBuild(i);
    ASSERT_TRUE(instances_->Refresh().value());
    shims.push_back(Meet(instances_->ids().back()));
    Connect(&shims.back());
  }
  ASSERT_TRUE(RetireTo(Instances::kMaxWarm));
  v1beta1::SyncResponse answer;
  while (shims[0].stream->Read(&answer)) {
  }  // Its stream has ended.
  EXPECT_EQ(MappedObjects(), static_cast<int>(Instances::kMaxWarm));
}

TEST_F(InstancesTest, WhereNoneEndsNoFurtherOneIsStarted) {
  for (size_t i = 0; i < Instances::kMaxInstances; ++i) {
    PutBuild(i);
    ASSERT_TRUE(instances_->Refresh().value());
  }
  PutBuild(Instances::kMaxInstances);
  const auto refused = instances_->Refresh();
  EXPECT_EQ(refused.status().message(), "8 instances have not ended; restart this host");
  // The oldest has drained: there is room again.
  ASSERT_TRUE(RetireTo(1));
  EXPECT_TRUE(instances_->Refresh().value());
}

TEST_F(InstancesTest, DrainReachesAllSessions) {
  ASSERT_TRUE(Install(Object("good"), directory_, builtin_).ok());
  ASSERT_TRUE(instances_->Refresh().value());
  ASSERT_TRUE(Remove("good.so", directory_, builtin_).ok());
  ASSERT_TRUE(instances_->Refresh().value());
  EXPECT_TRUE(instances_->Drain(absl::Seconds(10)));
}

}  // namespace
}  // namespace outboard::reload
