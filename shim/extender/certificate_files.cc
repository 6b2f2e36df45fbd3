#include "shim/extender/certificate_files.h"

#include <glog/logging.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace outboard::extender {
namespace {

constexpr absl::Duration kLookPeriod = absl::Seconds(1);

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;

void FreeStack(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, X509_free); }
using Chain = std::unique_ptr<STACK_OF(X509), Freed<FreeStack>>;

// What the files held when they were read.
struct Content {
  Certificate leaf;
  Chain chain;  // between the leaf and the authority
  Key key;
  Store clients;  // null: everybody is let in
  std::vector<Certificate> authorities;
};

absl::Status Unusable(const std::string& path, absl::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& path) {
  const Bio file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) return Unusable(path, "cannot be read");
  std::vector<Certificate> all;
  while (X509* one = PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr))
    all.emplace_back(one);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end || all.empty()) return Unusable(path, "holds no certificates in PEM");
  return all;
}

absl::StatusOr<Key> ReadKey(const std::string& path) {
  const Bio file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) return Unusable(path, "cannot be read");
  // By default OpenSSL would ask a person for the password.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  Key key(PEM_read_bio_PrivateKey(file.get(), nullptr, no_password, nullptr));
  if (key == nullptr) return Unusable(path, "holds no key in PEM that needs no password");
  return key;
}

absl::StatusOr<Content> Read(const CertificateFiles::Paths& paths) {
  Content content;
  absl::StatusOr<std::vector<Certificate>> own = ReadCertificates(paths.cert_file);
  if (!own.ok()) return own.status();
  content.chain.reset(sk_X509_new_null());
  content.leaf = std::move(own->front());
  for (size_t i = 1; i < own->size(); ++i) sk_X509_push(content.chain.get(), (*own)[i].release());
  absl::StatusOr<Key> key = ReadKey(paths.key_file);
  if (!key.ok()) return key.status();
  content.key = *std::move(key);
  if (X509_check_private_key(content.leaf.get(), content.key.get()) != 1)
    return Unusable(paths.key_file, absl::StrCat("is not the key of ", paths.cert_file));
  if (paths.client_ca_file.empty()) return content;
  absl::StatusOr<std::vector<Certificate>> authorities = ReadCertificates(paths.client_ca_file);
  if (!authorities.ok()) return authorities.status();
  content.authorities = *std::move(authorities);
  content.clients.reset(X509_STORE_new());
  for (const Certificate& authority : content.authorities)
    X509_STORE_add_cert(content.clients.get(), authority.get());
  return content;
}

// Tells one content of the files from the next.
std::vector<int64_t> StampOf(const CertificateFiles::Paths& paths) {
  std::vector<int64_t> stamp;
  for (const std::string* path : {&paths.cert_file, &paths.key_file, &paths.client_ca_file}) {
    struct stat status = {};
    if (path->empty() || stat(path->c_str(), &status) != 0) status = {};
    stamp.insert(stamp.end(), {static_cast<int64_t>(status.st_ino), status.st_size,
                               status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec});
  }
  return stamp;
}

}  // namespace

struct CertificateFiles::Impl {
  // The content in force, after a look at the files if one is due.
  std::shared_ptr<const Content> Current() {
    absl::MutexLock lock(&mutex);
    const absl::Time now = absl::Now();
    if (now - looked < kLookPeriod) return content;
    looked = now;
    std::vector<int64_t> seen = StampOf(paths);
    if (seen == stamp) return content;
    stamp = std::move(seen);
    absl::StatusOr<Content> read = Read(paths);
    if (read.ok()) {
      content = std::make_shared<const Content>(*std::move(read));
      LOG(INFO) << "The certificate in " << paths.cert_file << " was read again";
    } else {
      LOG(ERROR) << "The certificate in force stays: " << read.status().message();
    }
    return content;
  }

  // Called when a client has said hello. 1: go on.
  static int Choose(SSL* connection, void* argument) {
    const std::shared_ptr<const Content> content = static_cast<Impl*>(argument)->Current();
    SSL_certs_clear(connection);
    if (SSL_use_certificate(connection, content->leaf.get()) != 1 ||
        SSL_use_PrivateKey(connection, content->key.get()) != 1 ||
        SSL_set1_chain(connection, content->chain.get()) != 1) {
      return 0;
    }
    if (content->clients == nullptr) return 1;
    if (SSL_set1_verify_cert_store(connection, content->clients.get()) != 1) return 0;
    for (const Certificate& authority : content->authorities)
      SSL_add_client_CA(connection, authority.get());
    return 1;
  }

  Paths paths;
  absl::Mutex mutex;
  std::shared_ptr<const Content> content ABSL_GUARDED_BY(mutex);
  std::vector<int64_t> stamp ABSL_GUARDED_BY(mutex);
  absl::Time looked ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
};

CertificateFiles::CertificateFiles(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CertificateFiles::~CertificateFiles() = default;

absl::StatusOr<std::unique_ptr<CertificateFiles>> CertificateFiles::Load(Paths paths) {
  auto impl = std::make_unique<Impl>();
  // Before they are read: what changes meanwhile is read again.
  std::vector<int64_t> stamp = StampOf(paths);
  absl::StatusOr<Content> content = Read(paths);
  if (!content.ok()) return content.status();
  impl->paths = std::move(paths);
  {
    absl::MutexLock lock(&impl->mutex);
    impl->content = std::make_shared<const Content>(*std::move(content));
    impl->stamp = std::move(stamp);
  }
  return std::unique_ptr<CertificateFiles>(new CertificateFiles(std::move(impl)));
}

void CertificateFiles::Attach(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  // A session that is resumed would not show the new certificate, nor the client's.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  if (!impl_->paths.client_ca_file.empty())
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_cb(context, &Impl::Choose, impl_.get());
}

}  // namespace outboard::extender
