#include "shim/kube/credentials.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace outboard::kube {
namespace {

// Whether the private key belongs to the certificate. While two files are replaced one after the
// other, a reader can see the new certificate with the old key; such a pair must not be used.
bool PairMatches(const std::string& certificate_pem, const std::string& key_pem) {
  BIO* cert_bio = BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size()));
  BIO* key_bio = BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size()));
  X509* cert = PEM_read_bio_X509(cert_bio, nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  const bool matches = cert != nullptr && key != nullptr && X509_check_private_key(cert, key) == 1;
  X509_free(cert);
  EVP_PKEY_free(key);
  BIO_free(cert_bio);
  BIO_free(key_bio);
  return matches;
}

class StaticCredentials : public CredentialSource {
 public:
  explicit StaticCredentials(StaticCredentialOptions options)
      : options_(std::move(options)),
        token_file_(options_.token_file, options_.token_period),
        certificate_file_(options_.client_certificate_file, options_.certificate_period),
        key_file_(options_.client_key_file, options_.certificate_period) {}

  absl::StatusOr<CredentialsPtr> Get(absl::Time now) override {
    Credentials fresh;
    fresh.bearer_token = options_.token;
    if (!options_.token_file.empty()) {
      auto token = token_file_.Get(now);
      if (!token.ok()) return token.status();
      fresh.bearer_token = std::string(absl::StripAsciiWhitespace(*token));
    }
    fresh.client_certificate_pem = options_.client_certificate_pem;
    if (!options_.client_certificate_file.empty()) {
      auto pem = certificate_file_.Get(now);
      if (!pem.ok()) return pem.status();
      fresh.client_certificate_pem = *std::move(pem);
    }
    fresh.client_key_pem = options_.client_key_pem;
    if (!options_.client_key_file.empty()) {
      auto pem = key_file_.Get(now);
      if (!pem.ok()) return pem.status();
      fresh.client_key_pem = *std::move(pem);
    }
    return Keep(std::move(fresh));
  }

  void Rejected(const CredentialsPtr& used, absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    // A rejection of an older token does not concern its replacement.
    if (used != current_) return;
    token_file_.Invalidate();
    certificate_file_.Invalidate();
    key_file_.Invalidate();
  }

 private:
  absl::StatusOr<CredentialsPtr> Keep(Credentials fresh) {
    absl::MutexLock lock(&mutex_);
    const bool same_pair = current_ != nullptr &&
                           current_->client_certificate_pem == fresh.client_certificate_pem &&
                           current_->client_key_pem == fresh.client_key_pem;
    if (!same_pair && !fresh.client_certificate_pem.empty() &&
        !PairMatches(fresh.client_certificate_pem, fresh.client_key_pem)) {
      if (current_ == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "client certificate ", options_.client_certificate_file, " and key ",
            options_.client_key_file, " are not a matching pair of PEM certificate and key"));
      }
      fresh.client_certificate_pem = current_->client_certificate_pem;
      fresh.client_key_pem = current_->client_key_pem;
      certificate_file_.Invalidate();
      key_file_.Invalidate();
    }
    if (current_ == nullptr || current_->bearer_token != fresh.bearer_token ||
        current_->client_certificate_pem != fresh.client_certificate_pem ||
        current_->client_key_pem != fresh.client_key_pem) {
      current_ = std::make_shared<const Credentials>(std::move(fresh));
    }
    return current_;
  }

  const StaticCredentialOptions options_;
  ReloadingFile token_file_;
  ReloadingFile certificate_file_;
  ReloadingFile key_file_;
  absl::Mutex mutex_;
  CredentialsPtr current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

ReloadingFile::ReloadingFile(std::string path, absl::Duration period)
    : path_(std::move(path)), period_(period) {}

absl::StatusOr<std::string> ReloadingFile::Get(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (now - read_at_ < period_) return content_;
  errno = 0;
  std::ifstream in(path_, std::ios::binary);
  // Reading a directory fails, which an iterator reports by an exception and a stream in errno.
  std::ostringstream text;
  if (in) text << in.rdbuf();
  std::string content = text.str();
  if (!content.empty()) {
    content_ = std::move(content);
    read_at_ = now;
    return content_;
  }
  if (!content_.empty()) {
    // Reread soon, but not at every request.
    read_at_ = now - period_ + std::min(period_, absl::Seconds(1));
    return content_;
  }
  if (!in || errno != 0)
    return absl::NotFoundError(absl::StrCat(path_, ": ", std::strerror(errno)));
  return absl::InvalidArgumentError(absl::StrCat(path_, ": the file is empty"));
}

void ReloadingFile::Invalidate() {
  absl::MutexLock lock(&mutex_);
  read_at_ = absl::InfinitePast();
}

std::shared_ptr<CredentialSource> MakeStaticCredentials(StaticCredentialOptions options) {
  return std::make_shared<StaticCredentials>(std::move(options));
}

}  // namespace outboard::kube
