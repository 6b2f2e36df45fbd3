package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// zone is where Services have their names.
const zone = ".svc.cluster.local."

// dns answers for pods what a cluster's DNS server does for IPv4: the address of a Service, and of a headless one those of
// its pods, also by a pod's host name (Kubernetes DNS-Based Service Discovery, 2.3 and 2.4). It knows no other names.
//
// Threading: answers on a goroutine of its own until stop.
type dns struct {
	connection net.PacketConn
	services   corelisters.ServiceLister
	slices     discoverylisters.EndpointSliceLister
	end        context.CancelFunc
}

// startDNS listens at a UDP address.
func startDNS(ctx context.Context, client kubernetes.Interface, address string) (*dns, error) {
	running, end := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(client, 0)
	d := &dns{
		services: factory.Core().V1().Services().Lister(),
		slices:   factory.Discovery().V1().EndpointSlices().Lister(),
		end:      end,
	}
	factory.Start(running.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			end()
			return nil, fmt.Errorf("informer of %v not synced: %w", kind, ctx.Err())
		}
	}
	var err error
	if d.connection, err = net.ListenPacket("udp4", address); err != nil {
		end()
		return nil, err
	}
	go d.serve()
	return d, nil
}

func (d *dns) stop() {
	d.end()
	d.connection.Close()
}

func (d *dns) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := d.connection.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if response, err := d.respond(buffer[:n]); err == nil {
			d.connection.WriteTo(response, from) // A lost response is asked for again.
		}
	}
}

// respond answers a request; an error means that it is not one.
func (d *dns) respond(request []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(request)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	addresses, known := d.lookup(strings.ToLower(question.Name.String()))
	response := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired},
		Questions: []dnsmessage.Question{question},
	}
	if !known {
		response.RCode = dnsmessage.RCodeNameError
	}
	if question.Type == dnsmessage.TypeA {
		for _, address := range addresses {
			response.Answers = append(response.Answers, dnsmessage.Resource{
				// Seconds, CoreDNS' default.
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 5},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	return response.Pack()
}

// lookup returns the addresses of a name, and whether it is known.
func (d *dns) lookup(name string) ([]netip.Addr, bool) {
	name, inside := strings.CutSuffix(name, zone)
	parts := strings.Split(name, ".")
	if !inside || len(parts) < 2 || len(parts) > 3 {
		return nil, false
	}
	host := ""
	if len(parts) == 3 {
		host, parts = parts[0], parts[1:]
	}
	service, err := d.services.Services(parts[1]).Get(parts[0])
	if err != nil {
		return nil, false
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		address, err := netip.ParseAddr(service.Spec.ClusterIP)
		return []netip.Addr{address}, err == nil && host == ""
	}
	addresses := d.endpoints(service, host)
	return addresses, host == "" || len(addresses) > 0
}

// endpoints returns the addresses of a headless Service's pods, or of the one with the host name. Those that are not ready
// are left out, unless the Service publishes them: their condition then says that they are.
func (d *dns) endpoints(service *corev1.Service, host string) []netip.Addr {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	found, err := d.slices.EndpointSlices(service.Namespace).List(selector)
	if err != nil {
		return nil
	}
	addresses := []netip.Addr{}
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			if host != "" && (endpoint.Hostname == nil || *endpoint.Hostname != host) {
				continue
			}
			for _, text := range endpoint.Addresses {
				if address, err := netip.ParseAddr(text); err == nil && address.Is4() {
					addresses = append(addresses, address)
				}
			}
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses
}
