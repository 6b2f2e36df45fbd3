// Package testcluster runs a Kubernetes cluster whose nodes are real: kubelets with containerd, each in namespaces of its
// own on this machine, beside a control plane of package controlplane. See README.md.
package testcluster
