// Package topologyupdater runs Node Feature Discovery's topology updater on a host that exists only as files: a /sys
// tree, a kubelet's configuration, and a PodResources server.
package topologyupdater
