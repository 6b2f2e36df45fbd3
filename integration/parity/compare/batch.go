package compare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"outboard.dev/integration/parity/generate"
)

// Batch runs many cases, several concurrently.
type Batch struct {
	// Directory gets one folder for each case, which is removed afterwards without Keep.
	Directory string
	Keep      bool
	Outboard  string
	// Jobs is the number of concurrent cases; default: one.
	Jobs int
}

type result struct {
	outcome *Outcome
	err     error
}

// Run creates and runs cases 0 to n-1 and passes their outcomes to handle in this order, one at a time. It ends early
// if handle returns false, or at an error of the oracle, of the file system or of handle. create is called from one
// goroutine.
func (b *Batch) Run(ctx context.Context, n int, create func(i int) *generate.Case, handle func(i int, outcome *Outcome) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := max(b.Jobs, 1)
	// Results wait here in the order of the cases; the length limits how far the work runs ahead.
	queue := make(chan chan result, jobs)
	tokens := make(chan struct{}, jobs)
	go func() {
		defer close(queue)
		for i := range n {
			c, done := create(i), make(chan result, 1)
			select {
			case tokens <- struct{}{}:
			case <-ctx.Done():
				return
			}
			go func() {
				outcome, err := b.one(ctx, c)
				<-tokens
				done <- result{outcome, err}
			}()
			select {
			case queue <- done:
			case <-ctx.Done():
				return
			}
		}
	}()
	i := 0
	for done := range queue {
		result := <-done
		if result.err != nil {
			return result.err
		}
		if more, err := handle(i, result.outcome); err != nil || !more {
			return err
		}
		i++
	}
	return ctx.Err()
}

func (b *Batch) one(ctx context.Context, c *generate.Case) (*Outcome, error) {
	directory := filepath.Join(b.Directory, fmt.Sprintf("seed-%d-of-%d-nodes", c.Seed, len(c.Nodes)))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	outcome, err := Run(ctx, c, directory, b.Outboard)
	if err != nil || b.Keep {
		return outcome, err
	}
	return outcome, os.RemoveAll(directory)
}
