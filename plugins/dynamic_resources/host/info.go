package main

import pb "outboard.dev/contract"

var points = []pb.ExtensionPoint{
	pb.ExtensionPoint_PRE_ENQUEUE, pb.ExtensionPoint_PRE_FILTER, pb.ExtensionPoint_FILTER, pb.ExtensionPoint_POST_FILTER, pb.ExtensionPoint_SCORE,
	pb.ExtensionPoint_RESERVE, pb.ExtensionPoint_PRE_BIND,
}

// info describes the plugin to the shim.
func info() *pb.PluginInfo {
	type verb = pb.CustomResource_Verb
	event := func(resource string, actions ...pb.ClusterEvent_Action) *pb.ClusterEvent {
		return &pb.ClusterEvent{Resource: resource, Actions: actions}
	}
	claims := []string{"spec.resourceClaims"}
	// Reserve and all points before it also serve pods with extended resources that a class provides.
	orResources := append(claims[:1:1], "spec.containers[*].resources.requests[deviceClass]")
	return &pb.PluginInfo{
		Name: pluginName, ExtensionPoints: points, ArgsSchema: argsSchema,
		WakeUpEvents: []*pb.ClusterEvent{
			event("Node", pb.ClusterEvent_ADD, pb.ClusterEvent_UPDATE_NODE_LABEL, pb.ClusterEvent_UPDATE_NODE_ALLOCATABLE),
			event("Pod", pb.ClusterEvent_UPDATE_OTHER), // Its status names a claim generated for it.
			event(claimResource, pb.ClusterEvent_ADD, pb.ClusterEvent_UPDATE_OTHER, pb.ClusterEvent_DELETE),
			event(classResource, pb.ClusterEvent_ADD, pb.ClusterEvent_UPDATE_OTHER),
			event(sliceResource, pb.ClusterEvent_ADD, pb.ClusterEvent_UPDATE_OTHER),
		},
		Interests: []*pb.Interest{
			{ExtensionPoint: pb.ExtensionPoint_PRE_ENQUEUE, AnyFieldSet: claims},
			{ExtensionPoint: pb.ExtensionPoint_PRE_FILTER, AnyFieldSet: orResources, PostFilterReason: nothingToDeallocate},
			{ExtensionPoint: pb.ExtensionPoint_RESERVE, AnyFieldSet: orResources},
		},
		CustomResources: []*pb.CustomResource{
			{Resource: claimResource, Verbs: []verb{pb.CustomResource_CREATE, pb.CustomResource_DELETE, pb.CustomResource_PATCH, pb.CustomResource_PATCH_STATUS}},
			{Resource: sliceResource},
			{Resource: classResource},
		},
	}
}
