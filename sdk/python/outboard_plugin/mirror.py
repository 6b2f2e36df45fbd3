"""Applies the shim's changes to a Cluster."""

from __future__ import annotations

from typing import Any, Optional

from outboard_plugin.api import Cluster, Node, Push
from outboard_plugin.proto import pb


class MirrorError(Exception):
    """A change that does not fit what the mirror has."""


class Mirror:
    """Threading: the caller's lock. A snapshot counts once its last chunk is applied."""

    def __init__(self, push: Optional[Push] = None) -> None:
        self._push = push
        self.cluster = Cluster(push)

    def apply(self, request: Any) -> None:
        phase = request.phase
        if phase == pb.SyncRequest.SNAPSHOT_BEGIN:
            self.cluster = Cluster(self._push)
        for change in request.changes:
            self._change(change)
        if request.HasField("node_order"):
            self.cluster._order = list(request.node_order.slots)
            self.cluster._nodes = None
        if phase in (pb.SyncRequest.DELTA, pb.SyncRequest.SNAPSHOT_END):
            self.cluster.version = request.version

    def _change(self, change: Any) -> None:
        kind = change.WhichOneof("change")
        handler = getattr(self, "_" + kind, None) if kind else None
        # A change that this version does not know is ignored, as the contract wants it.
        if handler is not None:
            handler(getattr(change, kind))

    def _node_upsert(self, upsert: Any) -> None:
        cluster = self.cluster
        node = Node(upsert.slot, upsert.node)
        old = cluster._slots.get(upsert.slot)
        if old is not None and old.uid == node.uid:
            node.pods, node.nominated = old.pods, old.nominated
        elif old is not None:
            raise MirrorError(f"slot {upsert.slot} is occupied")
        cluster._slots[upsert.slot] = node
        cluster._names[node.name] = node
        cluster._nodes = None
        if old is not None:
            return
        # Pods that named the node before it was known.
        for uid, pod in cluster.pods.items():
            if pod.node_name == node.name and uid not in cluster._place:
                self._put(uid, upsert.slot, nominated=False)

    def _node_remove(self, remove: Any) -> None:
        cluster = self.cluster
        node = cluster._slots.pop(remove.slot, None)
        if node is None:
            raise MirrorError(f"no node in slot {remove.slot}")
        cluster._nodes = None
        if cluster._names.get(node.name) is node:
            del cluster._names[node.name]
        for uid in (*node.pods, *node.nominated):
            del cluster._place[uid]

    def _pod_upsert(self, upsert: Any) -> None:
        cluster = self.cluster
        pod = upsert.pod
        cluster.pods[pod.uid] = pod
        place = cluster._place.get(pod.uid)
        if pod.node_name:
            self._take(pod.uid)
            cluster.waiting.pop(pod.uid, None)
            node = cluster._names.get(pod.node_name)
            if node is not None:
                self._put(pod.uid, node.slot, nominated=False)
        elif place is not None:
            self._put(pod.uid, *place)

    def _pod_remove(self, remove: Any) -> None:
        if self.cluster.pods.pop(remove.uid, None) is None:
            raise MirrorError(f"no pod {remove.uid}")
        self._take(remove.uid)
        self.cluster.waiting.pop(remove.uid, None)

    def _pod_placement(self, placement: Any) -> None:
        uid, state = placement.uid, placement.state
        if uid not in self.cluster.pods:
            raise MirrorError(f"no pod {uid}")
        self._take(uid)
        self.cluster.waiting.pop(uid, None)
        if state == pb.UNPLACED:
            return
        if placement.slot not in self.cluster._slots:
            raise MirrorError(f"no node in slot {placement.slot}")
        self._put(uid, placement.slot, state == pb.NOMINATED)
        if state == pb.WAITING:
            self.cluster.waiting[uid] = placement.attempt_id

    def _namespace_upsert(self, upsert: Any) -> None:
        self.cluster.namespaces[upsert.namespace.name] = upsert.namespace

    def _namespace_remove(self, remove: Any) -> None:
        self.cluster.namespaces.pop(remove.name, None)

    def _object_upsert(self, change: Any) -> None:
        self.cluster.objects[self._key(change)] = change

    def _object_remove(self, change: Any) -> None:
        self.cluster.objects.pop(self._key(change), None)

    @staticmethod
    def _key(change: Any) -> Any:
        kind = change.WhichOneof("object")
        named = getattr(change, kind)
        # A workload's kind is part of its name; a kind without namespaces has no such field.
        return (getattr(named, "kind", kind), getattr(named, "namespace", ""), named.name)

    def _put(self, uid: str, slot: int, nominated: bool) -> None:
        node = self.cluster._slots[slot]
        (node.nominated if nominated else node.pods)[uid] = self.cluster.pods[uid]
        node.pods_changed()
        self.cluster._place[uid] = (slot, nominated)

    def _take(self, uid: str) -> None:
        place = self.cluster._place.pop(uid, None)
        if place is None or place[0] not in self.cluster._slots:
            return
        node = self.cluster._slots[place[0]]
        node.pods.pop(uid, None)
        node.nominated.pop(uid, None)
        node.pods_changed()
