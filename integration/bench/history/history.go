// Package history reads etcd's history: every change of a range of keys, in order, from its first revision on.
package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Replay calls apply for each event from the prefix `first` to the prefix `last`, up to now. endMark is a key between
// the two. Replay writes it: one ordered watch returns all events before it and then the mark. It times out after two
// minutes. Errors: those of etcd (for example a compacted history), and the first of apply.
func Replay(ctx context.Context, etcdURL, first, last, endMark string, apply func(*clientv3.Event) error) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdURL}, DialTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	mark, err := client.Put(ctx, endMark, "")
	if err != nil {
		return err
	}
	err = follow(ctx, client, first, last, func(event *clientv3.Event) error {
		if string(event.Kv.Key) == endMark && event.Kv.ModRevision >= mark.Header.Revision {
			return errEnd
		}
		return apply(event)
	})
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

var errEnd = errors.New("the end mark has been read")

// Follow calls apply for each event from the prefix `first` to the prefix `last`, from revision 1 on and then as they
// happen, until the context ends; then it returns nil. Compact etcd only up to what has been applied.
// Errors: as Replay.
func Follow(ctx context.Context, etcdURL, first, last string, apply func(*clientv3.Event) error) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdURL}, DialTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := follow(ctx, client, first, last, apply); ctx.Err() == nil {
		return err
	}
	return nil
}

func follow(ctx context.Context, client *clientv3.Client, first, last string, apply func(*clientv3.Event) error) error {
	watch := client.Watch(ctx, first, clientv3.WithRange(clientv3.GetPrefixRangeEnd(last)), clientv3.WithRev(1))
	for response := range watch {
		if err := response.Err(); err != nil {
			return err
		}
		for _, event := range response.Events {
			if err := apply(event); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("the watch ended early: %w", ctx.Err())
}
