"""Applies the shim's changes to a Cluster."""

from __future__ import annotations

from typing import Any, Dict, Optional

from outboard_plugin.api import Cluster, Node, Push
from outboard_plugin.objects import Object
from outboard_plugin.proto import pb


class CacheError(Exception):
    """A change that contradicts the cluster cache."""


class ClusterCache:
    """The cluster cache. A snapshot takes effect once its last chunk is applied.

    Threading: the caller's lock.
    """

    def __init__(self, push: Optional[Push] = None) -> None:
        self._push = push
        self._snapshot = 0  # version of the snapshot in progress
        self._reset()

    def _reset(self) -> None:
        self.cluster = Cluster(self._push)
        self._homeless: Dict[str, Dict[str, None]] = {}  # name of an unknown node → uids of its pods, as keys

    def apply(self, request: Any) -> None:
        self._check_order(request)
        for change in request.changes:
            self._change(change)
        if request.HasField("node_order"):
            slots = list(request.node_order.slots)
            if sorted(slots) != sorted(self.cluster._slots):
                raise CacheError("the node order is not a permutation of the occupied slots")
            self.cluster._order = slots
            self.cluster._nodes = None
        if request.phase in (pb.SyncRequest.PHASE_DELTA, pb.SyncRequest.PHASE_SNAPSHOT_END):
            self._snapshot = 0
            self.cluster.version = request.version

    def _check_order(self, request: Any) -> None:
        phases = pb.SyncRequest
        if request.version < 1:
            raise CacheError("version must be at least 1")
        if request.phase == phases.PHASE_SNAPSHOT_BEGIN:
            self._reset()
            self._snapshot = request.version
        elif request.phase in (phases.PHASE_SNAPSHOT_MORE, phases.PHASE_SNAPSHOT_END):
            if self._snapshot != request.version:
                raise CacheError("a chunk of a snapshot without its beginning, or of another version")
        elif request.phase != phases.PHASE_DELTA:
            raise CacheError("unknown phase")
        elif self.cluster.version == 0:
            raise CacheError("a change before a complete snapshot")
        elif request.version < self.cluster.version:
            raise CacheError(f"version falls from {self.cluster.version} to {request.version}")

    def _change(self, change: Any) -> None:
        kind = change.WhichOneof("change")
        handler = getattr(self, "_" + kind, None) if kind else None
        # The contract requires that unknown changes are ignored.
        if handler is not None:
            handler(getattr(change, kind))

    def _node_upsert(self, upsert: Any) -> None:
        cluster = self.cluster
        node = Node(upsert.slot, upsert.node)
        old = cluster._slots.get(upsert.slot)
        if old is not None and (old.uid != node.uid or old.name != node.name):
            raise CacheError(f"slot {upsert.slot} is occupied by {old.name}")
        if old is None and (not node.name or node.name in cluster._names):
            raise CacheError(f"node {node.name} has no name, or is in another slot already")
        cluster._slots[upsert.slot] = node
        cluster._names[node.name] = node
        cluster._nodes = None
        if old is not None:
            node.pods, node.nominated = old.pods, old.nominated
            return
        cluster._order.append(upsert.slot)
        # Add the pods that arrived before their node.
        for uid in self._homeless.pop(node.name, ()):
            if cluster.pods[uid].node_name == node.name:
                self._put(uid, upsert.slot, nominated=False)

    def _node_remove(self, remove: Any) -> None:
        cluster = self.cluster
        node = cluster._slots.pop(remove.slot, None)
        if node is None:
            raise CacheError(f"no node in slot {remove.slot}")
        cluster._nodes = None
        cluster._order.remove(remove.slot)
        del cluster._names[node.name]
        for uid in (*node.pods, *node.nominated):
            del cluster._place[uid]
        # If the node returns, its bound pods are added again.
        self._homeless[node.name] = {uid: None for uid, pod in node.pods.items() if pod.node_name == node.name}

    def _pod_upsert(self, upsert: Any) -> None:
        cluster = self.cluster
        pod = upsert.pod
        if not pod.uid:
            raise CacheError("a pod without a uid")
        # Before the pod is replaced, because _homeless is keyed by the old pod's node name.
        self._leave_home(pod.uid)
        cluster.pods[pod.uid] = pod
        place = cluster._place.get(pod.uid)
        if pod.node_name:
            self._take(pod.uid)
            cluster.waiting.pop(pod.uid, None)
            cluster.states.pop(pod.uid, None)
            node = cluster._names.get(pod.node_name)
            if node is not None:
                self._put(pod.uid, node.slot, nominated=False)
            else:
                self._homeless.setdefault(pod.node_name, {})[pod.uid] = None
        elif place is not None:
            self._put(pod.uid, *place)

    def _pod_remove(self, remove: Any) -> None:
        # An unknown pod was added and removed between two messages.
        self._take(remove.uid)
        self._leave_home(remove.uid)
        self.cluster.pods.pop(remove.uid, None)
        self.cluster.waiting.pop(remove.uid, None)
        self.cluster.states.pop(remove.uid, None)

    def _pod_placement(self, placement: Any) -> None:
        uid, state = placement.uid, placement.state
        if uid not in self.cluster.pods:
            raise CacheError(f"no pod {uid}")
        self._take(uid)
        self.cluster.waiting.pop(uid, None)
        self.cluster.states.pop(uid, None)
        if state == pb.PLACEMENT_STATE_UNPLACED:
            return
        if state not in (pb.PLACEMENT_STATE_ASSUMED, pb.PLACEMENT_STATE_WAITING, pb.PLACEMENT_STATE_NOMINATED, pb.PLACEMENT_STATE_BOUND):
            raise CacheError("unknown placement state")
        node = self.cluster._slots.get(placement.slot)
        if node is None:
            raise CacheError(f"no node in slot {placement.slot}")
        if state == pb.PLACEMENT_STATE_BOUND:
            self.cluster.pods[uid].node_name = node.name
        self._put(uid, placement.slot, state == pb.PLACEMENT_STATE_NOMINATED)
        if state == pb.PLACEMENT_STATE_WAITING:
            self.cluster.waiting[uid] = placement.attempt_id
        if placement.states:
            self.cluster.states[uid] = {its.plugin: its.state for its in placement.states}

    def _namespace_upsert(self, upsert: Any) -> None:
        self.cluster.namespaces[upsert.namespace.name] = upsert.namespace

    def _namespace_remove(self, remove: Any) -> None:
        self.cluster.namespaces.pop(remove.name, None)

    def _object_upsert(self, change: Any) -> None:
        # Unknown kinds are ignored.
        if change.WhichOneof("object"):
            self.cluster.objects[self._key(change)] = change
        if change.HasField("generic_object"):
            found = Object(change.generic_object)
            self.cluster._declared.setdefault(found.resource, {})[found.namespace, found.name] = found

    def _object_remove(self, named: Any) -> None:
        self.cluster._declared.get(named.kind, {}).pop((named.namespace, named.name), None)
        self.cluster.objects.pop((named.kind, named.namespace, named.name), None)

    @staticmethod
    def _key(change: Any) -> Any:
        """The key of a ClusterObject, with the parts of an ObjectReference."""
        field = change.WhichOneof("object")
        named = getattr(change, field)
        if field == "pod_controller":
            kind = named.kind
        elif field == "generic_object":
            kind = named.resource
        else:
            kind = named.DESCRIPTOR.name.replace("Csi", "CSI")
        # A kind without namespaces has no such field.
        return (kind, getattr(named, "namespace", ""), named.name)

    def _put(self, uid: str, slot: int, nominated: bool) -> None:
        node = self.cluster._slots[slot]
        (node.nominated if nominated else node.pods)[uid] = self.cluster.pods[uid]
        node.pods_changed()
        self.cluster._place[uid] = (slot, nominated)

    def _leave_home(self, uid: str) -> None:
        pod = self.cluster.pods.get(uid)
        if pod is not None and pod.node_name in self._homeless:
            self._homeless[pod.node_name].pop(uid, None)

    def _take(self, uid: str) -> None:
        place = self.cluster._place.pop(uid, None)
        if place is None or place[0] not in self.cluster._slots:
            return
        node = self.cluster._slots[place[0]]
        node.pods.pop(uid, None)
        node.nominated.pop(uid, None)
        node.pods_changed()
