package main

import (
	"encoding/json"
	"net/http"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// serve accepts every node and scores all the same, with the types and the library of extenders in Go.
func serve(address string) error {
	http.HandleFunc("POST /filter", func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, extenderv1.ExtenderFilterResult{Nodes: args.Nodes, NodeNames: args.NodeNames})
	})
	http.HandleFunc("POST /prioritize", func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		priorities := extenderv1.HostPriorityList{}
		if args.NodeNames != nil {
			for _, name := range *args.NodeNames {
				priorities = append(priorities, extenderv1.HostPriority{Host: name})
			}
		}
		if args.Nodes != nil {
			for _, node := range args.Nodes.Items {
				priorities = append(priorities, extenderv1.HostPriority{Host: node.Name})
			}
		}
		answer(w, priorities)
	})
	return http.ListenAndServe(address, nil)
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
