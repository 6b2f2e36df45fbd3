"""Calls a host over a real socket, as the shim does, in both modes."""

import logging
import os
import queue
import tempfile
import unittest

import grpc
from grpc_status import rpc_status

from outboard_plugin import Plugin, Unschedulable, Wait, server
from outboard_plugin.host import MAX_SESSIONS, Host
from outboard_plugin.proto import pb

PACKAGE = "outboard.v1beta1"


class Cheap(Plugin):
    wake_up_events = (("Node", "ADD"),)
    needed_fields = ("Node.metadata.annotations['x']",)

    def configure(self, args):
        if "limit" in args and not isinstance(args["limit"], int):
            raise ValueError("limit: must be a number")

    def pre_enqueue(self, pod):
        return Unschedulable("gated") if "gate" in pod.labels else None

    def filter(self, pod, node):
        if node.requested.cpu_millis >= 300:
            return Unschedulable("busy")
        return None

    def score(self, pod, node):
        return int(node.labels["price"])

    def permit(self, pod, node):
        return Wait(1.5) if node.name == "b" else None


class ServerTest(unittest.TestCase):
    inline = False

    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        address = "unix:" + os.path.join(folder.name, "s")
        self.host = Host([Cheap()], "build", "digest", "me", inline_nodes=self.inline)
        running = server.start(self.host, address)
        self.addCleanup(lambda: running.stop(None).wait())
        self.channel = grpc.insecure_channel(address)
        self.addCleanup(self.channel.close)
        self.cluster = [
            pb.InlineNode(
                node=pb.Node(name=name, uid=name, labels={"price": price}),
                requested=pb.ResourceList(cpu_millis=cpu, pods=1 if cpu else 0),
            )
            for name, price, cpu in (("a", "7", 0), ("b", "9", 0), ("c", "1", 400))
        ]
        self.pod = pb.Pod(uid="p", name="p", labels={"gate": "yes"})
        self.requests = queue.Queue()

    def call(self, service, method, request):
        return self.channel.unary_unary(
            f"/{PACKAGE}.{service}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=getattr(pb, method + "Response").FromString,
        )(request, timeout=10)

    def fails(self, service, method, request):
        with self.assertRaises(grpc.RpcError) as caught:
            self.call(service, method, request)
        status = rpc_status.from_call(caught.exception)  # Compares code and message with gRPC's own, too.
        error = pb.CallError()
        self.assertTrue(status.details[0].Unpack(error))
        return pb.CallError.Reason.Name(error.reason).removeprefix("REASON_")

    def configure(self, session="s", **fields):
        request = pb.ConfigureRequest(session_id=session, cycle_deadline_millis=100)
        profile = request.profiles.add(name="p")
        for point in ("PRE_ENQUEUE", "FILTER", "SCORE", "PERMIT"):
            profile.points.add(extension_point=pb.ExtensionPoint.Value("EXTENSION_POINT_" + point), plugins=["Cheap"])
        if fields:
            profile.args.add(plugin="Cheap", **fields)
        return self.call("PluginHostService", "Configure", request)

    def header(self, **fields):
        return pb.CallHeader(
            **{"session_id": "s", "instance": "me", "attempt_id": 1, "exact_version": 1, "profile": "p", **fields}
        )

    def sync(self, *requests):
        """Feeds the cluster cache; returns the responses as they arrive."""
        for request in requests:
            self.requests.put(request)
        stream = self.channel.stream_stream(
            f"/{PACKAGE}.ClusterStateService/Sync",
            request_serializer=pb.SyncRequest.SerializeToString,
            response_deserializer=pb.SyncResponse.FromString,
        )(iter(self.requests.get, None))
        self.addCleanup(lambda: self.requests.put(None))
        return stream

    def make_ready(self):
        self.assertFalse(self.configure().problems)
        if self.inline:
            return
        request = pb.SyncRequest(session_id="s", version=1, phase=pb.SyncRequest.PHASE_SNAPSHOT_BEGIN)
        for slot, sent in enumerate(self.cluster):
            request.changes.add().node_upsert.CopyFrom(pb.NodeUpsert(slot=slot, node=sent.node))
            if sent.requested.pods:
                on = pb.Pod(uid="on", node_name=sent.node.name)
                on.containers.add(name="main").requests.cpu_millis = sent.requested.cpu_millis
                request.changes.add().pod_upsert.pod.CopyFrom(on)
        request.changes.add().pod_upsert.pod.CopyFrom(self.pod)
        request.node_order.slots.extend(range(len(self.cluster)))
        end = pb.SyncRequest(version=1, phase=pb.SyncRequest.PHASE_SNAPSHOT_END)
        self.stream = self.sync(request, end)
        self.assertEqual(next(self.stream).ack.version, 1)
        self.call("PreFilterService", "PreFilter", pb.PreFilterRequest(header=self.header(), pod_uid="p"))

    def content(self, slots=()):
        """The inline fields of a call."""
        if not self.inline:
            return {}
        return {"pod": self.pod, **({"inline_nodes": [self.cluster[slot] for slot in slots]} if slots else {})}

    def test_it_reports_its_identity(self):
        info = self.call("PluginHostService", "GetHostInfo", pb.GetHostInfoRequest())
        points = [pb.ExtensionPoint.Name(point).removeprefix("EXTENSION_POINT_") for point in info.plugins[0].extension_points]
        self.assertEqual(points, ["PRE_ENQUEUE", "FILTER", "SCORE", "PERMIT"])
        self.assertEqual(list(info.capabilities), [pb.CAPABILITY_INLINE_NODES] if self.inline else [])

    def test_it_is_ready_when_it_can_answer(self):
        states = lambda state: pb.ProbeResponse.State.Name(state).removeprefix("STATE_")  # noqa: E731
        probe = lambda: states(self.call("PluginHostService", "Probe", pb.ProbeRequest(session_id="s")).state)  # noqa: E731
        self.assertEqual(probe(), "INITIALIZING")
        problems = self.configure(args_json='{"limit": "x"}').problems
        self.assertEqual((problems[0].field, problems[0].message), ("limit", "must be a number"))
        self.assertEqual(probe(), "INITIALIZING")
        self.make_ready()
        self.assertEqual(probe(), "READY")
        self.call("PluginHostService", "Drain", pb.DrainRequest(session_id="s"))
        self.assertEqual(probe(), "DRAINING")

    def test_a_cycle(self):
        self.make_ready()
        filtered = self.call(
            "FilterService",
            "Filter",
            pb.FilterRequest(
                header=self.header(),
                nodes=pb.NodeSet(slots=[2, 0, 1]),
                percentage_of_nodes_to_score=100,
                **self.content([2, 0, 1]),
            ),
        )
        self.assertEqual((filtered.processed, filtered.feasible, list(filtered.rejected)), (3, b"\x06", [0]))
        self.assertEqual((filtered.reasons[0].plugin, filtered.reasons[0].reasons[0]), ("Cheap", "busy"))
        scored = self.call(
            "ScoreService",
            "Score",
            pb.ScoreRequest(header=self.header(), nodes=pb.NodeSet(slots=[1, 0]), **self.content([1, 0])),
        )
        self.assertEqual(scored.plugins[0].scores, bytes([9, 7]))
        for name, waits in (("a", []), ("b", [1500])):
            placed = pb.PermitRequest(header=self.header(), pod_uid="p", node_name=name)
            if self.inline:
                placed.pod.CopyFrom(self.pod)
                placed.inline_node.CopyFrom(next(sent for sent in self.cluster if sent.node.name == name))
            self.assertEqual([wait.timeout_millis for wait in self.call("PermitService", "Permit", placed).waits], waits)
        gate = pb.PreEnqueueRequest(header=self.header(attempt_id=0), pod_uids=["p"])
        if self.inline:
            gate.pods.add().CopyFrom(self.pod)
        self.assertEqual(self.call("PreEnqueueService", "PreEnqueue", gate).verdicts[0].reasons[0], "gated")

    def test_errors_have_reasons(self):
        self.make_ready()

        def filtering(**fields):
            return pb.FilterRequest(header=self.header(**fields), nodes=pb.NodeSet(slots=[0]), **self.content([0]))

        self.assertEqual(self.fails("FilterService", "Filter", filtering(instance="other")), "WRONG_INSTANCE")
        self.assertEqual(self.fails("FilterService", "Filter", filtering(session_id="other")), "SESSION_UNKNOWN")
        self.assertEqual(self.fails("FilterService", "Filter", filtering(profile="other")), "NOT_CONFIGURED")

    def test_a_disconnected_shim_is_evicted(self):
        for i in range(2 * MAX_SESSIONS):
            self.assertFalse(self.configure(f"shim-{i}").problems)
        self.assertEqual(len(self.host.sessions), MAX_SESSIONS)
        self.assertIn(f"shim-{2 * MAX_SESSIONS - 1}", self.host.sessions)


class InlineServerTest(ServerTest):
    inline = True

    def test_nodes_and_content_must_match(self):
        self.make_ready()
        request = pb.FilterRequest(
            header=self.header(), nodes=pb.NodeSet(slots=[0, 1]), pod=self.pod, inline_nodes=[self.cluster[0]]
        )
        self.assertEqual(self.fails("FilterService", "Filter", request), "INVALID")

    def test_it_serves_no_sync_stream(self):
        self.configure()
        with self.assertRaises(grpc.RpcError) as caught:
            next(self.sync(pb.SyncRequest(session_id="s")))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)


class CachedServerTest(ServerTest):
    def test_versions_and_attempts_are_checked(self):
        self.make_ready()
        request = pb.FilterRequest(header=self.header(exact_version=9))
        call = self.channel.unary_unary(
            f"/{PACKAGE}.FilterService/Filter",
            request_serializer=pb.FilterRequest.SerializeToString,
            response_deserializer=pb.FilterResponse.FromString,
        )
        with self.assertRaises(grpc.RpcError):
            call(request, timeout=0.2)  # the host waits for the version
        request.header.exact_version = 1
        request.header.attempt_id = 2
        self.assertEqual(self.fails("FilterService", "Filter", request), "ATTEMPT_UNKNOWN")
        request.header.attempt_id = 1
        request.nodes.slots.append(17)
        self.assertEqual(self.fails("FilterService", "Filter", request), "OBJECT_UNKNOWN")
        # The host forgets an attempt that the shim ended.
        self.requests.put(pb.SyncRequest(version=2, phase=pb.SyncRequest.PHASE_DELTA, ended_attempts=[1]))
        self.assertEqual(next(self.stream).ack.version, 2)
        request = pb.FilterRequest(header=self.header(exact_version=2))
        self.assertEqual(self.fails("FilterService", "Filter", request), "ATTEMPT_UNKNOWN")

    def test_a_change_that_does_not_fit_ends_the_stream(self):
        self.make_ready()
        self.requests.put(pb.SyncRequest(version=2, phase=pb.SyncRequest.PHASE_DELTA, changes=[pb.Change(node_remove=pb.NodeRemove(slot=9))]))
        with self.assertRaises(grpc.RpcError) as caught:
            next(self.stream)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)

    def test_a_new_stream_replaces_the_old_one(self):
        self.make_ready()
        old = self.stream
        self.requests = queue.Queue()
        new = self.sync(
            pb.SyncRequest(session_id="s", version=5, phase=pb.SyncRequest.PHASE_SNAPSHOT_BEGIN),
            pb.SyncRequest(version=5, phase=pb.SyncRequest.PHASE_SNAPSHOT_END),
        )
        self.assertEqual(next(new).ack.version, 5)
        self.assertEqual(list(old), [])


del ServerTest  # A base class only; unittest must not run it.

if __name__ == "__main__":
    unittest.main()
