package metrics

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// PrometheusProgram returns Debian's: OUTBOARD_PROMETHEUS, or the program unpacked by ./dev test, or the installed one.
func PrometheusProgram(t *testing.T) string {
	t.Helper()
	cache, _ := os.UserCacheDir()
	for _, program := range []string{os.Getenv("OUTBOARD_PROMETHEUS"), filepath.Join(cache, "outboard", "prometheus", "usr", "bin", "prometheus"), "prometheus"} {
		if found, err := exec.LookPath(program); program != "" && err == nil {
			return found
		}
	}
	t.Fatal("missing prometheus: ./dev test cluster fetches it, or set OUTBOARD_PROMETHEUS=PROGRAM")
	return ""
}

// StartPrometheus runs Debian's Prometheus with this configuration until the test ends, and returns its address.
func StartPrometheus(t *testing.T, config string) string {
	t.Helper()
	return Start(t, PrometheusProgram(t), config)
}

// Start is StartPrometheus of another Prometheus.
func Start(t *testing.T, program, config string) string {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("prometheus: %s", text)
		}
	})
	return address
}

// Sample is a row of an instant query's answer.
type Sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"` // Time, and the value as a text.
}

// Text is the value as Prometheus writes it.
func (s Sample) Text() string { return fmt.Sprint(s.Value[1]) }

// Query asks for an instant vector.
func Query(address, query string) ([]Sample, error) {
	response, err := http.PostForm("http://"+address+"/api/v1/query", url.Values{"query": {query}})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []Sample }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("query failed: %s", answer.Error)
	}
	return answer.Data.Result, nil
}
