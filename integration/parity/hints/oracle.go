package hints

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerserver "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// The contract's names of events.
var actions = map[string]fwk.ActionType{
	"ADD":                                    fwk.Add,
	"DELETE":                                 fwk.Delete,
	"UPDATE_NODE_ALLOCATABLE":                fwk.UpdateNodeAllocatable,
	"UPDATE_NODE_LABEL":                      fwk.UpdateNodeLabel,
	"UPDATE_NODE_TAINT":                      fwk.UpdateNodeTaint,
	"UPDATE_NODE_DECLARED_FEATURE":           fwk.UpdateNodeDeclaredFeature,
	"UPDATE_POD_LABEL":                       fwk.UpdatePodLabel,
	"UPDATE_POD_SCALE_DOWN":                  fwk.UpdatePodScaleDown,
	"UPDATE_POD_TOLERATION":                  fwk.UpdatePodToleration,
	"UPDATE_POD_SCHEDULING_GATES_ELIMINATED": fwk.UpdatePodSchedulingGatesEliminated,
	"UPDATE_OTHER":                           fwk.Update,
}

// The contract's names of resources that differ from kube-scheduler's.
var resources = map[string]fwk.EventResource{
	"UnscheduledPod":     "UnschedulablePod",
	"CSINode":            fwk.CSINode,
	"CSIDriver":          fwk.CSIDriver,
	"CSIStorageCapacity": fwk.CSIStorageCapacity,
	"StorageClass":       fwk.StorageClass,
	"VolumeAttachment":   fwk.VolumeAttachment,
	"DeviceClass":        fwk.DeviceClass,
}

// Answers returns the hint of kube-scheduler's plugin for each event of a case.
func Answers(ctx context.Context, plugin string, c Case) (map[string]string, error) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	defer cancel()
	registered, err := registrations(ctx, plugin, c)
	if err != nil {
		return nil, err
	}
	pod, err := podOf(c.Pod)
	if err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	answers := map[string]string{}
	for name, event := range c.Events {
		if answers[name], err = answer(registered, pod, event); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return answers, nil
}

// registrations returns what the plugin registers, and what kube-scheduler adds to that.
func registrations(ctx context.Context, plugin string, c Case) ([]fwk.ClusterEventWithHint, error) {
	client := &fake.Clientset{}
	factory := scheduler.NewInformerFactory(client, 0)
	config, err := configOf(plugin, c.Args)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Dir(config))
	loaded, err := schedulerserver.LoadConfigFromFile(klog.FromContext(ctx), config)
	if err != nil {
		return nil, err
	}
	recorder := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	sched, err := scheduler.New(ctx, client, factory, nil, recorder, scheduler.WithProfiles(loaded.Profiles...))
	if err != nil {
		return nil, err
	}
	if err := fill(factory, c.Others); err != nil {
		return nil, err
	}
	for _, extension := range sched.Profiles["default-scheduler"].EnqueueExtensions() {
		if extension.Name() != plugin {
			continue
		}
		registered, err := extension.EventsToRegister(ctx)
		if err != nil {
			return nil, err
		}
		added := func(action fwk.ActionType) bool {
			return slices.ContainsFunc(registered, func(event fwk.ClusterEventWithHint) bool {
				return event.Event.Resource == fwk.Node && event.Event.ActionType&action != 0
			})
		}
		// As in buildQueueingHintMap of pkg/scheduler.
		if added(fwk.Add) && !added(fwk.UpdateNodeTaint) {
			registered = append(registered,
				fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeTaint}})
		}
		return registered, nil
	}
	return nil, fmt.Errorf("%s registers nothing", plugin)
}

// configOf writes a configuration whose profile has this plugin and the required ones.
func configOf(plugin string, args map[string]any) (string, error) {
	enabled := []map[string]any{{"name": "PrioritySort"}, {"name": "DefaultBinder"}, {"name": plugin}}
	profile := map[string]any{"schedulerName": "default-scheduler", "plugins": map[string]any{
		"multiPoint": map[string]any{"disabled": []map[string]any{{"name": "*"}}, "enabled": enabled}}}
	if args != nil {
		profile["pluginConfig"] = []map[string]any{{"name": plugin, "args": args}}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"profiles": []any{profile}})
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "hints")
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "config.json")
	return file, os.WriteFile(file, text, 0o600)
}

// fill adds objects that pods refer to where plugins look for them.
func fill(factory informers.SharedInformerFactory, others []map[string]any) error {
	for _, other := range others {
		for kind, given := range other {
			name := strings.ToUpper(kind[:1]) + kind[1:]
			of := given.(map[string]any)
			if workload, ok := of["kind"].(string); ok {
				name = workload
				of = newFields(of).given
				delete(of, "kind")
				delete(of, "apiVersion")
			}
			object, err := objectOf(name, of)
			if err != nil {
				return err
			}
			var informer cache.SharedIndexInformer
			switch object.(type) {
			case *v1.Service:
				informer = factory.Core().V1().Services().Informer()
			case *appsv1.ReplicaSet:
				informer = factory.Apps().V1().ReplicaSets().Informer()
			default:
				return fmt.Errorf("no informer for %T", object)
			}
			if err := informer.GetIndexer().Add(object); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer is the result of isPodWorthRequeuing of kube-scheduler's queue, for a pod that only this plugin rejected.
func answer(registered []fwk.ClusterEventWithHint, pod *v1.Pod, event Event) (string, error) {
	action, ok := actions[event.Action]
	if !ok {
		return "", fmt.Errorf("unknown action %s", event.Action)
	}
	resource, ok := resources[event.Resource]
	if !ok {
		resource = fwk.EventResource(event.Resource)
	}
	before, err := side(event.Resource, event.Old)
	if err != nil {
		return "", fmt.Errorf("old: %w", err)
	}
	after, err := side(event.Resource, event.New)
	if err != nil {
		return "", fmt.Errorf("new: %w", err)
	}
	result := "not registered"
	for _, one := range registered {
		if !framework.MatchClusterEvents(one.Event, fwk.ClusterEvent{Resource: resource, ActionType: action}) {
			continue
		}
		hint := fwk.Queue
		if one.QueueingHintFn != nil {
			// An error counts as Queue.
			if hint, err = one.QueueingHintFn(logr.Discard(), pod, before, after); err != nil {
				hint = fwk.Queue
			}
		}
		if hint == fwk.Queue {
			return "queue", nil
		}
		result = "skip"
	}
	return result, nil
}

// side is an object before or after an event; nil if it does not exist, as the queue passes it.
func side(resource string, given map[string]any) (any, error) {
	switch {
	case given == nil:
		return nil, nil
	case resource == "Node":
		return nodeOf(given)
	case resource == "AssignedPod" || resource == "UnscheduledPod":
		return podOf(given)
	default:
		return objectOf(resource, given)
	}
}

// feature is a feature that a pod needs according to podOf.
type feature string

func (f feature) Name() string                                   { return string(f) }
func (f feature) Discover(*ndf.NodeConfiguration) bool           { return true }
func (f feature) MaxVersion() *versionutil.Version               { return nil }
func (f feature) InferForUpdate(*ndf.PodInfo, *ndf.PodInfo) bool { return false }
func (f feature) Requirements() *ndf.FeatureRequirements         { return nil }
func (f feature) InferForScheduling(pod *ndf.PodInfo) bool {
	return slices.Contains(strings.Split(pod.Spec.ServiceAccountName, ","), string(f))
}
