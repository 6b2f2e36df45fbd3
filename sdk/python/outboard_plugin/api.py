"""What a plugin sees, and what it answers."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from outboard_plugin import requests

# A message of the contract (`proto/outboard/v1alpha1/types.proto`). Read-only.
Pod = Any
Push = Callable[[int, str, str, bool, str], None]


@dataclasses.dataclass(frozen=True)
class Reject:
    """A verdict against a pod, or against a pod on a node. `reason` is for people; equal ones are counted together."""

    reason: str
    code: str = "UNSCHEDULABLE"


def Unschedulable(reason: str) -> Reject:  # noqa: N802: reads as the verdict that it is
    """Not now; evicting pods may help."""
    return Reject(reason)


def Unresolvable(reason: str) -> Reject:  # noqa: N802
    """Not now, and evicting pods cannot help."""
    return Reject(reason, "UNSCHEDULABLE_AND_UNRESOLVABLE")


@dataclasses.dataclass(frozen=True)
class Wait:
    """From permit: hold the pod on its node for at most so many seconds. See Cluster.allow and Cluster.reject."""

    seconds: float


class Node:
    """A node and the pods on it. Attributes of the contract's Node (`name`, `labels`, `allocatable`, …) are its own. Read-only.

    `requested` is what the pods on it ask for together, a ResourceList with their number. What comes with a call (see
    Plugin.inline_nodes) has the parts that were asked for; others are empty.
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
        # Comes here once for each attribute that somebody reads: reading a message again and again is slow.
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
        """What was computed from them is computed again. For the mirror."""
        self.__dict__.pop("requested", None)

    def with_pods(self, pods: Dict[str, Pod]) -> Node:
        """The same node, as if these pods (by uid) were on it."""
        other = Node(self.slot, self.message)
        other.pods = pods
        other.nominated = self.nominated
        return other

    def with_nominated(self, pod: Pod) -> Optional[Node]:
        """The same node, as if the other pods that it is kept in mind for, and that count beside `pod`, were on it; None if there are none."""
        if self._inline is None:
            if not self.nominated:
                return None
            others = {
                uid: other for uid, other in self.nominated.items() if uid != pod.uid and other.priority >= pod.priority
            }
            return self.with_pods({**self.pods, **others}) if others else None
        if not self._crowded:
            return None
        inline = self._inline
        node = Node(self.slot, self.message, inline)
        node.pods = {**self.pods, **self.nominated}
        node.requested = requests.both(inline.requested, inline.nominated_requested)
        return node


class Cluster:
    """The mirror of the cluster. Read-only for plugins. Empty where nodes come with the call."""

    def __init__(self, push: Optional[Push] = None) -> None:
        self.version = 0
        self.pods: Dict[str, Pod] = {}  # by uid, of every scheduler
        self.namespaces: Dict[str, Any] = {}  # by name
        self.objects: Dict[Tuple[str, str, str], Any] = {}  # (kind, namespace, name) → ClusterObject
        self.waiting: Dict[str, int] = {}  # uid → attempt_id
        self._slots: Dict[int, Node] = {}
        self._names: Dict[str, Node] = {}
        self._order: List[int] = []
        self._nodes: Optional[List[Node]] = None  # in order, while nothing changes there
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

    def allow(self, pod_uid: str, plugin: str) -> None:
        """Lets a pod go that waits at Permit for the plugin."""
        self._decide(pod_uid, plugin, True, "")

    def reject(self, pod_uid: str, plugin: str, message: str) -> None:
        """Gives up a pod that waits at Permit for the plugin."""
        self._decide(pod_uid, plugin, False, message)

    def _decide(self, pod_uid: str, plugin: str, allow: bool, message: str) -> None:
        if self._push is None:
            raise RuntimeError("a host without a mirror cannot decide on its own")
        self._push(self.waiting.get(pod_uid, 0), pod_uid, plugin, allow, message)


Verdict = Optional[Reject]


class Plugin:
    """Override what the plugin does; what is not overridden is no extension point of it."""

    # The name that profiles use; by default that of the class.
    name: Optional[str] = None
    # The weight at Score where the profile gives none.
    weight: int = 1
    # Field paths that the plugin reads beyond the contract's: Pod.metadata.annotations['KEY'], Node.metadata.annotations['KEY']; and with
    # inline_nodes which parts of nodes come (inline_node.proto): Node.metadata.labels, Node.pods, … By default labels, taints, allocatable and requested.
    needed_fields: Sequence[str] = ()
    # (resource, action) of events that may help pods which the plugin rejected: ("Node", "ADD"), ("Node", "UPDATE_NODE_LABEL").
    wake_up_events: Sequence[Tuple[str, str]] = ()
    # Nodes come with each call, instead of a mirror that is kept up to date: starts at once, needs no memory, and costs more in large
    # clusters. For all plugins of a host or for none. There is no `cluster` then.
    inline_nodes: bool = False

    def configure(self, args: Any) -> None:
        """`args` of the profile's pluginConfig; {} where it has none. ValueError("field: what is wrong") refuses them; arguments that the
        plugin does not know are to be refused, too."""
        if args:
            raise ValueError(f"{min(args)}: the plugin takes no arguments")

    def pre_enqueue(self, pod: Pod) -> Verdict:
        """Reject keeps the pod out of the active queue."""

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Union[Reject, Collection[str], None]:
        """Reject, or a collection of names of the only nodes to be judged; None: all."""

    def filter(self, pod: Pod, node: Node) -> Verdict:
        """Reject, or None where the node can take the pod."""

    def filter_nodes(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[Verdict]:
        """Instead of filter: a verdict for each node, in order. Some hundred nodes a call, so that one answer takes few calls."""
        return [self.filter(pod, node) for node in nodes]

    def score(self, pod: Pod, node: Node) -> int:
        """0 to 100; a larger score is better."""
        return 0

    def score_nodes(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[int]:
        """Instead of score: a score for each node, in order; also the place to scale scores to 0 to 100."""
        return [self.score(pod, node) for node in nodes]

    def reserve(self, pod: Pod, node: Node) -> Verdict:
        """Reject gives the node back."""

    def unreserve(self, pod: Pod, node: Optional[Node]) -> None:
        """The pod gives the node back, whether reserve was called or not. `node` is None where it is gone."""

    def permit(self, pod: Pod, node: Node) -> Union[Reject, Wait, None]:
        """Reject, or Wait, or None: go ahead. Asked again about pods that wait when this host takes the place of another one, or comes back."""


# Which methods, overridden, make a plugin one of an extension point.
METHODS = {
    "PRE_ENQUEUE": ("pre_enqueue",),
    "PRE_FILTER": ("pre_filter",),
    "FILTER": ("filter", "filter_nodes"),
    "SCORE": ("score", "score_nodes"),
    "RESERVE": ("reserve", "unreserve"),
    "PERMIT": ("permit",),
}


def overrides(plugin: Plugin, method: str) -> bool:
    return getattr(type(plugin), method) is not getattr(Plugin, method)


def points_of(plugin: Plugin) -> List[str]:
    """Names of the extension points that the plugin overrides."""
    return [point for point, methods in METHODS.items() if any(overrides(plugin, method) for method in methods)]


def name_of(plugin: Plugin) -> str:
    return plugin.name or type(plugin).__name__
