// Command pause is the container that holds a pod's namespaces, and the only one of pods that need no more than to run. With
// arguments it tells what a container sees: for exec probes and `kubectl exec`, because its image has no other program.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 1 {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
		fmt.Println("pause: running")
		<-ended
		return
	}
	if err := tell(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pause:", err)
		os.Exit(1)
	}
}

func tell(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "--check":
		return nil
	case len(args) == 2 && args[0] == "--print":
		data, err := os.ReadFile(args[1])
		os.Stdout.Write(data)
		return err
	case len(args) == 2 && args[0] == "--connect":
		connection, err := net.DialTimeout("tcp", args[1], 10*time.Second)
		if err != nil {
			return err
		}
		return connection.Close()
	}
	return errors.New("want --check, --print FILE or --connect HOST:PORT")
}
