// Package controlplane runs a real Kubernetes control plane as plain processes on 127.0.0.1, and the schedulers under
// test beside it. See README.md.
package controlplane
