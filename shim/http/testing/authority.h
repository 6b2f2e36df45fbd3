// Certificates for tests.
#ifndef OUTBOARD_SHIM_HTTP_TESTING_AUTHORITY_H_
#define OUTBOARD_SHIM_HTTP_TESTING_AUTHORITY_H_

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <functional>
#include <string>

namespace outboard::http::testing {

// PEM texts.
struct Pair {
  std::string certificate, key;
};

inline std::string Pem(const std::function<void(BIO*)>& write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

// Signs certificates.
class Authority {
 public:
  explicit Authority(const char* name) : key_(EVP_EC_gen("P-256")) {
    certificate_ = Sign(name, nullptr, "CA:TRUE", nullptr, key_);
  }
  ~Authority() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  std::string pem() const {
    return Pem([this](BIO* bio) { PEM_write_bio_X509(bio, certificate_); });
  }
  // `usage`: serverAuth or clientAuth.
  Pair Issue(const char* name, const char* usage, const char* organization = nullptr) {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const made = Sign(name, organization, "CA:FALSE", usage, key);
    Pair pair = {Pem([&](BIO* bio) { PEM_write_bio_X509(bio, made); }), Pem([&](BIO* bio) {
                   PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
                 })};
    X509_free(made);
    EVP_PKEY_free(key);
    return pair;
  }

 private:
  X509* Sign(const char* name, const char* organization, const char* constraints, const char* usage,
             EVP_PKEY* key) {
    X509* const made = X509_new();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(made), -60);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_NAME* const subject = X509_get_subject_name(made);
    const auto add = [&](const char* field, const char* value) {
      X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(value), -1, -1, 0);
    };
    if (organization != nullptr) add("O", organization);
    add("CN", name);
    X509_set_pubkey(made, key);
    X509_set_issuer_name(made,
                         certificate_ == nullptr ? subject : X509_get_subject_name(certificate_));
    const auto extend = [&](int kind, const char* value) {
      X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
      X509_add_ext(made, extension, -1);
      X509_EXTENSION_free(extension);
    };
    extend(NID_basic_constraints, constraints);
    if (usage != nullptr) extend(NID_ext_key_usage, usage);
    extend(NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
    X509_sign(made, key_, EVP_sha256());
    return made;
  }

  EVP_PKEY* const key_;
  X509* certificate_ = nullptr;
  long serial_ = 0;
};

}  // namespace outboard::http::testing

#endif  // OUTBOARD_SHIM_HTTP_TESTING_AUTHORITY_H_
