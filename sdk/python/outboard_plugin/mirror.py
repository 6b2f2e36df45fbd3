"""Applies the shim's changes to a Cluster."""

from outboard_plugin.api import Cluster, Node


class MirrorError(Exception):
    """A change that does not fit what the mirror has."""


class Mirror:
    """Threading: the caller's lock. A snapshot counts once its last chunk is applied."""

    def __init__(self, pb, push):
        self._pb = pb
        self._push = push
        self._snapshot = 0  # version of the snapshot that is under way
        self._reset()

    def _reset(self):
        self.cluster = Cluster(self._push)
        self._slot_of = {}  # by name of the node
        self._homeless = {}  # name of a node that is not there → uids of pods on it, as keys

    def apply(self, request):
        self._check_order(request)
        for change in request.changes:
            self._change(change)
        if request.HasField("node_order"):
            slots = list(request.node_order.slots)
            if sorted(slots) != sorted(self.cluster._slots):
                raise MirrorError("the order of nodes is no permutation of the occupied slots")
            self.cluster._order = slots
        if request.phase in (self._pb.SyncRequest.DELTA, self._pb.SyncRequest.SNAPSHOT_END):
            self._snapshot = 0
            self.cluster.version = request.version

    def _check_order(self, request):
        phases = self._pb.SyncRequest
        if request.version < 1:
            raise MirrorError("version must be at least 1")
        if request.phase == phases.SNAPSHOT_BEGIN:
            self._reset()
            self._snapshot = request.version
        elif request.phase in (phases.SNAPSHOT_MORE, phases.SNAPSHOT_END):
            if self._snapshot != request.version:
                raise MirrorError("a chunk of a snapshot without its beginning, or of another version")
        elif request.phase != phases.DELTA:
            raise MirrorError("unknown phase")
        elif self.cluster.version == 0:
            raise MirrorError("a change before a complete snapshot")
        elif request.version < self.cluster.version:
            raise MirrorError(f"version falls from {self.cluster.version} to {request.version}")

    def _change(self, change):
        kind = change.WhichOneof("change")
        handler = getattr(self, "_" + kind, None) if kind else None
        # A change that this version does not know is ignored, as the contract wants it.
        if handler is not None:
            handler(getattr(change, kind))

    def _node_upsert(self, upsert):
        node = Node(upsert.slot, upsert.node)
        old = self.cluster._slots.get(upsert.slot)
        if old is not None:
            if old.uid != node.uid or old.name != node.name:
                raise MirrorError(f"slot {upsert.slot} is occupied by {old.name}")
            node.pods, node.nominated = old.pods, old.nominated
            self.cluster._slots[upsert.slot] = node
            return
        if not node.name or node.name in self._slot_of:
            raise MirrorError(f"node {node.name} has no name, or is in another slot already")
        self.cluster._slots[upsert.slot] = node
        self.cluster._order.append(upsert.slot)
        self._slot_of[node.name] = upsert.slot
        # Pods that named the node before it was known.
        for uid in self._homeless.pop(node.name, ()):
            if self.cluster.pods[uid].node_name == node.name:
                self._put(uid, upsert.slot, nominated=False)

    def _node_remove(self, remove):
        node = self.cluster._slots.pop(remove.slot, None)
        if node is None:
            raise MirrorError(f"no node in slot {remove.slot}")
        self.cluster._order.remove(remove.slot)
        del self._slot_of[node.name]
        for uid in (*node.pods, *node.nominated):
            del self.cluster._place[uid]
        # Pods that are bound to it are on it again if it comes back.
        self._homeless[node.name] = {uid: None for uid, pod in node.pods.items() if pod.node_name == node.name}

    def _pod_upsert(self, upsert):
        pod = upsert.pod
        if not pod.uid:
            raise MirrorError("a pod without a uid")
        known = self.cluster.pods.get(pod.uid)
        self.cluster.pods[pod.uid] = pod
        place = self.cluster._place.get(pod.uid)
        if pod.node_name:
            slot = self._slot_of.get(pod.node_name)
            self._take(pod.uid)
            self.cluster.waiting.pop(pod.uid, None)
            if slot is not None:
                self._put(pod.uid, slot, nominated=False)
            else:
                self._homeless.setdefault(pod.node_name, {})[pod.uid] = None
        elif known is not None and place is not None:
            self._put(pod.uid, *place)

    def _pod_remove(self, remove):
        # One that is not there came and went between two messages.
        self._take(remove.uid)
        self.cluster.pods.pop(remove.uid, None)
        self.cluster.waiting.pop(remove.uid, None)

    def _pod_placement(self, placement):
        if placement.uid not in self.cluster.pods:
            raise MirrorError(f"no pod {placement.uid}")
        self._take(placement.uid)
        self.cluster.waiting.pop(placement.uid, None)
        if placement.state == self._pb.UNPLACED:
            return
        if placement.state not in (self._pb.ASSUMED, self._pb.WAITING, self._pb.NOMINATED):
            raise MirrorError("unknown placement state")
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
        # A kind that this version does not know is ignored.
        if change.WhichOneof("object"):
            self.cluster.objects[self._key(change)] = change

    def _object_remove(self, change):
        if change.WhichOneof("object"):
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
        if place is None:
            pod = self.cluster.pods.get(uid)
            if pod is not None and uid in self._homeless.get(pod.node_name, ()):
                del self._homeless[pod.node_name][uid]
            return
        node = self.cluster._slots[place[0]]
        node.pods.pop(uid, None)
        node.nominated.pop(uid, None)
