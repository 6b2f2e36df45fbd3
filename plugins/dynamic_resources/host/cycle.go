package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	pb "outboard.dev/contract/v1beta1"
)

// Cycle answers all points from PreFilter to Score in one stream, pod by pod, like the separate services.
func (h *host) Cycle(stream grpc.BidiStreamingServer[pb.CycleRequest, pb.CycleResponse]) error {
	var sessionID string
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
			sessionID = header.GetSessionId()
		}
		header.SessionId = sessionID
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
			response.Outcome = &pb.CycleResponse_Error{Error: &pb.CallError{Reason: pb.CallError_REASON_INTERNAL, Message: cut(fmt.Sprint(fault))}}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(request.GetDeadlineMicros())*time.Microsecond)
	defer cancel()
	if err := h.runCycle(ctx, request, header, response); err != nil {
		var call callError
		if !errors.As(err, &call) {
			call = callError{&pb.CallError{Reason: pb.CallError_REASON_INTERNAL, Message: cut(err.Error())}}
		}
		response.Outcome = &pb.CycleResponse_Error{Error: call.CallError}
	}
	return response
}

// runCycle sets the response's outcome, unless it returns an error.
func (h *host) runCycle(ctx context.Context, request *pb.CycleRequest, header *pb.CallHeader, response *pb.CycleResponse) error {
	_, leave, err := h.enter(ctx, header, exactly) // The duration excludes this wait.
	if err != nil {
		return err
	}
	leave()
	began := time.Now()
	defer func() { response.EvaluationMicros = time.Since(began).Microseconds() }()
	preFilter, err := h.PreFilter(ctx, &pb.PreFilterRequest{Header: header, PodUid: request.GetPodUid()})
	if err != nil {
		return err
	}
	if preFilter.GetRejection() != nil {
		response.Outcome = &pb.CycleResponse_Rejection{Rejection: &pb.CycleRejection{PreFilter: preFilter}}
		return nil
	}
	evaluation := &pb.CycleEvaluation{PreFilter: preFilter}
	response.Outcome = &pb.CycleResponse_Evaluation{Evaluation: evaluation}
	var nodes []*node
	evaluation.Filter, err = h.filter(ctx, header, func(s *session) (selection, error) {
		search := request.GetSearch()
		var err error
		nodes, err = s.nodesToSearch(search)
		enough := int(search.GetNumFeasibleNodesToFind())
		if enough == 0 {
			enough = numFeasibleNodesToFind(len(nodes), int(request.GetPercentageOfNodesToScore()))
		}
		return selection{nodes: nodes, enough: enough}, err
	})
	if err != nil || evaluation.Filter.GetError() != nil {
		return err
	}
	feasible := feasibleOf(nodes, evaluation.Filter)
	least := 2
	if request.GetScoreSingleNode() {
		least = 1
	}
	if len(feasible.GetSlots()) < least {
		return nil
	}
	evaluation.PreScore = &pb.PreScoreResponse{}
	evaluation.Score, err = h.Score(ctx, &pb.ScoreRequest{Header: header, Nodes: feasible, Explain: request.GetExplain()})
	return err
}

// numFeasibleNodesToFind is the contract's number for a search that gives none; see
// CycleRequest.percentage_of_nodes_to_score.
func numFeasibleNodesToFind(count, percentage int) int {
	if count < 100 {
		return count
	}
	if percentage == 0 {
		percentage = max(5, 50-count/125)
	}
	return min(count, max(100, count*percentage/100))
}

// feasibleOf returns the feasible ones of the nodes that a Filter evaluated, in their order.
func feasibleOf(nodes []*node, answer *pb.FilterResponse) *pb.NodeSet {
	set := &pb.NodeSet{}
	for i, n := range nodes[:answer.GetProcessed()] {
		if answer.GetFeasible()[i/8]&(1<<(i%8)) != 0 {
			set.Slots = append(set.Slots, n.slot)
		}
	}
	return set
}
