package testcluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
)

// Clusters at one time; each has its own part of 198.18.0.0/16, which is reserved for tests of networks (RFC 2544).
const mostClusters = 32

// slot is what a cluster has to itself on the machine: a folder, addresses, a network interface and control groups. All
// names follow from the number, so that the next start finds what a killed run has left.
type slot struct {
	number int
	lock   *os.File // held for as long as the cluster's program runs
}

// takeSlot takes a free slot, and clears all whose owners are gone.
func takeSlot() (*slot, error) {
	var taken *slot
	for number := range mostClusters {
		s := &slot{number: number}
		if _, err := os.Stat(s.lockFile()); err != nil && taken != nil {
			continue
		}
		locked, err := s.tryLock()
		if err != nil {
			return nil, err
		}
		if !locked {
			continue
		}
		if err := s.clear(); err != nil {
			s.lock.Close()
			return nil, fmt.Errorf("clear what an earlier run has left: %w", err)
		}
		if taken == nil {
			taken = s
			continue
		}
		s.release()
	}
	if taken == nil {
		return nil, fmt.Errorf("%d clusters are running", mostClusters)
	}
	return taken, os.MkdirAll(taken.folder(), 0o755)
}

func (s *slot) tryLock() (bool, error) {
	lock, err := os.OpenFile(s.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return false, err
	}
	s.lock = lock
	return true, nil
}

// release gives the slot back; clear comes first.
func (s *slot) release() {
	os.Remove(s.lockFile())
	s.lock.Close()
}

// clear removes what the slot has on the machine. Its processes have ended, and with them their namespaces and mounts.
func (s *slot) clear() error {
	if err := s.deleteLink(); err != nil {
		return err
	}
	if err := s.removeControlGroups(); err != nil {
		return err
	}
	return os.RemoveAll(s.folder())
}

func (s *slot) name() string { return fmt.Sprintf("outboard-test-cluster-%d", s.number) }

func (s *slot) folder() string { return filepath.Join(os.TempDir(), s.name()) }

func (s *slot) lockFile() string { return s.folder() + ".lock" }

// link is the network interface of this machine towards the nodes.
func (s *slot) link() string { return fmt.Sprintf("outboardtc%d", s.number) }

// subnet returns one of eight: 0 has the addresses of nodes, the others are those of the pods of a node.
func (s *slot) subnet(index int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(8*s.number + index), 0}), 24)
}

// mostNodes is the number of subnets that are left for pods.
const mostNodes = 7

// machine is the address of this machine, where the API server listens.
func (s *slot) machine() netip.Addr { return s.subnet(0).Addr().Next() }

// node is the address of a node, from 1.
func (s *slot) node(index int) netip.Addr {
	bytes := s.subnet(0).Addr().As4()
	bytes[3] = byte(10 + index)
	return netip.AddrFrom4(bytes)
}
