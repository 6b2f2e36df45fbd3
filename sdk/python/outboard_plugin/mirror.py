"""Applies the shim's changes to a Cluster."""

from outboard_plugin.api import Cluster, Node


class MirrorError(Exception):
    """A change that does not fit what the mirror has."""


class Mirror:
    """Threading: the caller's lock. A snapshot counts once its last chunk is applied."""

    def __init__(self, pb, push):
        self._pb = pb
        self._push = push
        self.cluster = Cluster(push)

    def apply(self, request):
        phase = request.phase
        if phase == self._pb.SyncRequest.SNAPSHOT_BEGIN:
            self.cluster = Cluster(self._push)
        for change in request.changes:
            self._change(change)
        if request.HasField("node_order"):
            self.cluster._order = list(request.node_order.slots)
        if phase in (self._pb.SyncRequest.DELTA, self._pb.SyncRequest.SNAPSHOT_END):
            self.cluster.version = request.version

    def _change(self, change):
        kind = change.WhichOneof("change")
        handler = getattr(self, "_" + kind, None) if kind else None
        # A change that this version does not know is ignored, as the contract wants it.
        if handler is not None:
            handler(getattr(change, kind))

    def _node_upsert(self, upsert):
        node = Node(upsert.slot, upsert.node)
        old = self.cluster._slots.get(upsert.slot)
        if old is not None and old.uid == node.uid:
            node.pods, node.nominated = old.pods, old.nominated
        self.cluster._slots[upsert.slot] = node
        # Pods that named the node before it was known.
        for uid, pod in self.cluster.pods.items():
            if pod.node_name == node.name and uid not in self.cluster._place:
                self._put(uid, upsert.slot, nominated=False)

    def _node_remove(self, remove):
        if self.cluster._slots.pop(remove.slot, None) is None:
            raise MirrorError(f"no node in slot {remove.slot}")
        for uid in [uid for uid, place in self.cluster._place.items() if place[0] == remove.slot]:
            del self.cluster._place[uid]

    def _pod_upsert(self, upsert):
        pod = upsert.pod
        known = self.cluster.pods.get(pod.uid)
        self.cluster.pods[pod.uid] = pod
        place = self.cluster._place.get(pod.uid)
        if pod.node_name:
            slot = next((s for s, node in self.cluster._slots.items() if node.name == pod.node_name), None)
            self._take(pod.uid)
            self.cluster.waiting.pop(pod.uid, None)
            if slot is not None:
                self._put(pod.uid, slot, nominated=False)
        elif known is not None and place is not None:
            self._put(pod.uid, *place)

    def _pod_remove(self, remove):
        if self.cluster.pods.pop(remove.uid, None) is None:
            raise MirrorError(f"no pod {remove.uid}")
        self._take(remove.uid)
        self.cluster.waiting.pop(remove.uid, None)

    def _pod_placement(self, placement):
        if placement.uid not in self.cluster.pods:
            raise MirrorError(f"no pod {placement.uid}")
        self._take(placement.uid)
        self.cluster.waiting.pop(placement.uid, None)
        if placement.state == self._pb.UNPLACED:
            return
        if placement.slot not in self.cluster._slots:
            raise MirrorError(f"no node in slot {placement.slot}")
        self._put(placement.uid, placement.slot, placement.state == self._pb.NOMINATED)
        if placement.state == self._pb.WAITING:
            self.cluster.waiting[placement.uid] = placement.attempt_id

    def _namespace_upsert(self, upsert):
        self.cluster.namespaces[upsert.namespace.name] = upsert.namespace

    def _namespace_remove(self, remove):
        self.cluster.namespaces.pop(remove.name, None)

    def _object_upsert(self, change):
        self.cluster.objects[self._key(change)] = change

    def _object_remove(self, change):
        self.cluster.objects.pop(self._key(change), None)

    @staticmethod
    def _key(change):
        kind = change.WhichOneof("object")
        named = getattr(change, kind)
        # A kind without namespaces has no such field.
        return (kind, getattr(named, "namespace", ""), named.name)

    def _put(self, uid, slot, nominated):
        node = self.cluster._slots[slot]
        (node.nominated if nominated else node.pods)[uid] = self.cluster.pods[uid]
        self.cluster._place[uid] = (slot, nominated)

    def _take(self, uid):
        place = self.cluster._place.pop(uid, None)
        if place is None or place[0] not in self.cluster._slots:
            return
        node = self.cluster._slots[place[0]]
        node.pods.pop(uid, None)
        node.nominated.pop(uid, None)
