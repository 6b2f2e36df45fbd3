// Command pause is the container that holds a pod's namespaces, and the only one of pods that need no more than to run.
// `pause --check` succeeds, for an exec probe.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 {
		if os.Args[1] != "--check" {
			fmt.Fprintf(os.Stderr, "pause: unknown argument %q\n", os.Args[1])
			os.Exit(2)
		}
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	fmt.Println("pause: running")
	<-ended
}
