// Command oracle prints the expected output of `outboard simulate -o json` for the same arguments, computed by
// kube-scheduler's own code.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"outboard.dev/integration/parity/oracle"
)

func main() {
	cluster := flag.String("cluster", "", "manifests of nodes and running pods")
	pods := flag.String("pods", "", "manifests of pending pods")
	config := flag.String("config", "", "KubeSchedulerConfiguration")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	if err := run(*cluster, *pods, *config); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(cluster, pods, config string) error {
	verdicts, err := oracle.RunFiles(context.Background(), cluster, pods, config, nil)
	if err != nil {
		return err
	}
	return oracle.Write(os.Stdout, verdicts)
}
