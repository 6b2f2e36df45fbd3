// Command build-tools builds the programs of a control plane that are missing in the cache, and prints their paths.
package main

import (
	"context"
	"fmt"
	"os"

	controlplane "outboard.dev/integration/control_plane"
)

func main() {
	progress := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	tools, err := controlplane.BuildTools(context.Background(), false, progress)
	if err != nil {
		fmt.Fprintln(os.Stderr, "build-tools:", err)
		os.Exit(1)
	}
	for _, path := range []string{tools.Etcd, tools.APIServer, tools.ControllerManager, tools.Scheduler, tools.KWOK} {
		fmt.Println(path)
	}
}
