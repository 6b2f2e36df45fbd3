#!/usr/bin/env bash
# init.sh FOLDER NAME: the first process in a node's pid, mount and uts namespaces. It gives the node folders of its own below
# FOLDER, where kubelet and containerd expect them, creates FOLDER/ready, and reaps until it is killed.
set -euo pipefail
folder=$1
echo "$2" >/proc/sys/kernel/hostname

mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns "$folder"/{lib,lib-work,kubelet,containerd,log,sysctl}
mount -t overlay -o "lowerdir=/var/lib,upperdir=$folder/lib,workdir=$folder/lib-work" overlay /var/lib
for name in kubelet containerd; do
  mkdir -p "/var/lib/$name"
  mount --bind "$folder/$name" "/var/lib/$name"
done
mount --bind "$folder/log" /var/log

# A kubelet sets these for the whole machine unless they have these values. Here it reads that they have.
keep() { # NAME VALUE
  echo "$2" >"$folder/sysctl/${1//\//-}"
  mount --bind "$folder/sysctl/${1//\//-}" "/proc/sys/$1"
}
keep vm/overcommit_memory 1
keep vm/panic_on_oom 0
keep kernel/panic 10
keep kernel/panic_on_oops 1
keep kernel/keys/root_maxkeys 1000000
keep kernel/keys/root_maxbytes 25000000

# Pods forward what others send them; only in this network namespace.
echo 1 >/proc/sys/net/ipv4/ip_forward
# Mounts below the kubelet's folder reach containers.
mount --make-rshared /
touch "$folder/ready"
while true; do
  sleep infinity &
  wait $!
done
