// The help texts of `outboard simulate`.
#include "cli/simulate/command.h"

namespace outboard::simulate {

const char kSimulateHelp[] = R"(outboard simulate: where would these pods go, and why?

Schedules pods from manifests on nodes from manifests, with the scheduler's own queue and cycle and
a real plugin host. Needs no cluster, and changes none.

Examples:
  outboard simulate --cluster cluster.yaml --pods pods.yaml
      Tries each pod once, and says where it goes or why it goes nowhere
  kubectl get nodes,pods -A -o yaml | outboard simulate --cluster - --pods mine.yaml
      The same on the nodes and running pods of your cluster
  outboard simulate --cluster cluster.yaml --pods pods.yaml --explain web-1
      The whole story of one pod: what each node said, and each plugin's score
  outboard simulate --cluster cluster.yaml --pods pods.yaml --until-settled
      Victims leave, pods are tried again: where does it all end?
  outboard simulate --cluster cluster.yaml --pods pods.yaml --config old.yaml --diff new.yaml
      Which pods would another configuration place elsewhere, and why?
  outboard simulate --cluster cluster.yaml --pods pods.yaml --config mine.yaml \
      --host unix:py.sock --host unix:host.sock
      With your own plugin: py.sock serves it, host.sock (outboard-host) serves all others
  outboard simulate --cluster cluster.yaml --trace trace.jsonl --interval 3600
      Hours of a cluster: jobs arrive, run, end and are preempted on a virtual clock

Usage:
  outboard simulate --cluster FILE... --pods FILE... [flags]
  outboard simulate --cluster FILE... --trace FILE... [flags]

Input:
  --cluster FILE...      Nodes, running pods (with spec.nodeName) and the other kinds below, in YAML
                         or JSON; lists and several documents are allowed. FILE may be a directory
                         (its *.yaml, *.yml and *.json) or - (standard input)
  --pods FILE...         Pods to schedule; queued in this order, then by priority. FILE as above.
                         Pods that have a node or have ended, or whose schedulerName no profile has,
                         are skipped
  --strict               Unknown fields in manifests are errors, not warnings
  --config FILE          KubeSchedulerConfiguration with profiles and plugin arguments (default:
                         kube-scheduler's defaults)
  --scheduler-name NAME  Schedule all pods with the profile NAME, whatever their spec.schedulerName
  --host ADDRESS         Use the plugin host at unix:PATH (default: start one). May be repeated:
                         each plugin runs on the first host that serves it, as with several hosts
                         in a ShimConfiguration
  --host-binary PATH     The plugin host to start (default: outboard-host beside this program, else
                         on PATH)

Kinds that are read: Pod, Node, Namespace, PriorityClass, Service, ReplicationController,
ReplicaSet, StatefulSet, PodDisruptionBudget, PersistentVolume, PersistentVolumeClaim, StorageClass,
CSINode, CSIDriver, CSIStorageCapacity, VolumeAttachment, DeviceClass; for plugins also
ResourceClaim, ResourceSlice, PodGroup and custom resources that customResources of the
configuration name. Other kinds of Kubernetes are skipped with a warning. No pods are created from
Deployments, Jobs and other workloads: give Pods.

What to do with the pods:
  --until-settled        Try unschedulable pods again: victims of preemption leave, events move pods
                         in the queue, and virtual time passes for backoff. Ends when no pod can be
                         tried any more, when no pod was bound or evicted for ten minutes of virtual
                         time, or after 100 attempts a pod; the last line says which
  --explain POD          Print only the story of this pod, NAME or NAMESPACE/NAME: the verdict of
                         each node, and scores by plugin with weights
  --diff CONFIG          Simulate again with this configuration, and print only the pods whose
                         result, node or victims differ
  --diff-host ADDRESS    The same with another plugin host; may be repeated, as --host

Traces (`outboard simulate --help trace`: their format; `outboard generate-workload` makes some):
  --trace FILE...        Jobs with arrival and run times. Prints how long jobs waited, what was in
                         use, and what was lost
  --from SECONDS, --to SECONDS
                         Limits the summary to jobs that arrive between these times, and to the use
                         of the cluster between them (default: from 0 to the end)
  --until SECONDS        Ends the simulation at this time; pods wait until then (default: ten
                         minutes after the last event, if pods wait)
  --most-waiting N       Ends the simulation once more than N pods wait, because they arrive faster
                         than they can run, or block each other
  --equivalence-cache    Skips attempts at pods that are equivalent to a pod which has just found no
                         node, until that pod finds one. Several times as fast if many pods wait
  --interval SECONDS     Also prints the use of the cluster for each interval of this length

Output:
  -o, --output FORMAT    table (default) or json: one object per line, printed when an attempt ends;
                         `outboard simulate --help output` describes its fields. With --trace one
                         per job, then one per interval, then the summary
  -v, --v, --verbose [LEVEL]
                         Show the log on standard error, at LEVEL 0 to 10 (default: 0); 4 shows
                         every score term. Without this flag nothing is logged
  -h, --help             Print this text

On a terminal the table has colors (unless NO_COLOR is set) and its width; elsewhere it is plain
text of 100 columns.

Exit codes:
  0   simulated, with any result for the pods; with --diff: no pod differs
  1   the simulation failed; with --diff: pods differ
  2   invalid usage or input; with --diff also: a simulation failed
)";

const char kOutputHelp[] = R"(outboard simulate -o json: one object per line

Each line is an attempt at a pod, in the order in which the attempts end. A pod that waits at Permit
has its line when the wait ends. Pods without an attempt come last. Each pod has one line; with
--until-settled one for each attempt, and the last one counts.

Fields:
  pod            namespace/name
  result         scheduled      it has a node
                 preempting     it has none, and evicts pods on a node that is nominated for it, or
                                its group does
                 unschedulable  no node can take it, or PreEnqueue gates it
                 error          a plugin or its host failed
                 preempted      with --until-settled: it had a node and was evicted
                 skipped        not for this scheduler to place; `message` says why
  node           the node that it got; of a skipped pod its node
  message        empty if it was scheduled, else why not, in kube-scheduler's words
  filter         the nodes that rejected it: {code, plugin, reasons}. code is Unschedulable,
                 UnschedulableAndUnresolvable, Pending or Error; an empty plugin: PreFilter excluded
                 the node
  scores         the nodes that were scored: {total, plugins, terms}. plugins are weighted scores;
                 terms, if a plugin reports them, the parts of its raw score
  nominatedNode  the node on which it preempts; else empty
  victims        the pods that it evicts, for its group also elsewhere
  effects        what plugins ordered before the bind: {put | patch | delete: {resource, namespace,
                 name, status, body}}; {patchPod: {setAnnotations, removeAnnotations, setLabels,
                 removeLabels}}; {condition: {type, status, reason, message}}; {event: {resource,
                 namespace, name, type, reason, action, note}}; absent without any
  priority       spec.priority
  scheduler      spec.schedulerName, which names the profile
  attempt        from 1; 0: it was not tried
  time           seconds of virtual time since the simulation began
  reasons        how many nodes each reason excluded
  group          {name, pods}: the group with which it was placed in one pass; absent if alone
  why            the essence, as in the table

With --diff a line is {pod, before, after}; before and after have these fields.
With --explain there is one object {pod, attempts}, the newest attempt first, with these fields and
profile, nodes, evaluatedNodes, feasibleNodes and weights, as of `outboard explain -o json`.

cli/simulate/output.schema.json in the repository is the JSON schema.
)";

}  // namespace outboard::simulate
