// Certificates for tests, created on demand and written as PEM files.
#ifndef OUTBOARD_SHIM_EXTENDER_TESTING_TEST_CERTIFICATES_H_
#define OUTBOARD_SHIM_EXTENDER_TESTING_TEST_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

namespace outboard::extender {

// A certificate for 127.0.0.1 with its key; self-signed unless an authority is given.
class TestCertificate {
 public:
  explicit TestCertificate(long serial, const TestCertificate* issuer = nullptr)
      : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509_set_version(certificate_, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate_), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate_), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate_), 3600);
    X509_set_pubkey(certificate_, key_);
    const std::string name = "test " + std::to_string(serial);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate_), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    const TestCertificate& by = issuer == nullptr ? *this : *issuer;
    X509_set_issuer_name(certificate_, X509_get_subject_name(by.certificate_));
    Add(by, NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    Add(by, NID_subject_alt_name, "IP:127.0.0.1");
    X509_sign(certificate_, by.key_, EVP_sha256());
  }
  ~TestCertificate() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  // Each file replaces its predecessor atomically.
  void Write(const std::string& cert_file, const std::string& key_file) const {
    if (!cert_file.empty())
      Replace(cert_file, [this](FILE* file) { PEM_write_X509(file, certificate_); });
    if (!key_file.empty()) {
      Replace(key_file, [this](FILE* file) {
        PEM_write_PrivateKey(file, key_, nullptr, nullptr, 0, nullptr, nullptr);
      });
    }
  }

 private:
  void Add(const TestCertificate& issuer, int nid, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer.certificate_, certificate_, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    X509_add_ext(certificate_, extension, -1);
    X509_EXTENSION_free(extension);
  }
  template <typename Write>
  static void Replace(const std::string& path, Write write) {
    const std::string fresh = path + ".new";
    FILE* file = std::fopen(fresh.c_str(), "w");
    write(file);
    std::fclose(file);
    std::rename(fresh.c_str(), path.c_str());
  }

  EVP_PKEY* const key_;
  X509* const certificate_;
};

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_TESTING_TEST_CERTIFICATES_H_
