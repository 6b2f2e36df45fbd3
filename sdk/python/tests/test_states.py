"""What plugins keep for a pod between reserve and bind."""

import logging
import unittest

from outboard_plugin import Plugin, Reserved, ShimBinds, Unschedulable, effects
from outboard_plugin.calls import Calls
from outboard_plugin.host import Host
from outboard_plugin.proto import pb


class Devices(Plugin):
    answer = None  # of reserve; of all copies that profiles have

    def reserve(self, pod, node):
        return type(self).answer

    def bind(self, pod, node):
        return ShimBinds({"example.com/device": self.state_of(pod).decode()})


class Seats(Devices):
    answer = None


class Context:
    """Of a call whose deadline is far."""

    @staticmethod
    def time_remaining():
        return 10.0


class StatesTest(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        Devices.answer = Seats.answer = None
        self.host, self.cache = self.start()

    def start(self, placement=None):
        """A host whose snapshot has node n and pod p, and the pod's placement."""
        host = Host([Devices(), Seats()], "build", "digest", "me")
        request = pb.ConfigureRequest(session_id="s", instance="me")
        profile = request.profiles.add(name="p")
        for point in ("RESERVE", "BIND"):
            number = pb.ExtensionPoint.Value("EXTENSION_POINT_" + point)
            profile.points.add(extension_point=number, plugins=["Devices", "Seats"])
        self.assertFalse(host.Configure(request, None).problems)
        host.sessions["s"].begin_stream()
        cache = host.sessions["s"].cache
        snapshot = pb.SyncRequest(version=1, phase=pb.SyncRequest.PHASE_SNAPSHOT_BEGIN)
        snapshot.changes.add(node_upsert=pb.NodeUpsert(node=pb.Node(name="n", uid="n")))
        snapshot.changes.add(pod_upsert=pb.PodUpsert(pod=pb.Pod(uid="p", name="p")))
        if placement is not None:
            snapshot.changes.add(pod_placement=placement)
        cache.apply(snapshot)
        cache.apply(pb.SyncRequest(version=1, phase=pb.SyncRequest.PHASE_SNAPSHOT_END))
        return host, cache

    def call(self, method, request, host=None):
        request.header.CopyFrom(pb.CallHeader(session_id="s", attempt_id=1, min_version=1, profile="p"))
        request.pod_uid, request.node_name = "p", "n"
        return getattr(Calls(host or self.host), method)(request, Context())

    def device(self, host=None, plugin="Devices"):
        """What the plugin keeps, as bind sees it."""
        return self.call("Bind", pb.BindRequest(plugin=plugin), host).shim_binds.annotations["example.com/device"]

    @staticmethod
    def placed(state=pb.PLACEMENT_STATE_ASSUMED, **states):
        placement = pb.PodPlacement(uid="p", state=state)
        for plugin, kept in states.items():
            placement.states.add(plugin=plugin, state=kept)
        return placement

    def test_reserve_returns_them_with_effects(self):
        Devices.answer = Reserved(b"3", [effects.record_event("k", "Held", "Holding", "note")])
        Seats.answer = [effects.record_event("l", "Held", "Holding", "note")]
        answer = self.call("Reserve", pb.ReserveRequest())
        self.assertEqual([(its.plugin, its.state) for its in answer.states], [("Devices", b"3")])
        self.assertEqual([(its.plugin, its.key) for its in answer.effects], [("Devices", "k"), ("Seats", "l")])

    def test_nothing_is_kept_with_a_rejection(self):
        Devices.answer = Reserved(b"3")
        Seats.answer = Unschedulable("no seat")
        answer = self.call("Reserve", pb.ReserveRequest())
        self.assertEqual(answer.rejection.plugin, "Seats")
        self.assertFalse(answer.states)

    def test_a_plugin_that_keeps_too_much_fails(self):
        for state in (b"x" * 4097, "text"):
            Devices.answer = Reserved(state)
            answer = self.call("Reserve", pb.ReserveRequest())
            self.assertEqual((answer.rejection.plugin, answer.rejection.code), ("Devices", pb.CODE_ERROR))
            self.assertFalse(answer.states)

    def test_a_host_that_starts_later_gets_them(self):
        for state in (pb.PLACEMENT_STATE_ASSUMED, pb.PLACEMENT_STATE_WAITING):
            later, _ = self.start(self.placed(state, Devices=b"3"))
            self.assertEqual(self.device(later), "3")
            self.assertEqual(self.device(later, "Seats"), "", "each plugin has its own")
        self.assertEqual(self.device(), "")

    def test_they_end_with_the_placement(self):
        ends = (
            {"pod_placement": pb.PodPlacement(uid="p", state=pb.PLACEMENT_STATE_UNPLACED)},
            {"pod_placement": pb.PodPlacement(uid="p", state=pb.PLACEMENT_STATE_BOUND)},
            {"pod_upsert": pb.PodUpsert(pod=pb.Pod(uid="p", name="p", node_name="n"))},
            {"pod_remove": pb.PodRemove(uid="p")},
        )
        for end in ends:
            _, cache = self.start(self.placed(Devices=b"3"))
            delta = pb.SyncRequest(version=2, phase=pb.SyncRequest.PHASE_DELTA)
            delta.changes.add(pod_upsert=pb.PodUpsert(pod=pb.Pod(uid="p", name="p", labels={"a": "b"})))
            cache.apply(delta)
            self.assertEqual(cache.cluster.states, {"p": {"Devices": b"3"}}, "an update does not contain them")
            delta = pb.SyncRequest(version=3, phase=pb.SyncRequest.PHASE_DELTA)
            delta.changes.add(**end)
            cache.apply(delta)
            self.assertEqual(cache.cluster.states, {})


if __name__ == "__main__":
    unittest.main()
