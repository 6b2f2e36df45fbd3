#include "shim/extender/certificate_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "shim/extender/testing/test_certificates.h"

namespace outboard::extender {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(CertificateFiles::Paths paths) {
  return std::string(CertificateFiles::Load(std::move(paths)).status().message());
}

TEST(CertificateFiles, SaysWhichFileIsOfNoUse) {
  const std::string dir = ::testing::TempDir();
  const std::string cert = dir + "/files.crt";
  const std::string key = dir + "/files.key";
  const std::string other_key = dir + "/other.key";
  TestCertificate(1).Write(cert, key);
  TestCertificate(2).Write("", other_key);
  EXPECT_TRUE(CertificateFiles::Load({cert, key, ""}).ok());
  EXPECT_TRUE(CertificateFiles::Load({cert, key, cert}).ok());
  EXPECT_EQ(ErrorOf({"/nowhere", key, ""}), "/nowhere: cannot be read");
  EXPECT_THAT(ErrorOf({key, key, ""}), HasSubstr(key + ": holds no certificates"));
  EXPECT_THAT(ErrorOf({cert, cert, ""}), HasSubstr(cert + ": holds no key"));
  EXPECT_THAT(ErrorOf({cert, other_key, ""}), HasSubstr("is not the key of"));
  EXPECT_EQ(ErrorOf({cert, key, "/nowhere"}), "/nowhere: cannot be read");
  std::ofstream(cert, std::ios::app) << "-----BEGIN CERTIFICATE-----\nAAAA\n";
  EXPECT_THAT(ErrorOf({cert, key, ""}), HasSubstr("holds no certificates in PEM"));
}

}  // namespace
}  // namespace outboard::extender
