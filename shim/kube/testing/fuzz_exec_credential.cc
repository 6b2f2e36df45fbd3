#include "shim/kube/testing/fuzz_exec_credential.h"

#include "integration/fuzz/seeds.h"
#include "shim/kube/exec_credentials.h"

namespace outboard::kube {

void FuzzExecCredential(absl::string_view bytes) {
  const absl::StatusOr<ExecCredential> read =
      ParseExecCredential(bytes, "client.authentication.k8s.io/v1");
  if (!read.ok()) {
    fuzz::Require(!read.status().message().empty(), "an error has a text");
    return;
  }
  const Credentials& credentials = read->credentials;
  fuzz::Require(credentials.client_certificate_pem.empty() == credentials.client_key_pem.empty(),
                "a certificate has a key");
  fuzz::Require(!credentials.bearer_token.empty() || !credentials.client_key_pem.empty(),
                "there is a token or a certificate");
  fuzz::Require(credentials.bearer_token.find_first_of("\r\n") == std::string::npos,
                "a token is one header's value");
}

}  // namespace outboard::kube
