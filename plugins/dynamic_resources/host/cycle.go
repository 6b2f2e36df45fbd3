package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"

	"google.golang.org/grpc"

	pb "outboard.dev/contract/v1beta1"
)

// Cycle answers all points from PreFilter to Score in one stream, pod by pod, like the separate services.
func (h *host) Cycle(stream grpc.BidiStreamingServer[pb.CycleRequest, pb.CycleResponse]) error {
	var sessionID, instance string
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		header := request.GetHeader()
		if header == nil {
			header = &pb.CallHeader{}
		}
		if sessionID == "" {
			sessionID, instance = header.GetSessionId(), header.GetInstance()
		}
		header.SessionId, header.Instance = sessionID, instance
		if err := stream.Send(h.answerCycle(stream.Context(), request, header)); err != nil {
			return err
		}
	}
}

func (h *host) answerCycle(ctx context.Context, request *pb.CycleRequest, header *pb.CallHeader) (response *pb.CycleResponse) {
	response = &pb.CycleResponse{AttemptId: header.GetAttemptId()}
	defer func() {
		if fault := recover(); fault != nil {
			logFault("Cycle", fault)
			response = &pb.CycleResponse{AttemptId: header.GetAttemptId(), Error: &pb.CallError{Reason: pb.CallError_REASON_INTERNAL, Message: cut(fmt.Sprint(fault))}}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(request.GetDeadlineMicros())*time.Microsecond)
	defer cancel()
	err := h.runCycle(ctx, request, header, response)
	if err == nil {
		return response
	}
	var call callError
	if !errors.As(err, &call) {
		call = callError{&pb.CallError{Reason: pb.CallError_REASON_INTERNAL, Message: cut(err.Error())}}
	}
	return &pb.CycleResponse{AttemptId: header.GetAttemptId(), Error: call.CallError}
}

func (h *host) runCycle(ctx context.Context, request *pb.CycleRequest, header *pb.CallHeader, response *pb.CycleResponse) (err error) {
	_, leave, err := h.enter(ctx, header, exactly) // The duration excludes this wait.
	if err != nil {
		return err
	}
	leave()
	began := time.Now()
	defer func() { response.EvaluationMicros = uint32(time.Since(began).Microseconds()) }()
	response.PreFilter, err = h.PreFilter(ctx, &pb.PreFilterRequest{Header: header, PodUid: request.GetPreFilter().GetPodUid()})
	if err != nil || response.PreFilter.GetRejection() != nil {
		return err
	}
	filter := request.GetFilter()
	if filter == nil {
		filter = &pb.FilterRequest{}
	}
	filter.Header, filter.SimulatedNodes = header, nil
	response.Filter, err = h.Filter(ctx, filter)
	if err != nil || response.Filter.GetError() != nil {
		return err
	}
	feasible, err := h.feasibleOf(ctx, filter, response.Filter)
	least := 2
	if request.GetScoreSingleNode() {
		least = 1
	}
	if err != nil || len(feasible.GetSlots()) < least {
		return err
	}
	response.PreScore = &pb.PreScoreResponse{}
	response.Score, err = h.Score(ctx, &pb.ScoreRequest{Header: header, Nodes: feasible, Explain: request.GetExplain()})
	return err
}

// feasibleOf returns the feasible nodes of an answer, in its order.
func (h *host) feasibleOf(ctx context.Context, request *pb.FilterRequest, answer *pb.FilterResponse) (*pb.NodeSet, error) {
	set := &pb.NodeSet{}
	count := 0
	for _, part := range answer.GetFeasible() {
		count += bits.OnesCount8(part)
	}
	if count == 0 {
		return set, nil
	}
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	nodes, err := s.nodesToEvaluate(request)
	if err != nil {
		return nil, err
	}
	set.Slots = make([]uint32, 0, count)
	for i := range min(int(answer.GetProcessed()), len(nodes)) {
		if answer.GetFeasible()[i/8]&(1<<(i%8)) != 0 {
			set.Slots = append(set.Slots, nodes[i].slot)
		}
	}
	return set, nil
}
