// Command cert-manager runs cert-manager beside a control plane of the tests: its controllers for certificates and for
// the issuers `selfSigned` and `ca`, its cainjector and its webhook. Issuers that need others (ACME, Vault, …) are not
// in it. It runs with the rights of the kubeconfig, not with those of cert-manager's chart.
//
// cert-manager's own programs are modules that no release of it has, hence this one. Its module is named below
// cert-manager's, so that Go lets it import the internal package of the webhook; no code is copied.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webhookconfig "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	requestsca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	requestsselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/util"
)

// namespace is where cert-manager keeps the authority of its webhook.
const namespace = "cert-manager"

var (
	flags       = flag.NewFlagSet("cert-manager", flag.ExitOnError) // controller-runtime has a --kubeconfig among the global ones.
	kubeconfig  = flags.String("kubeconfig", "", "file with the API server's address and credentials")
	webhookPort = flags.Int("webhook-port", 0, "port at which the webhook listens on all addresses")
)

func main() {
	_ = flags.Parse(os.Args[1:]) // Exits if it fails.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(klog.Background())
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if *kubeconfig == "" || *webhookPort <= 0 {
		return fmt.Errorf("--kubeconfig and --webhook-port are required")
	}
	restConfig, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx = klog.NewContext(ctx, klog.Background())
	for _, part := range []func(context.Context, *rest.Config) error{runControllers, runInjector, runWebhook} {
		group.Go(func() error { return part(ctx, restConfig) })
	}
	return group.Wait()
}

func runControllers(ctx context.Context, _ *rest.Config) error {
	const backoff = time.Second // An hour by default: a request that is refused once would fail the test.
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         *kubeconfig,
		KubernetesAPIQPS:   100,
		KubernetesAPIBurst: 200,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: backoff,
			CertificateRequestMaximumBackoffDuration: backoff,
		},
	})
	if err != nil {
		return err
	}
	known := controller.Known()
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{
		issuers.ControllerName, approver.ControllerName, requestsca.CRControllerName, requestsselfsigned.CRControllerName,
		issuing.ControllerName, keymanager.ControllerName, readiness.ControllerName, requestmanager.ControllerName,
		revisionmanager.ControllerName, trigger.ControllerName,
	} {
		one, err := known[name](factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		group.Go(func() error { return one.Run(2, ctx) })
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return group.Wait()
}

func runInjector(ctx context.Context, restConfig *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, certmanager.AddToScheme,
		apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	// Its first part is the field manager.
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(restConfig, "cainjector"), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName: true, cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName: true, cainjector.CustomResourceDefinitionName: true,
		},
	}); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func runWebhook(ctx context.Context, _ *rest.Config) error {
	options := webhookconfig.WebhookConfiguration{KubeConfig: *kubeconfig, SecurePort: int32(*webhookPort), MetricsListenAddress: "0"}
	options.TLSConfig.Dynamic.SecretNamespace = namespace
	options.TLSConfig.Dynamic.SecretName = "cert-manager-webhook-ca"
	options.TLSConfig.Dynamic.DNSNames = []string{"localhost"}
	options.TLSConfig.Dynamic.LeafDuration = 7 * 24 * time.Hour
	server, err := webhook.NewCertManagerWebhookServer(klog.Background(), options)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
