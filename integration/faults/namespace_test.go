package faults

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const namespaceVariable = "OUTBOARD_TEST_IN_NAMESPACE"

// inNamespace runs the test once more, in another process, in a network namespace of its own: there it may drop
// packets, and nothing is left of that when the process has ended. It returns true in that process. In the first one
// the test has then ended, and must return.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceVariable) != "" {
		return true
	}
	namespaces := []string{"--net"}
	if os.Getuid() != 0 { // Root of a user namespace may do the same.
		namespaces = append(namespaces, "--user", "--map-root-user")
		if output, err := exec.CommandContext(t.Context(), "unshare", append(namespaces, "true")...).CombinedOutput(); err != nil {
			t.Skipf("neither root nor user namespaces: %v: %s", err, output)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arguments := append(namespaces, "sh", "-c", `ip link set lo up && exec "$@"`, "sh", program,
		"-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2h")
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			arguments = append(arguments, "-"+f.Name+"="+f.Value.String())
		}
	})
	command := exec.CommandContext(t.Context(), "unshare", arguments...)
	command.Env = append(os.Environ(), namespaceVariable+"=1")
	// The process dies with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.CombinedOutput()
	t.Logf("in a network namespace:\n%s", output)
	if err != nil {
		t.Error(err)
	}
	return false
}

// filter replaces the rules for packets that arrive at this namespace; none: all pass. The kernel drops them silently,
// as a network does.
func filter(t *testing.T, rules ...string) {
	t.Helper()
	script := "table inet faults\ndelete table inet faults\n" // The first line lets the second succeed.
	if len(rules) > 0 {
		script += "table inet faults { chain in { type filter hook input priority 0; policy accept;\n" + strings.Join(rules, "\n") + "\n}\n}\n"
	}
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(script)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v: %s\n%s", err, output, script)
	}
}

// filtered returns the number of packets that the rules with "counter" have matched.
func filtered(t *testing.T) (packets int) {
	t.Helper()
	output, err := exec.Command("nft", "list", "table", "inet", "faults").CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v: %s", err, output)
	}
	for _, match := range regexp.MustCompile(`counter packets (\d+)`).FindAllSubmatch(output, -1) {
		n, err := strconv.Atoi(string(match[1]))
		if err != nil {
			t.Fatal(err)
		}
		packets += n
	}
	return packets
}

// established returns the number of established connections of a server of this namespace, which has closed none of
// them.
func established(t *testing.T, port string) (count int) {
	t.Helper()
	var tables []byte
	for _, name := range []string{"tcp", "tcp6"} { // gRPC's servers use sockets of IPv6 for IPv4, too.
		table, err := os.ReadFile("/proc/thread-self/net/" + name)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table...)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(tables)) {
		const stateEstablished = "01"
		fields := strings.Fields(line)
		if len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) && fields[3] == stateEstablished {
			count++
		}
	}
	return count
}
