package main

import pb "outboard.dev/contract/v1beta1"

var points = []pb.ExtensionPoint{
	pb.ExtensionPoint_EXTENSION_POINT_PRE_ENQUEUE, pb.ExtensionPoint_EXTENSION_POINT_PRE_FILTER, pb.ExtensionPoint_EXTENSION_POINT_FILTER, pb.ExtensionPoint_EXTENSION_POINT_POST_FILTER, pb.ExtensionPoint_EXTENSION_POINT_SCORE,
	pb.ExtensionPoint_EXTENSION_POINT_RESERVE, pb.ExtensionPoint_EXTENSION_POINT_PRE_BIND,
}

// info describes the plugin to the shim.
func info() *pb.PluginInfo {
	type verb = pb.DeclaredResource_Verb
	event := func(resource string, actions ...pb.ClusterEvent_Action) *pb.ClusterEvent {
		return &pb.ClusterEvent{Resource: resource, Actions: actions}
	}
	claims := []string{"spec.resourceClaims"}
	// Reserve and all points before it also serve pods with extended resources that a class provides.
	orResources := append(claims[:1:1], "spec.containers[*].resources.requests[deviceClass]")
	return &pb.PluginInfo{
		Name: pluginName, ExtensionPoints: points, ArgsSchema: argsSchema,
		WakeUpEvents: []*pb.ClusterEvent{
			event("Node", pb.ClusterEvent_ACTION_ADD, pb.ClusterEvent_ACTION_UPDATE_NODE_LABEL, pb.ClusterEvent_ACTION_UPDATE_NODE_ALLOCATABLE),
			event("Pod", pb.ClusterEvent_ACTION_UPDATE_OTHER), // Its status names a claim generated for it.
			event(claimResource, pb.ClusterEvent_ACTION_ADD, pb.ClusterEvent_ACTION_UPDATE_OTHER, pb.ClusterEvent_ACTION_DELETE),
			event(classResource, pb.ClusterEvent_ACTION_ADD, pb.ClusterEvent_ACTION_UPDATE_OTHER),
			event(sliceResource, pb.ClusterEvent_ACTION_ADD, pb.ClusterEvent_ACTION_UPDATE_OTHER),
		},
		Interests: []*pb.Interest{
			{ExtensionPoint: pb.ExtensionPoint_EXTENSION_POINT_PRE_ENQUEUE, AnyFieldSet: claims},
			{ExtensionPoint: pb.ExtensionPoint_EXTENSION_POINT_PRE_FILTER, AnyFieldSet: orResources, PostFilterReason: nothingToDeallocate},
			{ExtensionPoint: pb.ExtensionPoint_EXTENSION_POINT_RESERVE, AnyFieldSet: orResources},
		},
		DeclaredResources: []*pb.DeclaredResource{
			{Resource: claimResource, Verbs: []verb{pb.DeclaredResource_VERB_CREATE, pb.DeclaredResource_VERB_DELETE, pb.DeclaredResource_VERB_PATCH, pb.DeclaredResource_VERB_PATCH_STATUS}},
			{Resource: sliceResource},
			{Resource: classResource},
		},
	}
}
