// Command total adds the results of a soak's pieces: `go run ./faults/soak/total [flags] FILE…`. Prints a row for each
// piece, the faults by kind, and the sum.
//
// Exit code: 0 nothing failed and there is enough; 1 not; 2 wrong usage.
package main

import (
	"flag"
	"fmt"
	"os"

	"outboard.dev/integration/faults/soak"
)

func main() {
	binds := flag.Int("binds", 0, "at least so many binds in all")
	faults := flag.Int("faults", 0, "at least so many faults in all")
	commit := flag.String("commit", "", "all results must be of this commit; empty: of any")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: total [flags] FILE…")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	var pieces []*soak.Result
	for _, path := range flag.Args() {
		piece, err := soak.Read(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "total:", err)
			os.Exit(1)
		}
		pieces = append(pieces, piece)
	}
	table, failures := soak.Total(pieces, *binds, *faults, *commit)
	fmt.Print(table)
	for _, failure := range failures {
		fmt.Println("FAILED:", failure)
	}
	if len(failures) > 0 {
		os.Exit(1)
	}
}
