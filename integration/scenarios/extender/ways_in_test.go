package extender_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// authority signs certificates for this machine into a folder.
type authority struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.sign(t, "ca", 1)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// sign writes NAME.crt and NAME.key, and replaces each previous file atomically.
func (a *authority) sign(t *testing.T, name string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true, IsCA: a.certificate == nil,
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate == nil {
		if a.certificate, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		a.key = key
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		path := a.file(name + file)
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

// shown returns the serial number of the certificate on a new connection.
func (a *authority) shown(t *testing.T, address string) int64 {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	own, err := tls.LoadX509KeyPair(a.file("client.crt"), a.file("client.key"))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestTLS: kube-scheduler and the extender authenticate each other by certificates, and the extender's is replaced
// while they communicate.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	address := controlplane.FreeAddress(t)
	a := newAuthority(t)
	a.sign(t, "server", 10)
	a.sign(t, "client", 20)
	c.startShim(t, "", address, func(extender map[string]any) {
		extender["tls"] = map[string]any{"certFile": a.file("server.crt"), "keyFile": a.file("server.key"), "clientCAFile": a.file("ca.crt")}
	}, controlplane.SchedulerConfig{})
	c.startKubeScheduler(t, func(extender map[string]any) {
		extender["urlPrefix"], extender["enableHTTPS"] = "https://"+address, true
		extender["tlsConfig"] = map[string]any{"caFile": a.file("ca.crt"), "certFile": a.file("client.crt"), "keyFile": a.file("client.key")}
	})
	c.create(t, gpuPod("before", a100, 8))
	c.awaitNode(t, "before", "node-1")
	if serial := a.shown(t, address); serial != 10 {
		t.Errorf("the extender has certificate %d", serial)
	}
	a.sign(t, "server", 11)
	await(t, func() error {
		if serial := a.shown(t, address); serial != 11 {
			return fmt.Errorf("the extender still has certificate %d", serial)
		}
		return nil
	})
	c.create(t, gpuPod("after", a100, 8))
	c.awaitNode(t, "after", "node-2")
	// A client without a certificate of the authority is rejected.
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if status, _, err := post(t.Context(), stranger, "https://"+address+"/filter", []byte("{}")); err == nil {
		t.Errorf("a client without a certificate was answered: %d", status)
	}
}

// TestBind: only the extender that holds the lease binds pods; all answer filter requests.
func TestBind(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	leader, follower := controlplane.FreeAddress(t), controlplane.FreeAddress(t)
	c.startShim(t, "", leader, nil, controlplane.SchedulerConfig{LeaderElect: true})
	await(t, func() error {
		_, err := c.client.CoordinationV1().Leases("kube-system").Get(t.Context(), "outboard-scheduler", metav1.GetOptions{})
		return err
	})
	c.startShim(t, "second", follower, nil, controlplane.SchedulerConfig{LeaderElect: true})
	for _, replica := range []struct {
		address string
		binds   bool
	}{{leader, true}, {follower, false}} {
		pod := c.create(t, gpuPod("training-pod-1", a100, 8))
		c.checkExample(t, "http://"+replica.address, pod, true)
		order := extenderv1.ExtenderBindingArgs{PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: pod.UID, Node: "node-2"}
		got := ask[extenderv1.ExtenderBindingResult](t, "http://"+replica.address+"/bind", order)
		if replica.binds {
			if got.Error != "" {
				t.Errorf("bind: %s", got.Error)
			}
			c.awaitNode(t, pod.Name, "node-2")
		} else if !strings.Contains(got.Error, "this replica does not hold the lease outboard-scheduler; ask ") {
			t.Errorf("a follower's answer to bind: %q", got.Error)
		}
		c.remove(t, pod.Name)
	}
	// The same through kube-scheduler.
	c.startKubeScheduler(t, func(extender map[string]any) {
		extender["urlPrefix"], extender["bindVerb"] = "http://"+leader, "bind"
	})
	c.create(t, gpuPod("by-kube-scheduler", a100, 8))
	c.awaitNode(t, "by-kube-scheduler", "node-1")
}

// TestPreempt: kube-scheduler evicts where the extender agrees, not where its own order would.
func TestPreempt(t *testing.T) {
	t.Parallel()
	for _, byName := range []bool{true, false} {
		t.Run(fmt.Sprintf("nodeCacheCapable=%t", byName), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			address := controlplane.FreeAddress(t)
			c.startShim(t, "", address, nil, controlplane.SchedulerConfig{})
			for name, value := range map[string]int32{"low": 1, "middle": 10, "high": 100} {
				class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
				if _, err := c.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			// The pod of the lowest priority is on the node with the wrong GPUs.
			for node, class := range map[string]string{"node-1": "middle", "node-2": "high", "node-3": "low"} {
				pod := gpuPod("on-"+node, "", 8)
				pod.Spec.NodeName, pod.Spec.PriorityClassName, pod.Spec.TerminationGracePeriodSeconds = node, class, new(int64)
				c.create(t, pod)
			}
			c.startKubeScheduler(t, func(extender map[string]any) {
				extender["urlPrefix"], extender["nodeCacheCapable"] = "http://"+address, byName
			})
			pod := gpuPod("training", a100, 8)
			pod.Spec.PriorityClassName = "high"
			c.create(t, pod)
			c.awaitNode(t, "training", "node-1")
			for _, survivor := range []string{"on-node-2", "on-node-3"} {
				got, err := c.client.CoreV1().Pods("default").Get(t.Context(), survivor, metav1.GetOptions{})
				if err != nil || got.DeletionTimestamp != nil {
					t.Errorf("pod %s must not be evicted (%v)", survivor, err)
				}
			}
		})
	}
}

// TestManagedResources: pods without the managed resources of the example bypass the extender.
func TestManagedResources(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	// No extender runs: pods that need it wait.
	c.startKubeScheduler(t, func(extender map[string]any) { extender["urlPrefix"] = "http://" + controlplane.FreeAddress(t) })
	c.create(t, gpuPod("gpus", a100, 1))
	c.awaitReason(t, "gpus", "connection refused")
	plain := gpuPod("plain", a100, 1)
	plain.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	c.create(t, plain)
	c.awaitNode(t, "plain", "any")
}
