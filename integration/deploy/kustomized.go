// Package deploy renders the manifests of deploy/.
package deploy

import (
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	controlplane "outboard.dev/integration/control_plane"
)

// Kustomized returns the output of `kubectl kustomize deploy/kustomize/NAME`.
func Kustomized(name string) (string, error) {
	root, err := controlplane.Repository()
	if err != nil {
		return "", err
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy", "kustomize", name))
	if err != nil {
		return "", err
	}
	text, err := resources.AsYaml()
	return string(text), err
}
