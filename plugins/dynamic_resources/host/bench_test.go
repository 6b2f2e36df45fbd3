package main

import (
	"context"
	"fmt"
	"testing"

	pb "outboard.dev/contract/v1beta1"
)

// BenchmarkPods places pods, each with its own claim, as a shim does: one cycle, one call and two messages per pod.
func BenchmarkPods(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) { benchmarkPods(b, nodes) })
	}
}

func benchmarkPods(b *testing.B, nodes int) {
	connection := startHost(b)
	ctx := context.Background()
	profile := &pb.ProfileConfig{Name: "default-scheduler"}
	if _, err := pb.NewPluginHostServiceClient(connection).Configure(ctx, &pb.ConfigureRequest{
		SessionId: "bench", Instance: "claims-test", Profiles: []*pb.ProfileConfig{profile},
	}); err != nil {
		b.Fatal(err)
	}
	stream, err := pb.NewClusterStateServiceClient(connection).Sync(ctx)
	if err != nil {
		b.Fatal(err)
	}
	version := int64(1)
	send := func(request *pb.SyncRequest) {
		request.Version = version
		if request.Phase == pb.SyncRequest_PHASE_UNSPECIFIED {
			request.Phase = pb.SyncRequest_PHASE_DELTA
		}
		if err := stream.Send(request); err != nil {
			b.Fatal(err)
		}
		if request.Phase != pb.SyncRequest_PHASE_SNAPSHOT_END {
			return // As a shim, whose calls name the version.
		}
		for {
			response, err := stream.Recv()
			if err != nil {
				b.Fatal(err)
			}
			if response.GetAck().GetVersion() == version {
				return
			}
		}
	}
	snapshot := snapshotOf(b, nodes)
	send(snapshot)
	send(&pb.SyncRequest{Phase: pb.SyncRequest_PHASE_SNAPSHOT_END})
	reserve := pb.NewReserveServiceClient(connection)
	cycles, err := pb.NewCycleServiceClient(connection).Cycle(ctx)
	if err != nil {
		b.Fatal(err)
	}
	offset := uint32(0)
	b.ResetTimer()
	for i := range b.N {
		name := fmt.Sprintf("pod-%d", i)
		p := podUsing(name, name)
		c := newClaim(name, exactly1("gpu", "gpu"))
		version++
		send(&pb.SyncRequest{Changes: []*pb.Change{upsert(b, claimResource, c), upsertPod(p)}})
		header := &pb.CallHeader{SessionId: "bench", AttemptId: uint64(i + 1), Version: &pb.CallHeader_ExactVersion{ExactVersion: version}, Profile: "default-scheduler"}
		if err := cycles.Send(&pb.CycleRequest{Header: header, DeadlineMicros: 1e6, PodUid: p.GetUid(), Search: &pb.NodeSearch{StartOffset: offset}}); err != nil {
			b.Fatal(err)
		}
		fused, err := cycles.Recv()
		if err != nil || fused.GetEvaluation() == nil {
			b.Fatal(err, fused)
		}
		found := fused.GetEvaluation().GetFilter()
		var feasible []uint32
		for at := range found.GetProcessed() {
			if found.GetFeasible()[at/8]&(1<<(at%8)) != 0 {
				feasible = append(feasible, (offset+at)%uint32(nodes))
			}
		}
		if len(feasible) == 0 {
			b.Skipf("full after %d pods", i)
		}
		offset = (offset + found.GetProcessed()) % uint32(nodes)
		answer, err := reserve.Reserve(ctx, &pb.ReserveRequest{Header: header, PodUid: p.GetUid(), NodeName: fmt.Sprintf("node-%d", feasible[i%len(feasible)])})
		if err != nil {
			b.Fatal(err)
		}
		version++
		send(&pb.SyncRequest{EndedAttempts: []uint64{uint64(i + 1)}, Changes: []*pb.Change{
			placed(p, pb.PlacementState_PLACEMENT_STATE_ASSUMED, feasible[i%len(feasible)], answer.GetEffects()...), upsert(b, claimResource, showing(b, c, answer.GetEffects())),
		}})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pods/s")
}

func snapshotOf(b *testing.B, nodes int) *pb.SyncRequest {
	snapshot := &pb.SyncRequest{SessionId: "bench", Phase: pb.SyncRequest_PHASE_SNAPSHOT_BEGIN, NodeOrder: &pb.NodeOrder{}, Changes: []*pb.Change{upsert(b, classResource, gpuClass())}}
	for i := range nodes {
		snapshot.Changes = append(snapshot.Changes, &pb.Change{Change: &pb.Change_NodeUpsert{NodeUpsert: &pb.NodeUpsert{Slot: uint32(i), Node: nodeNamed(i)}}},
			upsert(b, sliceResource, newSlice(fmt.Sprintf("node-%d", i), devices(10)...)))
		snapshot.NodeOrder.Slots = append(snapshot.NodeOrder.Slots, uint32(i))
	}
	return snapshot
}
