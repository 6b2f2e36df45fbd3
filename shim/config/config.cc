#include "shim/config/config.h"

#include <openssl/sha.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "shim/config/documents.h"
#include "shim/config/yaml_reader.h"

namespace outboard::config {
namespace {

constexpr size_t kMaxFile = 1 << 20;
constexpr int kMaxDocuments = 16;
constexpr char kSchedulerVersion[] = "kubescheduler.config.k8s.io/v1";
constexpr char kShimVersion[] = "config.outboard.dev/v1alpha1";
constexpr char kSchedulerKind[] = "KubeSchedulerConfiguration";
constexpr char kShimKind[] = "ShimConfiguration";

struct PointEntry {
  v1beta1::ExtensionPoint point;
  const char* name;
};
constexpr PointEntry kPoints[] = {
    {v1beta1::EXTENSION_POINT_PRE_ENQUEUE, "preEnqueue"},
    {v1beta1::EXTENSION_POINT_QUEUE_SORT, "queueSort"},
    {v1beta1::EXTENSION_POINT_PRE_FILTER, "preFilter"},
    {v1beta1::EXTENSION_POINT_FILTER, "filter"},
    {v1beta1::EXTENSION_POINT_POST_FILTER, "postFilter"},
    {v1beta1::EXTENSION_POINT_PRE_SCORE, "preScore"},
    {v1beta1::EXTENSION_POINT_SCORE, "score"},
    {v1beta1::EXTENSION_POINT_RESERVE, "reserve"},
    {v1beta1::EXTENSION_POINT_PERMIT, "permit"},
    {v1beta1::EXTENSION_POINT_PRE_BIND, "preBind"},
    {v1beta1::EXTENSION_POINT_BIND, "bind"},
    {v1beta1::EXTENSION_POINT_POST_BIND, "postBind"},
    {v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE, "placementGenerate"},
    {v1beta1::EXTENSION_POINT_PLACEMENT_SCORE, "placementScore"},
    {v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER, "podGroupPostFilter"},
};

// The fields that `read` asks a document for.
template <typename Read>
std::vector<std::string> FieldsOf(Read read) {
  Problems ignored("");
  MapReader reader(YAML::Node(YAML::NodeType::Map), "", &ignored);
  read(reader);
  return reader.asked();
}

const std::vector<std::string>& SchedulerFields() {
  static const auto& fields = *new std::vector<std::string>(FieldsOf([](MapReader& reader) {
    SchedulerConfig config;
    std::vector<std::string> warnings;
    ReadSchedulerConfig(reader, &config, &warnings);
  }));
  return fields;
}

const std::vector<std::string>& ShimFields() {
  static const auto& fields = *new std::vector<std::string>(FieldsOf([](MapReader& reader) {
    ShimConfig config;
    std::vector<std::string> warnings;
    ReadShimConfig(reader, &config, &warnings);
  }));
  return fields;
}

// The hint about a field of the other document.
std::function<std::string(const std::string&)> BelongsTo(const char* kind,
                                                         const std::vector<std::string>& fields) {
  return [kind, &fields](const std::string& key) {
    return std::find(fields.begin(), fields.end(), key) == fields.end()
               ? ""
               : absl::StrCat("; it belongs into the document of kind ", kind);
  };
}

// Ignores all events of a document.
class NullHandler : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Whether the text has at most kMaxDocuments. For a stray comma at the top level, yaml-cpp 0.7
// produces empty documents without end; LoadAll would keep them all.
bool FewDocuments(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  NullHandler handler;
  int documents = 0;
  while (parser.HandleNextDocument(handler)) {
    if (++documents > kMaxDocuments) return false;
  }
  return true;
}

// yaml-cpp's message, or a clearer one where people often err.
std::string WordsFor(const YAML::Exception& error, absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const auto line = static_cast<size_t>(std::max(error.mark.line, 0));
  if (line < lines.size()) {
    const size_t indentation = lines[line].find_first_not_of(" \t");
    if (lines[line].substr(0, indentation).find('\t') != absl::string_view::npos)
      return "a tab in the indentation; YAML allows only spaces there";
  }
  if (error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "a [ is not closed";
  if (error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW) return "a { is not closed";
  return error.msg;
}

class FileReader {
 public:
  explicit FileReader(Config* config) : config_(config), problems_(config->file) {}

  absl::Status Read(absl::string_view text) {
    std::vector<YAML::Node> documents;
    // yaml-cpp reports errors by exceptions; catch them here.
    try {
      if (!FewDocuments(std::string(text))) {
        problems_.Add(Location(), "invalid YAML, or more than 16 documents");
        return problems_.ToStatus();
      }
      documents = YAML::LoadAll(std::string(text));
      for (const YAML::Node& document : documents) ReadDocument(document);
    } catch (const YAML::Exception& error) {
      Location where;
      if (!error.mark.is_null()) where = Location{error.mark.line + 1, error.mark.column + 1, ""};
      problems_.Add(where, WordsFor(error, text));
    } catch (const std::exception& error) {
      problems_.Add(Location(), absl::StrCat("cannot be read: ", error.what()));
    }
    if (!has_scheduler_) config_->scheduler = DefaultSchedulerConfig();
    CheckExtenderProfile();
    CheckExtenderSchedulers();
    return problems_.ToStatus();
  }

 private:
  void ReadDocument(const YAML::Node& document) {
    if (document.IsNull()) return;
    MapReader reader(document, "", &problems_);
    if (!document.IsMap()) return;
    std::string version, kind;
    reader.String("apiVersion", &version);
    reader.String("kind", &kind);
    if (kind == kSchedulerKind) {
      if (!CheckVersion(reader, version, kSchedulerVersion) || !CheckOnce(reader, &has_scheduler_))
        return;
      reader.SetHint(BelongsTo(kShimKind, ShimFields()));
      ReadSchedulerConfig(reader, &config_->scheduler, &config_->warnings);
    } else if (kind == kShimKind) {
      if (!CheckVersion(reader, version, kShimVersion) || !CheckOnce(reader, &has_shim_)) return;
      reader.SetHint(BelongsTo(kSchedulerKind, SchedulerFields()));
      ReadShimConfig(reader, &config_->shim, &config_->warnings);
    } else {
      problems_.Add(reader.where("kind"),
                    absl::StrCat("expected ", kSchedulerKind, " or ", kShimKind, ", got ",
                                 kind.empty() ? "nothing" : absl::StrCat("\"", kind, "\""),
                                 DidYouMean(kind, {kSchedulerKind, kShimKind})));
    }
  }

  bool CheckVersion(MapReader& reader, const std::string& version, absl::string_view wanted) {
    if (version == wanted) return true;
    const bool older = absl::StartsWith(version, "kubescheduler.config.k8s.io/");
    problems_.Add(reader.where("apiVersion"),
                  absl::StrCat("expected ", wanted, ", got ",
                               version.empty() ? "nothing" : absl::StrCat("\"", version, "\""),
                               older ? ", which kube-scheduler has removed" : ""));
    return false;
  }

  // The two documents may be in either order.
  void CheckExtenderProfile() {
    const auto& extender = config_->shim.extender;
    if (!extender.has_value() || extender->profile.empty()) return;
    std::vector<std::string> names;
    for (const ProfileSpec& profile : config_->scheduler.profiles) {
      if (profile.scheduler_name == extender->profile) return;
      names.push_back(absl::StrCat("\"", profile.scheduler_name, "\""));
    }
    problems_.Add(extender->where,
                  absl::StrCat("no profile has the schedulerName \"", extender->profile,
                               "\"; existing names: ", absl::StrJoin(names, ", ")));
  }

  // A pod belongs to one scheduler: the shim's queue takes the pods of each profile's name.
  void CheckExtenderSchedulers() {
    auto& extender = config_->shim.extender;
    if (!extender.has_value()) return;
    for (const ProfileSpec& profile : config_->scheduler.profiles) {
      if (!absl::c_linear_search(extender->scheduler_names, profile.scheduler_name)) continue;
      if (extender->names_at.has_value()) {
        problems_.Add(
            *extender->names_at,
            absl::StrCat("\"", profile.scheduler_name,
                         "\" is the schedulerName of a profile: this scheduler places its "
                         "pods itself"));
      } else {
        std::erase(extender->scheduler_names, profile.scheduler_name);
      }
    }
  }

  bool CheckOnce(MapReader& reader, bool* seen) {
    if (*seen) problems_.Add(reader.where("kind"), "duplicate document of this kind");
    return !std::exchange(*seen, true);
  }

  Config* config_;
  Problems problems_;
  bool has_scheduler_ = false;
  bool has_shim_ = false;
};

std::string Sha256(absl::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

absl::Status ParseInto(absl::string_view text, std::string file, Config* out) {
  out->file = std::move(file);
  out->sha256 = Sha256(text);
  if (text.size() > kMaxFile)
    return absl::InvalidArgumentError(absl::StrCat(out->file, ": larger than 1 MiB"));
  return FileReader(out).Read(text);
}

}  // namespace

absl::string_view FailurePolicyName(FailurePolicy policy) {
  switch (policy) {
    case FailurePolicy::kFailClosed:
      return "FailClosed";
    case FailurePolicy::kFailOpen:
      return "FailOpen";
    case FailurePolicy::kUseLast:
      return "UseLast";
  }
  return "";
}

absl::Status ReadConfigFile(const std::string& path, Config* out) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return absl::NotFoundError(absl::StrCat(path, ": is a directory, not a file"));
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const std::string why = std::strerror(errno);
    return absl::NotFoundError(absl::StrCat(path, ": cannot be opened: ", why));
  }
  std::string text(kMaxFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof()))
    return absl::UnknownError(absl::StrCat(path, ": cannot be read"));
  text.resize(static_cast<size_t>(file.gcount()));
  return ParseInto(text, path, out);
}

absl::StatusOr<Config> LoadConfigFile(const std::string& path) {
  Config config;
  if (absl::Status read = ReadConfigFile(path, &config); !read.ok()) return read;
  return config;
}

absl::StatusOr<Config> ParseConfig(absl::string_view text, std::string file) {
  Config config;
  if (absl::Status status = ParseInto(text, std::move(file), &config); !status.ok()) return status;
  return config;
}

FailurePolicy PolicyFor(const ShimConfig& config, absl::string_view plugin,
                        v1beta1::ExtensionPoint point) {
  for (const FailurePolicyRule& rule : config.failure_policies) {
    if (rule.plugin == plugin && rule.point == point) return rule.policy;
  }
  // PreScore only prepares Score.
  if (point == v1beta1::EXTENSION_POINT_PRE_SCORE)
    return PolicyFor(config, plugin, v1beta1::EXTENSION_POINT_SCORE);
  return point == v1beta1::EXTENSION_POINT_SCORE || point == v1beta1::EXTENSION_POINT_POST_BIND
             ? FailurePolicy::kFailOpen
             : FailurePolicy::kFailClosed;
}

absl::string_view PointName(v1beta1::ExtensionPoint point) {
  for (const PointEntry& entry : kPoints) {
    if (entry.point == point) return entry.name;
  }
  return "";
}

std::optional<v1beta1::ExtensionPoint> PointByName(absl::string_view name) {
  for (const PointEntry& entry : kPoints) {
    if (entry.name == name) return entry.point;
  }
  return std::nullopt;
}

const std::vector<v1beta1::ExtensionPoint>& AllPoints() {
  static const auto& points = *[] {
    auto* all = new std::vector<v1beta1::ExtensionPoint>();
    for (const PointEntry& entry : kPoints) all->push_back(entry.point);
    return all;
  }();
  return points;
}

}  // namespace outboard::config
