package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
)

// swapped is the result of the replacements.
type swapped struct {
	switches []time.Time // when each instance began to serve
	warmUps  []float64   // milliseconds from the start of its process to that
	killed   int
}

// replaceHosts starts one instance after the other. Each N-th predecessor is killed instead of stopped, alternately
// after its successor has taken over and while it still serves and its successor is in the shadow phase.
func replaceHosts(ctx context.Context, outboard *controlplane.Outboard, builds [2][]string, gangs *gangs) (*swapped, error) {
	result := &swapped{}
	began := time.Now()
	for i := range *swaps {
		// Half an interval earlier, so that the gang waits when the process starts.
		if err := load.SleepUntil(ctx, began.Add(time.Duration(i)**interval+*interval/2)); err != nil {
			return nil, err
		}
		if err := gangs.begin(ctx, i); err != nil {
			return nil, err
		}
		if err := load.SleepUntil(ctx, began.Add(time.Duration(i+1)**interval)); err != nil {
			return nil, err
		}
		predecessor, started := outboard.Host, time.Now()
		outboard.SetHostProgram("", builds[(i+1)%2]...)
		if err := outboard.StartHost(); err != nil {
			return nil, err
		}
		kills := *killed > 0 && (i+1)%*killed == 0
		if kills && result.killed%2 == 1 {
			if _, err := waitUntil(ctx, outboard, started, "shadow", "serving"); err != nil {
				return nil, fmt.Errorf("swap %d: %w", i+1, err)
			}
			predecessor.Kill()
		}
		serving, err := waitUntil(ctx, outboard, started, "serving")
		if err != nil {
			return nil, fmt.Errorf("swap %d: %w", i+1, err)
		}
		result.switches = append(result.switches, serving)
		result.warmUps = append(result.warmUps, float64(serving.Sub(started).Microseconds())/1000)
		if kills {
			predecessor.Kill()
			result.killed++
		} else {
			// It exits by itself once it has drained.
			go predecessor.Stop(30 * time.Second)
		}
		if err := gangs.complete(ctx, i); err != nil {
			return nil, err
		}
		if (i+1)%20 == 0 {
			say("%d swaps; warm-up of the last: %.0f ms", i+1, result.warmUps[i])
		}
	}
	return result, load.SleepUntil(ctx, time.Now().Add(near))
}

// makeBuilds returns the arguments of two hosts that differ in one plugin, a shared object.
func makeBuilds(dir string) (builds [2][]string, err error) {
	programs, err := controlplane.OutboardDirectory()
	if err != nil {
		return builds, err
	}
	for i, name := range []string{"even", "odd"} {
		plugins := filepath.Join(dir, "plugins-"+name)
		if err := os.Mkdir(plugins, 0o700); err != nil {
			return builds, err
		}
		object := filepath.Join(filepath.Dir(programs), "objects", "preference_"+name+".so")
		install := exec.Command(filepath.Join(programs, "outboard-host"), "--plugin-dir", plugins, "--install", object)
		if out, err := install.CombinedOutput(); err != nil {
			return builds, fmt.Errorf("%v: %w\n%s(./dev bench swap builds the objects)", install.Args, err, out)
		}
		builds[i] = []string{"--plugin-dir", plugins}
	}
	return builds, nil
}

// waitUntil returns when the instance started after `started` reached one of the states, according to the shim.
func waitUntil(ctx context.Context, outboard *controlplane.Outboard, started time.Time, states ...string) (time.Time, error) {
	const patience = 30 * time.Second
	limit := time.Now().Add(patience)
	for {
		hosts, err := outboard.Hosts(ctx)
		if err != nil {
			return time.Time{}, err
		}
		for _, host := range hosts {
			if host.Started.After(started) && slices.Contains(states, host.State) {
				return host.Since, nil
			}
		}
		if time.Now().After(limit) {
			return time.Time{}, fmt.Errorf("the new instance is not %v: %+v", states, hosts)
		}
		if err := load.SleepUntil(ctx, time.Now().Add(20*time.Millisecond)); err != nil {
			return time.Time{}, err
		}
	}
}
