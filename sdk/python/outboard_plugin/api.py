"""What a plugin sees, and what it answers."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Reject:
    """A verdict against a pod, or against a pod on a node. `reason` is for people; equal ones are counted together."""

    reason: str
    code: str = "UNSCHEDULABLE"


def Unschedulable(reason):  # noqa: N802: reads as the verdict that it is
    """Not now; evicting pods may help."""
    return Reject(reason)


def Unresolvable(reason):  # noqa: N802
    """Not now, and evicting pods cannot help."""
    return Reject(reason, "UNSCHEDULABLE_AND_UNRESOLVABLE")


@dataclasses.dataclass(frozen=True)
class Wait:
    """From permit: hold the pod on its node for at most so many seconds. See Cluster.allow and Cluster.reject."""

    seconds: float


class Node:
    """A node and the pods on it. Attributes of the contract's Node (`name`, `labels`, `allocatable`, …) are its own."""

    def __init__(self, slot, message):
        self.slot = slot
        self.message = message
        self.pods = {}  # uid → pod: bound, assumed and waiting
        self.nominated = {}  # uid → pod

    def __getattr__(self, name):
        return getattr(self.message, name)

    def with_pods(self, pods):
        """The same node, as if these pods (by uid) were on it."""
        other = Node(self.slot, self.message)
        other.pods = pods
        return other


class Cluster:
    """The mirror of the cluster. Read-only for plugins."""

    def __init__(self, push=None):
        self.version = 0
        self.pods = {}  # by uid, of every scheduler
        self.namespaces = {}  # by name
        self.objects = {}  # (kind, namespace, name) → ClusterObject
        self.waiting = {}  # uid → attempt_id
        self._slots = {}
        self._order = []
        self._place = {}  # uid → (slot, nominated)
        self._push = push

    @property
    def nodes(self):
        """All nodes, in the order in which they are examined."""
        return [self._slots[slot] for slot in self._order if slot in self._slots]

    def node(self, slot):
        return self._slots.get(slot)

    def allow(self, pod_uid, plugin):
        """Lets a pod go that waits at Permit for the plugin."""
        self._push(self.waiting.get(pod_uid, 0), pod_uid, plugin, True, "")

    def reject(self, pod_uid, plugin, message):
        """Gives up a pod that waits at Permit for the plugin."""
        self._push(self.waiting.get(pod_uid, 0), pod_uid, plugin, False, message)


class Plugin:
    """Override what the plugin does; what is not overridden is no extension point of it."""

    # The name that profiles use; by default that of the class.
    name = None
    # The weight at Score where the profile gives none.
    weight = 1
    # Field paths that the plugin reads beyond the contract's: Pod.metadata.annotations['KEY'], Node.metadata.annotations['KEY'].
    needed_fields = ()
    # (resource, action) of events that may help pods which the plugin rejected: ("Node", "ADD"), ("Node", "UPDATE_NODE_LABEL").
    wake_up_events = ()

    def configure(self, args):
        """`args` of the profile's pluginConfig; {} where it has none. ValueError("field: what is wrong") refuses them; arguments that the plugin
        does not know are to be refused, too."""
        if args:
            raise ValueError(f"{min(args)}: the plugin takes no arguments")

    def pre_enqueue(self, pod):
        """Reject keeps the pod out of the active queue."""

    def pre_filter(self, pod, cluster):
        """Reject, or a collection of names of the only nodes to be judged; None: all."""

    def filter(self, pod, node):
        """Reject, or None where the node can take the pod."""

    def score(self, pod, node):
        """0 to 100; a larger score is better."""

    def reserve(self, pod, node):
        """Reject gives the node back."""

    def unreserve(self, pod, node):
        """The pod gives the node back, whether reserve was called or not. `node` may be None."""

    def permit(self, pod, node):
        """Reject, or Wait, or None: go ahead."""


POINTS = {
    "pre_enqueue": "PRE_ENQUEUE",
    "pre_filter": "PRE_FILTER",
    "filter": "FILTER",
    "score": "SCORE",
    "reserve": "RESERVE",
    "permit": "PERMIT",
}


def points_of(plugin):
    """Names of the extension points that the plugin overrides."""
    points = [
        point for method, point in POINTS.items() if getattr(type(plugin), method) is not getattr(Plugin, method)
    ]
    if type(plugin).unreserve is not Plugin.unreserve and "RESERVE" not in points:
        points.append("RESERVE")
    return points


def name_of(plugin):
    return plugin.name or type(plugin).__name__
