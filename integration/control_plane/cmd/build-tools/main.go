// Command build-tools builds the programs of a control plane that are missing in the cache, and prints their paths; with
// --nodes also those of nodes with kubelets.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	controlplane "outboard.dev/integration/control_plane"
)

var nodes = flag.Bool("nodes", false, "also the programs of nodes with kubelets")

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "build-tools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	progress := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	tools, err := controlplane.BuildTools(ctx, false, progress)
	if err != nil {
		return err
	}
	paths := []string{tools.Etcd, tools.APIServer, tools.ControllerManager, tools.Scheduler, tools.KWOK}
	if *nodes {
		tools, err := controlplane.BuildNodeTools(ctx, progress)
		if err != nil {
			return err
		}
		paths = append(paths, tools.Kubelet, tools.KubeProxy, tools.NetworkPlugins)
	}
	for _, path := range paths {
		fmt.Println(path)
	}
	return nil
}
