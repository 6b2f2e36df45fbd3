package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority is a certificate authority of the cluster. It lives as long as the control plane.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateTemplate("outboard-test-ca")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key, pem: certificatePEM(der)}, nil
}

func certificateTemplate(name string, organizations ...string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand never fails.
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: organizations},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func (a *authority) sign(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyPEM(private)
	return certificatePEM(der), key, err
}

// server signs a certificate for a server on this machine, and on further addresses.
func (a *authority) server(addresses ...net.IP) (certificate, key []byte, err error) {
	template := certificateTemplate("kube-apiserver")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1)}, addresses...)
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default.svc"}
	return a.sign(template)
}

// WriteHostSecrets writes ca.crt, tls.crt and tls.key into two folders, as the Secrets of an installation with mutual TLS
// have them: a plugin host's server certificate for `name`, and a shim's client certificate, of a new authority.
func WriteHostSecrets(host, shim, name string) error {
	a, err := newAuthority()
	if err != nil {
		return err
	}
	server := certificateTemplate("outboard-host")
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames = []string{name}
	client := certificateTemplate("outboard-shim")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for dir, template := range map[string]*x509.Certificate{host: server, shim: client} {
		certificate, key, err := a.sign(template)
		if err != nil {
			return err
		}
		if err := writeSecrets(dir, map[string][]byte{"ca.crt": a.pem, "tls.crt": certificate, "tls.key": key}); err != nil {
			return err
		}
	}
	return nil
}

// writeSecrets writes files that only their owner may read.
func writeSecrets(dir string, files map[string][]byte) error {
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// client signs a certificate for a user of the API.
func (a *authority) client(user string, groups ...string) (certificate, key []byte, err error) {
	template := certificateTemplate(user, groups...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// writeServerFiles writes the files of kube-apiserver and kube-controller-manager: ca.crt, server.crt, server.key,
// and the key that signs service account tokens, sa.key with sa.pub. The certificate is valid for further addresses.
func (a *authority) writeServerFiles(dir string, addresses ...net.IP) error {
	certificate, key, err := a.server(addresses...)
	if err != nil {
		return err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	accountsKey, err := keyPEM(accounts)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(accounts.Public())
	if err != nil {
		return err
	}
	return writeSecrets(dir, map[string][]byte{
		"ca.crt":     a.pem,
		"server.crt": certificate,
		"server.key": key,
		"sa.key":     accountsKey,
		"sa.pub":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	})
}

// writeServing replaces kube-apiserver's serving certificate, each file atomically; the server reloads both when one
// changes.
func (a *authority) writeServing(dir string, addresses ...net.IP) error {
	certificate, key, err := a.server(addresses...)
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{"server.key", key}, {"server.crt", certificate}} {
		path := filepath.Join(dir, file.name)
		if err := os.WriteFile(path+".new", file.data, 0o600); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig writes a kubeconfig with a client certificate for the user that trusts servers of these
// authorities.
func (a *authority) writeKubeconfig(path string, trusted []byte, server, token, user string, groups ...string) error {
	info := &clientcmdapi.AuthInfo{Token: token}
	if token == "" {
		certificate, key, err := a.client(user, groups...)
		if err != nil {
			return err
		}
		info.ClientCertificateData, info.ClientKeyData = certificate, key
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["outboard-test"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: trusted}
	config.AuthInfos[user] = info
	config.Contexts["outboard-test"] = &clientcmdapi.Context{Cluster: "outboard-test", AuthInfo: user}
	config.CurrentContext = "outboard-test"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	return nil
}
