"""The inputs and results of a plugin."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from outboard_plugin import requests
from outboard_plugin.columns import NOT_IN_COLUMNS, Columns
from outboard_plugin.groups import Candidate, Excluded, Group, Placement
from outboard_plugin.objects import DeclaredResource, Object
from outboard_plugin.proto import pb

# A message of the contract (`proto/outboard/v1beta1/types.proto`). Read-only.
Pod = Any
# Sends a SyncResponse to the shim; the text says for logs what it is.
Push = Callable[[Any, str], None]


@dataclasses.dataclass(frozen=True)
class Reject:
    """Rejects a pod, or a pod on a node. `reason` is for users; equal reasons are counted together."""

    reason: str
    code: str = "UNSCHEDULABLE"


def Unschedulable(reason: str) -> Reject:  # noqa: N802: named like the verdict
    """Not now; evicting pods may help."""
    return Reject(reason)


def Unresolvable(reason: str) -> Reject:  # noqa: N802
    """Not now, and evicting pods cannot help."""
    return Reject(reason, "UNSCHEDULABLE_AND_UNRESOLVABLE")


@dataclasses.dataclass(frozen=True)
class Wait:
    """Result of permit: the pod waits on its node for at most `seconds`. See Cluster.allow and Cluster.reject."""

    seconds: float


@dataclasses.dataclass(frozen=True)
class Reserved:
    """Result of reserve: `state` is what the plugin keeps for the pod until the pod is bound or loses its place, at most 4
    KiB, and 16 KiB of all plugins of the host together. Plugin.state_of returns it, also in a host that replaces this one.
    `effects` are the writes before the bind (see outboard_plugin.effects)."""

    state: bytes = b""
    effects: Sequence[Any] = ()


@dataclasses.dataclass(frozen=True)
class NotYet:
    """Result of pre_bind: the pod must not be bound yet. The shim asks again after about a second."""


@dataclasses.dataclass(frozen=True)
class ShimBinds:
    """Result of bind: the shim binds the pod, with these annotations, which the API server copies to the pod."""

    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Bound:
    """Result of bind: the plugin has bound the pod to the node. The shim asks the API server whether that is so."""


class Node:
    """A node and the pods on it. Has the attributes of the contract's Node (`name`, `labels`, `allocatable`, …). Read-only.

    `requested` is the sum of the requests of its pods, a ResourceList with their number. A node that comes with a call (see
    Plugin.inline_nodes) has only the parts in `needed_fields`; other parts are empty.
    """

    slot: int
    message: Any
    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Sequence[Any]
    unschedulable: bool
    allocatable: Any
    capacity: Any  # with conditions and addresses only if in `needed_fields`
    conditions: Sequence[Any]
    addresses: Sequence[Any]
    requested: Any
    pods: Dict[str, Pod]  # by uid: bound, assumed and waiting
    nominated: Dict[str, Pod]

    def __init__(self, slot: int, message: Any, inline: Any = None) -> None:
        self.slot = slot
        self.message = message
        self._inline = inline
        self._crowded = False
        if inline is None:
            self.pods = {}
            self.nominated = {}
        else:
            self._crowded = inline.HasField("nominated_requested") or bool(inline.nominated_pods)

    def __getattr__(self, name: str) -> Any:
        # Called once per attribute: caches the value, because reading a message repeatedly is slow.
        if name in ("labels", "annotations"):
            value: Any = dict(getattr(self.message, name))
        elif name == "requested":
            value = requests.total(self.pods.values()) if self._inline is None else self._inline.requested
        elif name == "pods":
            value = {pod.uid: pod for pod in self._inline.pods}
        elif name == "nominated":
            value = {pod.uid: pod for pod in self._inline.nominated_pods}
        else:
            value = getattr(self.message, name)
        self.__dict__[name] = value
        return value

    def pods_changed(self) -> None:
        """Drops values computed from the pods. For the cluster cache."""
        self.__dict__.pop("requested", None)

    def with_pods(self, pods: Dict[str, Pod]) -> Node:
        """A copy of the node with these pods (by uid) on it."""
        other = Node(self.slot, self.message)
        other.pods = pods
        other.nominated = self.nominated
        return other

    def with_nominated(self, others: Sequence[Pod]) -> Optional[Node]:
        """A copy of the node with the nominated pods that count beside the pod to evaluate; None if there are none. `others`
        are those that the shim named; a node that came with the call has its own."""
        if self._inline is None:
            return self.with_pods({**self.pods, **{other.uid: other for other in others}}) if others else None
        if not self._crowded:
            return None
        inline = self._inline
        node = Node(self.slot, self.message, inline)
        node.pods = {**self.pods, **self.nominated}
        node.requested = requests.both(inline.requested, inline.nominated_requested)
        return node


class Cluster:
    """The cluster cache. Read-only for plugins. Empty if nodes come with each call.

    It changes between two calls of a plugin, and a new snapshot of the shim replaces it: read `self.cluster`, or the argument
    of pre_filter, in each call, and do not keep it."""

    def __init__(self, push: Optional[Push] = None) -> None:
        self.version = 0
        self.pods: Dict[str, Pod] = {}  # by uid, of every scheduler
        self.namespaces: Dict[str, Any] = {}  # by name
        # (kind, namespace, name) → ClusterObject. The kind is Kubernetes': `Service`; of a GenericObject its resource.
        self.objects: Dict[Tuple[str, str, str], Any] = {}
        self.waiting: Dict[str, int] = {}  # uid → attempt_id
        self.states: Dict[str, Dict[str, bytes]] = {}  # uid → plugin → what the plugin keeps, see Plugin.state_of
        self._declared: Dict[str, Dict[Tuple[str, str], Object]] = {}  # resource → (namespace, name) → object
        self._slots: Dict[int, Node] = {}
        self._names: Dict[str, Node] = {}
        self._order: List[int] = []
        self._nodes: Optional[List[Node]] = None  # in order; None after a change
        self._place: Dict[str, Tuple[int, bool]] = {}  # uid → (slot, nominated)
        self._push = push

    @property
    def nodes(self) -> List[Node]:
        """All nodes, in the order in which they are examined."""
        if self._nodes is None:
            self._nodes = [self._slots[slot] for slot in self._order if slot in self._slots]
        return self._nodes

    def node(self, slot: int) -> Optional[Node]:
        return self._slots.get(slot)

    def node_named(self, name: str) -> Optional[Node]:
        return self._names.get(name)

    def find(self, resource: str, name: str, namespace: str = "") -> Optional[Object]:
        """An object of a resource that the plugin declares (Plugin.declared_resources); None if it does not exist."""
        return self._declared.get(resource, {}).get((namespace, name))

    def find_all(self, resource: str) -> List[Object]:
        """All objects of a resource that the plugin declares, of all namespaces, in no particular order."""
        return list(self._declared.get(resource, {}).values())

    def write(self, effect: Any, plugin: str) -> None:
        """Writes or deletes an object of a resource that the plugin declares, or records an event about one, in the background:
        independently of any pod that is being placed. See outboard_plugin.effects.

        Returns at once. The leading shim carries it out once, and not while another write of this plugin with the same key is
        in progress. The outcome shows in the cache; a refused or failed write is also in the host's log. To retry, call again
        after a second at the earliest."""
        kind = effect.WhichOneof("action") if isinstance(effect, pb.Effect) else None
        if kind not in BACKGROUND_WRITES or (kind == "record_event" and not effect.record_event.resource):
            raise ValueError("only writes of objects, and events about objects, can be in the background")
        message = pb.SyncResponse(effect=effect)
        message.effect.plugin = plugin
        self._send(message, f"write {effect.key} of {plugin}")

    def allow(self, pod_uid: str, plugin: str) -> None:
        """Allows a pod that waits at Permit for the plugin."""
        self._decide(pod_uid, plugin, True, "")

    def reject(self, pod_uid: str, plugin: str, message: str) -> None:
        """Gives up a pod that waits at Permit for the plugin."""
        self._decide(pod_uid, plugin, False, message)

    def _decide(self, pod_uid: str, plugin: str, allow: bool, message: str) -> None:
        decision = pb.WaitDecision(
            attempt_id=self.waiting.get(pod_uid, 0), pod_uid=pod_uid, plugin=plugin, allow=allow, message=message
        )
        what = f"the decision that {plugin} {'allows' if allow else 'rejects'} pod {pod_uid}"
        self._send(pb.SyncResponse(wait_decision=decision), what)

    def _send(self, message: Any, what: str) -> None:
        if self._push is None:
            raise RuntimeError("a host without a cluster cache sends nothing on its own")
        self._push(message, what)


# Effects that need no pod, by the names of the contract.
BACKGROUND_WRITES = ("put_object", "patch_object", "delete_object", "record_event")

Verdict = Optional[Reject]


class Plugin:
    """Override the methods of the extension points that the plugin implements."""

    # The name that profiles use; by default the class name.
    name: Optional[str] = None
    # The weight at Score if the profile sets none.
    weight: int = 1
    # Field paths that the plugin reads beyond the contract's: Pod.metadata.annotations['KEY'],
    # Pod.spec.serviceAccountName, Node.status.conditions, … (plugin_host.proto has the list). The shim refuses a plugin
    # with a path that it cannot send. With inline_nodes also the parts of nodes (inline_node.proto):
    # Node.metadata.labels, Node.pods, …; by default labels, taints, allocatable and requested.
    needed_fields: Sequence[str] = ()
    # The same for fields without which the plugin works too: the shim ignores those that it cannot send.
    optional_fields: Sequence[str] = ()
    # (resource, action) of events that may help pods that the plugin rejected: ("Node", "ADD"), ("Node", "UPDATE_NODE_LABEL");
    # of a declared resource ("configmaps.v1", "ADD"), ("configmaps.v1", "UPDATE_OTHER"), ("configmaps.v1", "DELETE").
    wake_up_events: Sequence[Tuple[str, str]] = ()
    # Resources beyond pods, nodes and namespaces whose objects the plugin reads (Cluster.find) or writes: ConfigMaps, custom
    # resources, and others. They need a cluster cache; with inline_nodes a plugin can only write them.
    declared_resources: Sequence[DeclaredResource] = ()
    # The cluster cache, in every method except configure. The host sets it.
    cluster: Cluster = Cluster()
    # Nodes come with each call, and the host has no cluster cache: it starts at once and needs no memory, but calls cost more
    # in large clusters. `cluster` is empty. All plugins of a host must have the same value.
    inline_nodes: bool = False
    # Set before each call. From reserve to post_bind it grows with each change of leader among the shim's replicas: a plugin
    # that writes with credentials of its own sends it along, so that its store can refuse the write of a replica that no
    # longer leads. 0: the shim runs without leader election.
    leader_epoch: int = 0
    # The verdicts of filter_columns.
    filter_reasons: Sequence[Reject] = ()
    # Set by the host, for each profile of a session.
    _find_state: Optional[Callable[[str], bytes]] = None

    def state_of(self, pod: Pod) -> bytes:
        """What the plugin keeps for a pod that has a node and is not bound (Reserved.state); b"" if nothing. For permit to
        bind, and unreserve, also if another host reserved: this one then gets it with the cluster. Always b"" with inline_nodes."""
        return self._find_state(pod.uid) if self._find_state is not None else b""

    def configure(self, args: Any) -> Optional[Sequence[str]]:
        """`args` of the profile's pluginConfig; {} by default. Raise ValueError("field: cause") to reject them; also reject
        unknown arguments. May return warnings, each "field: cause": the shim shows them and uses the arguments all the same.

        Must have no effect outside of the plugin: the shim may only ask whether the arguments are valid."""
        if args:
            raise ValueError(f"{min(args)}: the plugin takes no arguments")
        return None

    def pre_enqueue(self, pod: Pod) -> Verdict:
        """Return Reject to keep the pod out of the active queue."""

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Union[Reject, Collection[str], None]:
        """Return Reject, or the names of the only nodes to check; None: all."""

    def filter(self, pod: Pod, node: Node) -> Verdict:
        """Return Reject, or None if the node can take the pod."""

    def filter_nodes(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[Verdict]:
        """Instead of filter: returns a verdict for each node, in order. A call has some hundred nodes."""
        return [self.filter(pod, node) for node in nodes]

    def filter_columns(self, pod: Pod, columns: Columns) -> Sequence[int]:
        """Instead of filter: returns a number for each node, in order: 0 if it can take the pod, else 1 + an index into
        filter_reasons. With one reason, a sequence or numpy array of booleans will do: whether the node is rejected."""
        raise NotImplementedError

    def score(self, pod: Pod, node: Node) -> int:
        """0 to 100; a larger score is better."""
        return 0

    def score_nodes(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[int]:
        """Instead of score: returns a score for each node, in order; may scale scores to 0 to 100."""
        return [self.score(pod, node) for node in nodes]

    def score_columns(self, pod: Pod, columns: Columns) -> Sequence[int]:
        """Instead of score: returns a score for each node, in order, from 0 to 100."""
        raise NotImplementedError

    def generate_placements(self, group: Group, cluster: Cluster) -> Union[Reject, Sequence[Placement], None]:
        """Return the sets of nodes that could hold the group, in order of preference, at most 256: the group is placed within one
        of them. Or Reject, for the whole group, or None: any nodes. Not with inline_nodes."""

    def score_placements(self, group: Group, candidates: Sequence[Candidate]) -> Sequence[Union[int, Excluded]]:
        """Returns a score for each candidate, in order, from 0 to 100, or Excluded. Not with inline_nodes."""
        raise NotImplementedError

    def reserve(self, pod: Pod, node: Node) -> Union[Reject, Reserved, Sequence[Any], None]:
        """Return Reject to release the node, or the writes that the shim carries out before it binds the pod, in their order
        (see outboard_plugin.effects), or Reserved to also keep bytes for the pod."""

    def unreserve(self, pod: Pod, node: Optional[Node]) -> None:
        """The pod releases the node, whether reserve was called or not. `node` is None if it no longer exists."""

    def permit(self, pod: Pod, node: Node) -> Union[Reject, Wait, None]:
        """Return Reject, Wait, or None to allow the pod. Called again for waiting pods when this host replaces another one or
        restarts."""

    def pre_bind(self, pod: Pod, node: Node, done: Mapping[str, Any]) -> Union[Reject, NotYet, Sequence[Any], None]:
        """Return Reject to release the node, NotYet, writes that the shim carries out before it binds the pod (see
        outboard_plugin.effects), or None if the pod may be bound.

        Called for every pod, after what `reserve` wrote, and again after each write that it returns. `done` has what the plugin
        wrote for the pod: EffectResult by key. Writes that are done are not repeated, so it may return them each time; it may
        return new ones in at most 8 answers. Use only the arguments and the cluster cache: this host may have started after
        `reserve`. Not with inline_nodes."""

    def bind(self, pod: Pod, node: Node) -> Union[Reject, ShimBinds, Bound, None]:
        """Return ShimBinds, Bound, Reject if the bind failed, or None to leave the pod to the profile's next Bind plugin. The call
        holds up other pods."""

    def post_bind(self, pod: Pod, node: Node) -> None:
        """The pod is bound. Information only: at most once for each bind, and sometimes lost."""


# Extension points and the methods that implement them.
METHODS = {
    "PRE_ENQUEUE": ("pre_enqueue",),
    "PRE_FILTER": ("pre_filter",),
    "FILTER": ("filter", "filter_nodes", "filter_columns"),
    "SCORE": ("score", "score_nodes", "score_columns"),
    "RESERVE": ("reserve", "unreserve"),
    "PERMIT": ("permit",),
    "PRE_BIND": ("pre_bind",),
    "BIND": ("bind",),
    "POST_BIND": ("post_bind",),
    "PLACEMENT_GENERATE": ("generate_placements",),
    "PLACEMENT_SCORE": ("score_placements",),
}


def overrides(plugin: Plugin, method: str) -> bool:
    return getattr(type(plugin), method) is not getattr(Plugin, method)


def points_of(plugin: Plugin) -> List[str]:
    """Names of the extension points that the plugin overrides."""
    return [point for point, methods in METHODS.items() if any(overrides(plugin, method) for method in methods)]


def uses_columns(plugins: Sequence[Plugin]) -> bool:
    """Whether all plugins that look at nodes at filter and score do so in columns, and read only what comes in columns."""
    evaluating = [plugin for plugin in plugins if {"FILTER", "SCORE"} & set(points_of(plugin))]
    if any(set(plugin.needed_fields) & NOT_IN_COLUMNS for plugin in plugins):
        return False
    return bool(evaluating) and all(
        overrides(plugin, method + "_columns")
        for plugin in evaluating
        for method in ("filter", "score")
        if method.upper() in points_of(plugin)
    )


def name_of(plugin: Plugin) -> str:
    return plugin.name or type(plugin).__name__
