package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pb "outboard.dev/contract/v1beta1"
)

const driver = "gpu.example.com"

// fakeShim drives a host over gRPC as a shim does.
type fakeShim struct {
	t          *testing.T
	connection *grpc.ClientConn
	stream     grpc.BidiStreamingClient[pb.SyncRequest, pb.SyncResponse]
	version    int64
	attempt    uint64
	instance   string
	session    string
	// Pushes that the test has not read yet, by kind; the reader goroutine fills them.
	acks    chan *pb.Ack
	effects chan *pb.Effect
	pushes  chan uint64 // push_id of effects
	hints   chan *pb.QueueHint
	slots   uint32
}

func startHost(t testing.TB) *grpc.ClientConn {
	t.Helper()
	return connect(t, newHost("claims-test", "test", ""))
}

// connect serves a host in memory.
func connect(t testing.TB, h *host) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.UnaryInterceptor(guarded), grpc.MaxRecvMsgSize(maxMessageBytes))
	h.register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient("passthrough:test", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return listener.DialContext(ctx)
	}), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// newShim starts a host, and a session with these objects and `nodes` nodes node-0, node-1, …
func newShim(t *testing.T, nodes int, changes ...*pb.Change) *fakeShim {
	t.Helper()
	return joinShim(t, startHost(t), "session-1", "", nodes, changes...)
}

func joinShim(t *testing.T, connection *grpc.ClientConn, session, args string, nodes int, changes ...*pb.Change) *fakeShim {
	t.Helper()
	s := &fakeShim{
		t: t, connection: connection, instance: "claims-test", session: session,
		acks: make(chan *pb.Ack, 1), effects: make(chan *pb.Effect, 100), pushes: make(chan uint64, 100), hints: make(chan *pb.QueueHint, 1000),
	}
	profile := &pb.ProfileConfig{Name: "default-scheduler"}
	if args != "" {
		profile.Args = []*pb.PluginArgs{{Plugin: pluginName, ArgsJson: args}}
	}
	for _, point := range points {
		profile.Points = append(profile.Points, &pb.PointConfig{ExtensionPoint: point, Plugins: []string{pluginName}})
	}
	configured := call(s, pb.NewPluginHostServiceClient(connection).Configure, &pb.ConfigureRequest{
		SessionId: session, Instance: s.instance, Profiles: []*pb.ProfileConfig{profile}, CycleDeadlineMicros: 1e6,
	})
	if len(configured.GetProblems()) > 0 {
		t.Fatal(configured)
	}
	s.sync(nodes, changes...)
	return s
}

// sync opens a stream with a snapshot.
func (s *fakeShim) sync(nodes int, changes ...*pb.Change) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	var err error
	if s.stream, err = pb.NewClusterStateServiceClient(s.connection).Sync(ctx); err != nil {
		s.t.Fatal(err)
	}
	go func(stream grpc.BidiStreamingClient[pb.SyncRequest, pb.SyncResponse]) {
		for {
			response, err := stream.Recv()
			if err != nil {
				return
			}
			switch push := response.GetPush().(type) {
			case *pb.SyncResponse_Ack:
				select { // Only the last one matters.
				case <-s.acks:
				default:
				}
				s.acks <- push.Ack
			case *pb.SyncResponse_Effect:
				s.pushes <- response.GetPushId()
				s.effects <- push.Effect
			case *pb.SyncResponse_QueueHints:
				for _, hint := range push.QueueHints.GetHints() {
					s.hints <- hint
				}
			}
		}
	}(s.stream)
	order := &pb.NodeOrder{}
	var all []*pb.Change
	for s.slots = 0; int(s.slots) < nodes; s.slots++ {
		all = append(all, &pb.Change{Change: &pb.Change_NodeUpsert{NodeUpsert: &pb.NodeUpsert{Slot: s.slots, Node: nodeNamed(int(s.slots))}}})
		order.Slots = append(order.Slots, s.slots)
	}
	s.version++
	s.send(&pb.SyncRequest{SessionId: s.session, Version: s.version, Phase: pb.SyncRequest_PHASE_SNAPSHOT_BEGIN, Changes: append(all, changes...), NodeOrder: order})
	s.send(&pb.SyncRequest{Version: s.version, Phase: pb.SyncRequest_PHASE_SNAPSHOT_END})
	s.awaitAck()
}

func nodeNamed(i int) *pb.Node {
	name := fmt.Sprintf("node-%d", i)
	return &pb.Node{Uid: "uid-" + name, Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}, Allocatable: &pb.ResourceList{}}
}

func (s *fakeShim) send(request *pb.SyncRequest) {
	s.t.Helper()
	if request.Phase == pb.SyncRequest_PHASE_UNSPECIFIED {
		request.Phase = pb.SyncRequest_PHASE_DELTA
	}
	if err := s.stream.Send(request); err != nil {
		s.t.Fatal(err)
	}
}

// delta sends changes. The host applies them before it answers a call with the version.
func (s *fakeShim) delta(changes ...*pb.Change) {
	s.t.Helper()
	s.version++
	s.send(&pb.SyncRequest{Version: s.version, Changes: changes})
}

// tell sends a request, and waits until the host has applied it and has sent the pushes.
func (s *fakeShim) tell(request *pb.SyncRequest) {
	s.t.Helper()
	s.version++
	request.Version = s.version
	s.send(request)
	s.awaitAck()
}

func (s *fakeShim) awaitAck() {
	s.t.Helper()
	for {
		if ack := await(s.t, s.acks); ack.GetVersion() >= s.version {
			return
		}
	}
}

func await[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(10 * time.Second):
		t.Fatal("no push arrived")
		panic("unreachable")
	}
}

func call[Request, Response any](s *fakeShim, method func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request) Response {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	response, err := method(ctx, request)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

func (s *fakeShim) header() *pb.CallHeader {
	return &pb.CallHeader{SessionId: s.session, AttemptId: s.attempt, Version: &pb.CallHeader_ExactVersion{ExactVersion: s.version}, Profile: "default-scheduler"}
}

// headerFrom is for calls at this version or a later one.
func (s *fakeShim) headerFrom() *pb.CallHeader {
	header := s.header()
	header.Version = &pb.CallHeader_MinVersion{MinVersion: s.version}
	return header
}

func searchOf(header *pb.CallHeader, enough uint32) *pb.FilterRequest {
	return &pb.FilterRequest{Header: header, What: &pb.FilterRequest_Search{Search: &pb.NodeSearch{NumFeasibleNodesToFind: enough}}}
}

// try runs an attempt up to Filter; it returns the feasible nodes, or the reason why there are none.
func (s *fakeShim) try(pod *pb.Pod) (feasible []string, reason string) {
	s.t.Helper()
	s.attempt++
	began := call(s, pb.NewPreFilterServiceClient(s.connection).PreFilter, &pb.PreFilterRequest{Header: s.header(), PodUid: pod.GetUid()})
	if began.GetRejection() != nil {
		return nil, began.GetRejection().GetReasons()[0]
	}
	found := call(s, pb.NewFilterServiceClient(s.connection).Filter, searchOf(s.header(), 1000))
	if found.GetError() != nil {
		return nil, "error: " + found.GetError().GetReasons()[0]
	}
	for i := range int(found.GetProcessed()) {
		if found.GetFeasible()[i/8]&(1<<(i%8)) != 0 {
			feasible = append(feasible, fmt.Sprintf("node-%d", i))
		}
	}
	if len(feasible) == 0 && len(found.GetReasons()) > 0 {
		reason = found.GetReasons()[0].GetReasons()[0]
	}
	return feasible, reason
}

func (s *fakeShim) postFilter() string {
	s.t.Helper()
	answer := call(s, pb.NewPostFilterServiceClient(s.connection).PostFilter, &pb.PostFilterRequest{Header: s.header()})
	return answer.GetRejection().GetStatus().GetReasons()[0]
}

func (s *fakeShim) score(slots ...uint32) []byte {
	s.t.Helper()
	answer := call(s, pb.NewScoreServiceClient(s.connection).Score, &pb.ScoreRequest{Header: s.header(), Nodes: &pb.NodeSet{Slots: slots}})
	return answer.GetPlugins()[0].GetScores()
}

func (s *fakeShim) reserve(pod *pb.Pod, node string) []*pb.Effect {
	s.t.Helper()
	answer := call(s, pb.NewReserveServiceClient(s.connection).Reserve, &pb.ReserveRequest{Header: s.headerFrom(), PodUid: pod.GetUid(), NodeName: node})
	if answer.GetRejection() != nil {
		s.t.Fatal(answer.GetRejection())
	}
	return answer.GetEffects()
}

func (s *fakeShim) unreserve(pod *pb.Pod, node string) {
	s.t.Helper()
	call(s, pb.NewReserveServiceClient(s.connection).Unreserve, &pb.UnreserveRequest{Header: s.headerFrom(), PodUid: pod.GetUid(), NodeName: node})
}

// devicesOf lists the devices that effects allocate, as POOL/DEVICE.
func devicesOf(t *testing.T, effects []*pb.Effect) []string {
	t.Helper()
	var devices []string
	for _, effect := range effects {
		var patch claimPatch
		if err := json.Unmarshal([]byte(effect.GetPatchObject().GetJson()), &patch); effect.GetPatchObject() != nil && err != nil {
			t.Fatal(err)
		}
		if patch.Status.Allocation == nil {
			continue
		}
		for _, result := range patch.Status.Allocation.Devices.Results {
			devices = append(devices, result.Pool+"/"+result.Device)
		}
	}
	return devices
}

// Changes.

func upsertPod(p *pb.Pod) *pb.Change {
	return &pb.Change{Change: &pb.Change_PodUpsert{PodUpsert: &pb.PodUpsert{Pod: p}}}
}

func placed(p *pb.Pod, state pb.PlacementState, slot uint32, effects ...*pb.Effect) *pb.Change {
	return &pb.Change{Change: &pb.Change_PodPlacement{PodPlacement: &pb.PodPlacement{Uid: p.GetUid(), State: state, Slot: slot, Effects: effects}}}
}

func upsert(t testing.TB, resource string, object metav1.Object) *pb.Change {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return upsertText(resource, object.GetNamespace(), object.GetName(), string(object.GetUID()), string(text))
}

func upsertText(resource, namespace, name, uid, text string) *pb.Change {
	return &pb.Change{Change: &pb.Change_ObjectUpsert{ObjectUpsert: &pb.ClusterObject{Object: &pb.ClusterObject_GenericObject{GenericObject: &pb.GenericObject{
		Resource: resource, Namespace: namespace, Name: name, Uid: uid, ResourceVersion: "1", Json: text,
	}}}}}
}

// Objects.

func podUsing(name string, claims ...string) *pb.Pod {
	p := &pb.Pod{Uid: "uid-" + name, Namespace: "default", Name: name, SchedulerName: "default-scheduler", Containers: []*pb.Container{{Name: "main"}}}
	for _, claim := range claims {
		p.Claims = append(p.Claims, &pb.PodResourceClaim{Name: claim, ClaimName: claim})
	}
	return p
}

func newClaim(name string, requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-claim-" + name), ResourceVersion: "1"},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}},
	}
}

func exactly1(name, class string) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
	}}
}

func newClass(name, expression string) *resourceapi.DeviceClass {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-class-" + name)}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
	return class
}

func gpuClass() *resourceapi.DeviceClass { return newClass("gpu", `device.driver == "`+driver+`"`) }

// newSlice is the slice of one node's pool.
func newSlice(node string, devices ...resourceapi.Device) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node, UID: types.UID("uid-slice-" + node)},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: devices,
		},
	}
}

func device(name string) resourceapi.Device {
	return resourceapi.Device{
		Name:       name,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: &name}},
		Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
	}
}

func devices(count int) []resourceapi.Device {
	var all []resourceapi.Device
	for i := range count {
		all = append(all, device(fmt.Sprintf("gpu-%d", i)))
	}
	return all
}

// showing returns the claim after the API server has applied the effects.
func showing(t testing.TB, c *resourceapi.ResourceClaim, effects []*pb.Effect) *resourceapi.ResourceClaim {
	t.Helper()
	shown := c.DeepCopy()
	for _, effect := range effects {
		patch := effect.GetPatchObject()
		if patch.GetName() != c.Name {
			continue
		}
		var wanted claimPatch
		if err := json.Unmarshal([]byte(patch.GetJson()), &wanted); err != nil {
			t.Fatal(err)
		}
		shown.Finalizers = append(shown.Finalizers, wanted.Metadata.Finalizers...)
		if wanted.Status.Allocation != nil {
			shown.Status.Allocation = wanted.Status.Allocation
		}
		shown.Status.ReservedFor = append(shown.Status.ReservedFor, wanted.Status.ReservedFor...)
	}
	return shown
}

func matchAttribute(name string) resourceapi.DeviceConstraint {
	attribute := resourceapi.FullyQualifiedName(name)
	return resourceapi.DeviceConstraint{MatchAttribute: &attribute}
}

func intAttribute(value int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: &value}
}
