#include "shim/http/serving_certificate.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "shim/clock.h"

namespace outboard::http {
namespace {

// As in kube-scheduler. The self-signed certificate is renewed long before it expires.
constexpr int64_t kSelfSignedDays = 365;
constexpr absl::Duration kSelfSignedRenewal = absl::Hours(24 * kSelfSignedDays / 2);

struct Free {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
  void operator()(STACK_OF(X509) * p) const { sk_X509_pop_free(p, X509_free); }
  void operator()(STACK_OF(X509_NAME) * p) const { sk_X509_NAME_pop_free(p, X509_NAME_free); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// The data of handshakes. Immutable; a change creates a new object.
struct Material {
  Owned<X509> certificate;
  Owned<EVP_PKEY> key;
  Owned<STACK_OF(X509)> chain;
  // Null: clients are not asked for certificates.
  Owned<X509_STORE> client_authorities;
  Owned<STACK_OF(X509_NAME)> client_authority_names;
};

absl::Status Invalid(absl::string_view file, absl::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", what));
}

absl::StatusOr<std::string> Read(const std::string& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(file, ": ", std::strerror(errno)));
  // Reading a directory fails, which an iterator reports by an exception and a stream in errno.
  std::ostringstream text;
  text << in.rdbuf();
  if (errno != 0) return absl::NotFoundError(absl::StrCat(file, ": ", std::strerror(errno)));
  return text.str();
}

// All certificates of a PEM file.
absl::StatusOr<Owned<STACK_OF(X509)>> ReadCertificates(const std::string& file) {
  const absl::StatusOr<std::string> text = Read(file);
  if (!text.ok()) return text.status();
  Owned<BIO> bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  Owned<STACK_OF(X509)> all(sk_X509_new_null());
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    sk_X509_push(all.get(), one);
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
    return Invalid(file, "contains an invalid certificate");
  ERR_clear_error();
  if (sk_X509_num(all.get()) == 0) return Invalid(file, "contains no PEM certificate");
  return all;
}

absl::Status ReadPair(const ServingCertificateOptions& options, Material* out) {
  absl::StatusOr<Owned<STACK_OF(X509)>> chain = ReadCertificates(options.cert_file);
  if (!chain.ok()) return chain.status();
  const absl::StatusOr<std::string> text = Read(options.key_file);
  if (!text.ok()) return text.status();
  Owned<BIO> bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  // Without a callback the library would prompt for a password on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  out->key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (out->key == nullptr)
    return Invalid(options.key_file, "contains no PEM key without a password");
  out->chain = *std::move(chain);
  out->certificate.reset(sk_X509_shift(out->chain.get()));
  if (X509_check_private_key(out->certificate.get(), out->key.get()) != 1)
    return Invalid(options.key_file, absl::StrCat("does not match ", options.cert_file));
  return absl::OkStatus();
}

bool Extend(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

absl::Status MakeSelfSigned(const std::vector<std::string>& names, Material* out) {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == 0) strcpy(host, "localhost");
  std::string alternatives = absl::StrCat("DNS:localhost,IP:127.0.0.1,IP:::1,DNS:", host);
  for (const std::string& name : names) {
    unsigned char address[sizeof(in6_addr)];
    const bool is_address = inet_pton(AF_INET, name.c_str(), address) == 1 ||
                            inet_pton(AF_INET6, name.c_str(), address) == 1;
    absl::StrAppend(&alternatives, is_address ? ",IP:" : ",DNS:", name);
  }
  out->key.reset(EVP_EC_gen("P-256"));
  out->certificate.reset(X509_new());
  out->chain.reset(sk_X509_new_null());
  X509* const made = out->certificate.get();
  uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  const std::string common_name = absl::StrCat(std::string(host).substr(0, 50), "@",  //
                                               absl::ToUnixSeconds(absl::Now()));
  X509_NAME* subject = made == nullptr ? nullptr : X509_get_subject_name(made);
  const bool signed_by_itself =
      out->key != nullptr && made != nullptr && X509_set_version(made, X509_VERSION_3) == 1 &&
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), serial >> 1) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(made), -3600) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(made), kSelfSignedDays * 24 * 3600) != nullptr &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                                 -1, 0) == 1 &&
      X509_set_issuer_name(made, subject) == 1 && X509_set_pubkey(made, out->key.get()) == 1 &&
      Extend(made, NID_subject_alt_name, alternatives) &&
      Extend(made, NID_key_usage, "critical,digitalSignature") &&
      Extend(made, NID_ext_key_usage, "serverAuth") &&
      X509_sign(made, out->key.get(), EVP_sha256()) > 0;
  ERR_clear_error();
  if (signed_by_itself) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot create a certificate for ", alternatives));
}

absl::Status ReadClientAuthorities(const std::string& file, Material* out) {
  const absl::StatusOr<Owned<STACK_OF(X509)>> authorities = ReadCertificates(file);
  if (!authorities.ok()) return authorities.status();
  out->client_authorities.reset(X509_STORE_new());
  out->client_authority_names.reset(sk_X509_NAME_new_null());
  for (int i = 0; i < sk_X509_num(authorities->get()); ++i) {
    X509* const one = sk_X509_value(authorities->get(), i);
    if (X509_STORE_add_cert(out->client_authorities.get(), one) != 1)
      return Invalid(file, absl::StrCat("certificate ", i, " is invalid"));
    sk_X509_NAME_push(out->client_authority_names.get(), X509_NAME_dup(X509_get_subject_name(one)));
  }
  return absl::OkStatus();
}

// Marks a connection whose client certificate was not signed by one of the authorities.
int UnverifiedMark() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// Continues the handshake, so that a client with another authority's certificate can still send a
// token.
int NoteVerification(int verified, X509_STORE_CTX* context) {
  if (verified == 1) return 1;
  auto* connection =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (connection == nullptr) return 0;
  static char mark;
  return SSL_set_ex_data(connection, UnverifiedMark(), &mark);
}

// Identifies one version of a file; all zero if it does not exist.
struct Stamp {
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified_nanos = 0;
  bool operator==(const Stamp&) const = default;
};

Stamp StampOf(const std::string& path) {
  struct stat status;
  if (path.empty() || stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_size,
          status.st_mtim.tv_sec * int64_t{1000000000} + status.st_mtim.tv_nsec};
}

}  // namespace

struct ServingCertificate::Files {
  Stamp cert, key, client_ca;
  bool operator==(const Files&) const = default;
};

struct ServingCertificate::State {
  explicit State(ServingCertificateOptions given) : options(std::move(given)) {}

  Files Look() const {
    return {StampOf(options.cert_file), StampOf(options.key_file), StampOf(options.client_ca_file)};
  }

  absl::StatusOr<std::shared_ptr<const Material>> Make() const {
    auto made = std::make_shared<Material>();
    absl::Status status = options.cert_file.empty() ? MakeSelfSigned(options.names, made.get())
                                                    : ReadPair(options, made.get());
    if (status.ok() && !options.client_ca_file.empty())
      status = ReadClientAuthorities(options.client_ca_file, made.get());
    if (!status.ok()) return status;
    return made;
  }

  // At most one check per period; other handshakes use the current material.
  std::shared_ptr<const Material> Current() {
    absl::MutexLock lock(&mutex);
    const absl::Time now = SteadyNow();
    if (now - looked < options.period) return material;
    looked = now;
    // Before reading: a file that changes during the read differs at the next check.
    const Files files = Look();
    const bool outlived = options.cert_file.empty() && now - made_at > kSelfSignedRenewal;
    if (files == seen && !outlived) return material;
    seen = files;
    absl::StatusOr<std::shared_ptr<const Material>> made = Make();
    if (made.ok()) {
      material = *std::move(made);
      made_at = now;
      LOG(INFO) << "Serving certificate reloaded";
    } else {
      LOG(ERROR) << "Serving certificate reload failed; keeping the current certificate: "
                 << made.status().message();
    }
    if (options.on_change) options.on_change(made.ok());
    return material;
  }

  static int OnHandshake(SSL* connection, void* state) {
    const std::shared_ptr<const Material> current = static_cast<State*>(state)->Current();
    const bool must_show_one = static_cast<State*>(state)->options.requires_client_certificate;
    if (SSL_use_cert_and_key(connection, current->certificate.get(), current->key.get(),
                             current->chain.get(), 1) != 1) {
      return 0;
    }
    if (current->client_authorities == nullptr) return 1;
    SSL_set_client_CA_list(connection, SSL_dup_CA_list(current->client_authority_names.get()));
    if (must_show_one) {
      SSL_set_verify(connection, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    } else {
      SSL_set_verify(connection, SSL_VERIFY_PEER, NoteVerification);
    }
    return SSL_set1_verify_cert_store(connection, current->client_authorities.get());
  }

  const ServingCertificateOptions options;
  absl::Mutex mutex;
  std::shared_ptr<const Material> material ABSL_GUARDED_BY(mutex);
  Files seen ABSL_GUARDED_BY(mutex);
  absl::Time looked ABSL_GUARDED_BY(mutex);
  absl::Time made_at ABSL_GUARDED_BY(mutex);
};

ServingCertificate::ServingCertificate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServingCertificate::~ServingCertificate() = default;

absl::StatusOr<std::unique_ptr<ServingCertificate>> ServingCertificate::Load(
    ServingCertificateOptions options) {
  if (options.cert_file.empty() != options.key_file.empty())
    return absl::InvalidArgumentError("certificate file and key file must be set together");
  auto state = std::make_unique<State>(std::move(options));
  {
    absl::MutexLock lock(&state->mutex);
    state->looked = state->made_at = SteadyNow();
    state->seen = state->Look();
    absl::StatusOr<std::shared_ptr<const Material>> made = state->Make();
    if (!made.ok()) return made.status();
    state->material = *std::move(made);
  }
  return std::unique_ptr<ServingCertificate>(new ServingCertificate(std::move(state)));
}

void ServingCertificate::InstallOn(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
  SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
  // Each connection verifies certificates again: a resumed session would keep an old result.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  // Like Go's servers: only ciphers with forward secrecy and authenticated encryption.
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_cert_cb(context, &State::OnHandshake, state_.get());
}

X509* VerifiedClient(const SSL* connection) {
  X509* const shown = SSL_get0_peer_certificate(connection);
  if (shown == nullptr || SSL_get_ex_data(connection, UnverifiedMark()) != nullptr ||
      SSL_get_verify_result(connection) != X509_V_OK) {
    return nullptr;
  }
  return shown;
}

}  // namespace outboard::http
