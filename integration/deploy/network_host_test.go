package deploy_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplane "outboard.dev/integration/control_plane"
)

// startNetworkHosts runs each instance of each host with the arguments of its container in the installed StatefulSet
// outboard-host, as processes of their own over TCP with mutual TLS. On this machine they have other addresses, and
// their Secrets are folders; their certificate names the Service, as that of an installation does.
func (c *cluster) startNetworkHosts(bin string, all []*unstructured.Unstructured, shim map[string]any) {
	c.Helper()
	const mounted = "/etc/outboard-tls"
	folders := map[string]string{}
	for _, of := range []string{"host", "shim"} {
		folders[of] = filepath.Join(c.Dir, "tls-"+of)
		if err := os.Mkdir(folders[of], 0o700); err != nil {
			c.Fatal(err)
		}
	}
	written := false
	for _, of := range shim["hosts"].([]any) {
		host := of.(map[string]any)
		files := host["tls"].(map[string]any)
		if !written {
			written = true
			if err := controlplane.WriteHostSecrets(folders["host"], folders["shim"], files["serverName"].(string)); err != nil {
				c.Fatal(err)
			}
		}
		for key, file := range files {
			files[key] = strings.Replace(file.(string), mounted, folders["shim"], 1)
		}
		container, program := "host", filepath.Join(bin, "outboard-host")
		if host["name"] == "claims" {
			container = "claims"
			var err error
			if program, err = controlplane.ClaimsHostProgram(); err != nil {
				c.Fatal(err)
			}
		}
		addresses := host["addresses"].([]any)
		for instance := range addresses {
			address := controlplane.FreeAddress(c)
			addresses[instance] = address
			arguments := c.hostArguments(all, container)
			for i, argument := range arguments {
				name, value, _ := strings.Cut(argument, "=")
				switch {
				case name == "--listen":
					value = address
				case strings.HasPrefix(value, mounted+"/"):
					value = folders["host"] + strings.TrimPrefix(value, mounted)
				}
				arguments[i] = name + "=" + value
			}
			if _, err := c.StartProcess(fmt.Sprintf("%s-%d", container, instance), program, arguments...); err != nil {
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
	}
}

// hostArguments are the arguments of a container of the StatefulSet outboard-host.
func (c *cluster) hostArguments(all []*unstructured.Unstructured, name string) []string {
	c.Helper()
	for _, object := range all {
		if object.GetKind() != "StatefulSet" || object.GetName() != "outboard-host" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil {
			c.Fatal(err)
		}
		for _, container := range containers {
			container := container.(map[string]any)
			if container["name"] != name {
				continue
			}
			arguments, _, err := unstructured.NestedStringSlice(container, "args")
			if err != nil || len(arguments) == 0 {
				c.Fatalf("arguments of outboard-host: %v %v", arguments, err)
			}
			return arguments
		}
	}
	c.Fatalf("no container %s in a StatefulSet outboard-host", name)
	return nil
}
