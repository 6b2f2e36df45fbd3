package deploy_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplane "outboard.dev/integration/control_plane"
)

// startNetworkHost runs the plugin host with the arguments of the installed Deployment outboard-host, as a process of its
// own over TCP with mutual TLS. On this machine it has other addresses, and its Secrets are folders; its certificate
// names the Service, as that of an installation does.
func (c *cluster) startNetworkHost(bin string, all []*unstructured.Unstructured, shim map[string]any) {
	c.Helper()
	const mounted = "/etc/outboard-tls"
	folders := map[string]string{}
	for _, of := range []string{"host", "shim"} {
		folders[of] = filepath.Join(c.Dir, "tls-"+of)
		if err := os.Mkdir(folders[of], 0o700); err != nil {
			c.Fatal(err)
		}
	}
	hosts := shim["hosts"].([]any)
	if len(hosts) != 1 {
		c.Fatalf("%d hosts in the configuration", len(hosts))
	}
	host := hosts[0].(map[string]any)
	service, _, err := net.SplitHostPort(host["address"].(string))
	if err != nil {
		c.Fatal(err)
	}
	if err := controlplane.WriteHostSecrets(folders["host"], folders["shim"], service); err != nil {
		c.Fatal(err)
	}
	address := controlplane.FreeAddress(c)
	host["address"] = address
	files := host["tls"].(map[string]any)
	for key, file := range files {
		files[key] = strings.Replace(file.(string), mounted, folders["shim"], 1)
	}
	files["serverName"] = service

	arguments := c.hostArguments(all)
	for i, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		switch {
		case name == "--listen":
			value = address
		case name == "--metrics-address":
			value = controlplane.FreeAddress(c)
		case strings.HasPrefix(value, mounted+"/"):
			value = folders["host"] + strings.TrimPrefix(value, mounted)
		}
		arguments[i] = name + "=" + value
	}
	if _, err := c.StartProcess("host", filepath.Join(bin, "outboard-host"), arguments...); err != nil {
		c.Fatal(err)
	}
	c.eventually(func() error { // The readiness probe of its container.
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

// hostArguments are the arguments of the only container of the Deployment outboard-host.
func (c *cluster) hostArguments(all []*unstructured.Unstructured) []string {
	c.Helper()
	for _, object := range all {
		if object.GetKind() != "Deployment" || object.GetName() != "outboard-host" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			c.Fatalf("containers of outboard-host: %v %v", containers, err)
		}
		arguments, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		if err != nil || len(arguments) == 0 {
			c.Fatalf("arguments of outboard-host: %v %v", arguments, err)
		}
		return arguments
	}
	c.Fatal("no Deployment outboard-host")
	return nil
}
