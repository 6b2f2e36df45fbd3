// Command check checks the work of schedulers on a control plane, from etcd's history and the API.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"outboard.dev/integration/bench/checker"
)

var (
	kubeconfig = flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "an administrator's kubeconfig")
	etcd       = flag.String("etcd", "", "the address of etcd, such as http://127.0.0.1:2379")
	asJSON     = flag.Bool("json", false, "print the report as JSON")
)

func main() {
	flag.Parse()
	report, err := run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	if *asJSON {
		json.NewEncoder(os.Stdout).Encode(report)
	} else {
		fmt.Println(report)
	}
	if report.Faults() > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context) (*checker.Report, error) {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return checker.Check(ctx, *etcd, client)
}
