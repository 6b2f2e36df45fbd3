package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a child process in its own process group, with its output in a file.
type Process struct {
	Name    string
	LogPath string

	cmd  *exec.Cmd
	done chan struct{}
	err  error // why it ended; valid once done is closed
}

// A child dies with the *thread* that started it (PR_SET_PDEATHSIG), so all are started on one thread that lives as
// long as this process. Otherwise a killed test run would leave a control plane behind.
var (
	starterOnce sync.Once
	starts      chan func()
)

func onStarterThread(f func() error) error {
	starterOnce.Do(func() {
		starts = make(chan func())
		go func() {
			runtime.LockOSThread()
			for start := range starts {
				start()
			}
		}()
	})
	result := make(chan error)
	starts <- func() { result <- f() }
	return <-result
}

// StartProcess runs a program with its output appended to <dir>/<name>.log.
func StartProcess(dir, name, program string, args ...string) (*Process, error) {
	return StartInNamespaces(0, dir, name, program, args...)
}

// StartInNamespaces is StartProcess in new namespaces: CLONE_NEW… flags of clone(2), most of which need root. With a pid
// namespace, all processes that enter it end with this one.
func StartInNamespaces(namespaces uintptr, dir, name, program string, args ...string) (*Process, error) {
	logPath := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(log, "# %s %s\n", program, strings.Join(args, " "))
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces}
	if err := onStarterThread(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{Name: name, LogPath: logPath, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID returns the process id. It is not reused before Exited is closed.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.done }

// HasEnded says whether Exited is closed.
func (p *Process) HasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Err returns how it ended, such as "signal: killed"; only after Exited is closed.
func (p *Process) Err() error { return p.err }

// Kill sends SIGKILL to the process group and waits for its end.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Stop sends SIGTERM to the process group, and SIGKILL after the grace period.
func (p *Process) Stop(grace time.Duration) {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
}

func (p *Process) signal(sig syscall.Signal) {
	if !p.HasEnded() { // Else its id may have been reused.
		syscall.Kill(-p.PID(), sig)
	}
}

// LogTail returns the end of the process's output.
func (p *Process) LogTail() string {
	const most = 4000
	data, err := os.ReadFile(p.LogPath)
	if err != nil {
		return err.Error()
	}
	if len(data) > most {
		data = append([]byte("…"), data[len(data)-most:]...)
	}
	return string(data)
}

func (p *Process) exitError() error {
	return fmt.Errorf("%s exited unexpectedly: %v; end of its log:\n%s", p.Name, p.err, p.LogTail())
}

// WaitUntil polls ready until it returns nil. It fails when ctx ends or the process exits.
func (p *Process) WaitUntil(ctx context.Context, what string, ready func(context.Context) error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %s: %w (last: %v); end of its log:\n%s", p.Name, what, ctx.Err(), err, p.LogTail())
		case <-p.done:
			return p.exitError()
		case <-ticker.C:
		}
	}
}

// HTTPOK succeeds if a GET of the address returns 200, without verification of the server.
func HTTPOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := httpGet(ctx, url)
		return err
	}
}

var anyServerClient = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // Self-signed, and only ever on 127.0.0.1.
	Proxy:           nil,
}}

func httpGet(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := anyServerClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s: %s", url, response.Status, bytes.TrimSpace(body[:min(len(body), 300)]))
	}
	return body, nil
}

// freePorts finds unused ports of 127.0.0.1. This process keeps a socket on each, bound without listening, so that the
// kernel gives none of them to another process before its server starts; servers bind with SO_REUSEADDR or
// SO_REUSEPORT.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		const reusePort = 15 // SO_REUSEPORT, which package syscall lacks.
		for _, option := range []int{syscall.SO_REUSEADDR, reusePort} {
			if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, option, 1); err != nil {
				return nil, err
			}
		}
		if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return nil, err
		}
		address, err := syscall.Getsockname(socket)
		if err != nil {
			return nil, err
		}
		ports = append(ports, address.(*syscall.SockaddrInet4).Port)
	}
	return ports, nil
}

// FreeAddresses returns addresses of 127.0.0.1 with unused ports.
func FreeAddresses(n int) ([]string, error) {
	ports, err := freePorts(n)
	addresses := make([]string, 0, n)
	for _, port := range ports {
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return addresses, err
}

// Usage is the resource usage of a process so far.
type Usage struct {
	CPU     time.Duration // user and system
	RSS     int64         // bytes, now
	PeakRSS int64         // bytes
}

const ticksPerSecond = 100 // USER_HZ, a constant in Linux.

// Usage reads /proc.
func (p *Process) Usage() (Usage, error) { return ProcessUsage(p.PID()) }

// ProcessUsage reads /proc for any process.
func ProcessUsage(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	// The second field is the name in parentheses and may contain anything; the third begins after the last
	// parenthesis.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, errors.New("/proc/PID/stat is too short")
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return Usage{}, err
	}
	usage := Usage{CPU: time.Duration(user+system) * time.Second / ticksPerSecond}

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			usage.RSS = kib << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			usage.PeakRSS = kib << 10
		}
	}
	return usage, nil
}

// MachineCPU returns the busy time of all CPUs of the machine since its start.
func MachineCPU() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq,
		&steal); err != nil {
		return 0, fmt.Errorf("/proc/stat: %q: %w", line, err)
	}
	return time.Duration(user+nice+system+irq+softirq+steal) * time.Second / ticksPerSecond, nil
}
