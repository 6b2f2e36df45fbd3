"""Calls a host over a real socket, as the shim does, in both modes."""

import logging
import os
import queue
import tempfile
import unittest
import unittest.mock

import grpc
from grpc_status import rpc_status

from outboard_plugin import Plugin, ShimBinds, Unschedulable, Wait, current_call, server
from outboard_plugin.calls import MAX_SIMULATED_NODES
from outboard_plugin.errors import CallFailed
from outboard_plugin.host import MAX_SESSIONS, Host
from outboard_plugin.proto import pb

PACKAGE = "outboard.v1beta1"
HANDSHAKE = "outboard.handshake.v1"


class Cheap(Plugin):
    binds: list = []  # of all copies that profiles have
    epochs: list = []
    wake_up_events = (("Node", "ADD"),)
    needed_fields = ("Node.metadata.annotations['x']",)

    def configure(self, args):
        if "limit" in args and not isinstance(args["limit"], int):
            raise ValueError("limit: must be a number")
        return ["old: has no effect"] if "old" in args else None

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

    def bind(self, pod, node):
        self.epochs.append(self.leader_epoch)
        return ShimBinds({"example.com/node": node.name}) if node.name == "b" else None

    def post_bind(self, pod, node):
        self.binds.append((pod.name, node.name))


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
        self.open_pod = pb.Pod(uid="q", name="q")
        self.requests = queue.Queue()

    def call(self, service, method, request, package=PACKAGE):
        return self.channel.unary_unary(
            f"/{package}.{service}/{method}",
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

    def configure(self, session="s", profile="p", validate_only=False, **fields):
        return self.call("PluginHostService", "Configure", self.configuration(session, profile, validate_only, **fields))

    def configuration(self, session="s", profile="p", validate_only=False, **fields):
        request = pb.ConfigureRequest(session_id=session, cycle_deadline_micros=100_000, validate_only=validate_only, instance="me")
        profile = request.profiles.add(name=profile)
        for point in ("PRE_ENQUEUE", "FILTER", "SCORE", "PERMIT", "BIND", "POST_BIND"):
            profile.points.add(extension_point=pb.ExtensionPoint.Value("EXTENSION_POINT_" + point), plugins=["Cheap"])
        if fields:
            profile.args.add(plugin="Cheap", **fields)
        return request

    def probe(self, session="s"):
        state = self.call("PluginHostService", "Probe", pb.ProbeRequest(session_id=session)).state
        return pb.ProbeResponse.State.Name(state).removeprefix("STATE_")

    def filtering(self, slots, enough=3, start=0, **fields):
        search = pb.NodeSearch(nodes=pb.NodeSet(slots=slots), start_offset=start, num_feasible_nodes_to_find=enough)
        return pb.FilterRequest(header=self.header(**fields), search=search, **self.content(slots))

    def header(self, **fields):
        return pb.CallHeader(**{"session_id": "s", "attempt_id": 1, "exact_version": 1, "profile": "p", **fields})

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
        for pod in (self.pod, self.open_pod):
            request.changes.add().pod_upsert.pod.CopyFrom(pod)
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
        self.assertEqual(points, ["PRE_ENQUEUE", "FILTER", "SCORE", "PERMIT", "BIND", "POST_BIND"])
        self.assertEqual(list(info.capabilities), [pb.CAPABILITY_INLINE_NODES] if self.inline else [])

    def test_the_handshake_is_the_same_for_every_shim(self):
        for versions in (["v1beta1"], ["v9"], []):
            request = pb.HandshakeRequest(contract_versions=versions, build="shim")
            answer = self.call("HandshakeService", "Handshake", request, package=HANDSHAKE)
            self.assertEqual(list(answer.contract_versions), ["v1beta1"])
            self.assertEqual((answer.instance, answer.build, answer.build_digest), ("me", "build", "digest"))
            self.assertEqual(answer.started_unix_micros, int(self.host.started * 1e6))

    def test_it_is_ready_when_it_can_answer(self):
        self.assertEqual(self.probe(), "INITIALIZING")
        problems = self.configure(args_json='{"limit": "x"}').problems
        self.assertEqual((problems[0].field, problems[0].message), ("limit", "must be a number"))
        self.assertEqual(problems[0].severity, pb.ConfigProblem.SEVERITY_ERROR)
        self.assertEqual(self.probe(), "INITIALIZING")
        self.make_ready()
        self.assertEqual(self.probe(), "READY")

    def test_a_warning_leaves_the_configuration_in_force(self):
        problems = self.configure(args_json='{"old": 1}').problems
        self.assertEqual([(one.plugin, one.field, one.message) for one in problems], [("Cheap", "old", "has no effect")])
        self.assertEqual(problems[0].severity, pb.ConfigProblem.SEVERITY_WARNING)
        self.assertIn("p", self.host.sessions["s"].profiles)
        with unittest.mock.patch.object(Cheap, "configure", lambda self, args: "a text"):
            problems = self.configure().problems
        self.assertEqual([one.severity for one in problems], [pb.ConfigProblem.SEVERITY_ERROR])

    def test_validation_answers_as_otherwise_and_changes_nothing(self):
        for text in ('{"limit": "x"}', '{"old": 1}', "{"):
            self.assertEqual(self.configure(validate_only=True, args_json=text), self.configure("other", args_json=text))
        self.assertEqual(self.fails("PluginHostService", "Configure", self.configuration("UPPER", validate_only=True)), "INVALID")
        self.assertNotIn("s", self.host.sessions)
        self.make_ready()
        before = self.host.sessions["s"].profiles
        self.assertFalse(self.configure(profile="another", validate_only=True).problems)
        self.assertIs(self.host.sessions["s"].profiles, before)
        # With all sessions in use, no session is deleted.
        for i in range(MAX_SESSIONS):
            self.configure(f"shim-{i}")
        sessions = set(self.host.sessions)
        self.assertFalse(self.configure("one-more", validate_only=True).problems)
        self.assertEqual(set(self.host.sessions), sessions)

    def test_a_configuration_for_another_instance_changes_nothing(self):
        request = self.configuration()
        for instance in ("other", ""):
            request.instance = instance
            self.assertEqual(self.fails("PluginHostService", "Configure", request), "WRONG_INSTANCE")
        self.assertNotIn("s", self.host.sessions)
        self.make_ready()
        before = self.host.sessions["s"].profiles
        request.profiles[0].name = "another"
        self.assertEqual(self.fails("PluginHostService", "Configure", request), "WRONG_INSTANCE")
        self.assertIs(self.host.sessions["s"].profiles, before)

    def test_a_session_ends_alone(self):
        self.make_ready()
        self.configure("other")
        in_flight = 0 if self.inline else 1
        for _ in range(2):
            answer = self.call("PluginHostService", "EndSession", pb.EndSessionRequest(session_id="s"))
            self.assertEqual(answer.attempts_in_flight, in_flight)
        self.assertEqual(self.probe(), "DRAINING")
        another = pb.PreFilterRequest(header=self.header(attempt_id=2), pod_uid="p", **self.content())
        self.assertEqual(self.fails("PreFilterService", "PreFilter", another), "DRAINING")
        self.assertEqual(self.fails("PluginHostService", "Configure", self.configuration()), "DRAINING")
        # The attempt in progress may end.
        self.assertEqual(self.call("FilterService", "Filter", self.filtering([0])).processed, 1)
        self.assertFalse(self.configure("other").problems)
        self.assertNotEqual(self.probe("other"), "DRAINING")
        unknown = pb.EndSessionRequest(session_id="unknown")
        self.assertEqual(self.call("PluginHostService", "EndSession", unknown).attempts_in_flight, 0)
        self.assertNotIn("unknown", self.host.sessions)

    def test_draining_is_about_all_sessions(self):
        self.make_ready()
        self.configure("other")
        for _ in range(2):
            self.assertEqual(self.call("PluginHostService", "Drain", pb.DrainRequest()).attempts_in_flight, 0 if self.inline else 1)
        self.assertEqual([self.probe(session) for session in ("s", "other", "unknown", "")], ["DRAINING"] * 4)
        for session in ("s", "new"):
            self.assertEqual(self.fails("PluginHostService", "Configure", self.configuration(session)), "DRAINING")
        another = pb.PreFilterRequest(header=self.header(attempt_id=2), pod_uid="p", **self.content())
        self.assertEqual(self.fails("PreFilterService", "PreFilter", another), "DRAINING")
        self.assertEqual(self.call("FilterService", "Filter", self.filtering([0])).processed, 1)

    def test_a_cycle(self):
        self.make_ready()
        filtered = self.call("FilterService", "Filter", self.filtering([2, 0, 1]))
        self.assertEqual((filtered.processed, filtered.feasible, list(filtered.rejected)), (3, b"\x06", [0]))
        self.assertEqual((filtered.reasons[0].plugin, filtered.reasons[0].reasons[0]), ("Cheap", "busy"))
        scored = self.call(
            "ScoreService",
            "Score",
            pb.ScoreRequest(header=self.header(), nodes=pb.NodeSet(slots=[1, 0]), **self.content([1, 0])),
        )
        self.assertEqual(scored.plugins[0].scores, bytes([9, 7]))
        for name, waits in (("a", []), ("b", [1_500_000])):
            placed = pb.PermitRequest(header=self.header(), pod_uid="p", node_name=name)
            if self.inline:
                placed.pod.CopyFrom(self.pod)
                placed.inline_node.CopyFrom(next(sent for sent in self.cluster if sent.node.name == name))
            self.assertEqual([wait.timeout_micros for wait in self.call("PermitService", "Permit", placed).waits], waits)

    def placed(self, request, node_name):
        request.header.CopyFrom(self.header())
        request.pod_uid, request.node_name = "p", node_name
        if self.inline:
            request.pod.CopyFrom(self.pod)
            request.inline_node.CopyFrom(next(sent for sent in self.cluster if sent.node.name == node_name))
        return request

    def test_binds(self):
        self.make_ready()
        answer = self.call("BindService", "Bind", self.placed(pb.BindRequest(plugin="Cheap"), "a"))
        self.assertEqual(answer.WhichOneof("outcome"), "skip")
        answer = self.call("BindService", "Bind", self.placed(pb.BindRequest(plugin="Cheap"), "b"))
        self.assertEqual(dict(answer.shim_binds.annotations), {"example.com/node": "b"})
        Cheap.binds.clear()
        self.call("PostBindService", "PostBind", self.placed(pb.PostBindRequest(), "a"))
        self.assertEqual(Cheap.binds, [("p", "a")])
        self.assertEqual(self.fails("BindService", "Bind", self.placed(pb.BindRequest(plugin="Other"), "a")), "INVALID")

    def test_a_bind_has_the_epoch_of_its_leader(self):
        self.make_ready()
        Cheap.epochs.clear()
        for epoch in (7, 9, 0):
            request = self.placed(pb.BindRequest(plugin="Cheap"), "a")
            request.header.leader_epoch = epoch
            self.call("BindService", "Bind", request)
        self.assertEqual(Cheap.epochs, [7, 9, 0])

    def test_plugins_know_the_call(self):
        seen = []

        def note(result=None):
            seen.append(str(current_call()))
            return result

        for point in ("pre_enqueue", "filter", "score", "permit", "bind", "post_bind"):
            answer = 5 if point == "score" else None
            patch = unittest.mock.patch.object(Cheap, point, lambda *_, answer=answer: note(answer))
            patch.start()
            self.addCleanup(patch.stop)
        self.make_ready()
        gates = pb.PreEnqueueRequest(header=self.header(attempt_id=0), pod_uids=["p", "q"])
        if self.inline:
            gates.pods.extend([self.pod, self.open_pod])
        self.call("PreEnqueueService", "PreEnqueue", gates)
        self.assertEqual(seen, ["pod /p, uid p", "pod /q, uid q"])
        seen.clear()
        self.call("FilterService", "Filter", self.filtering([0]))
        scoring = pb.ScoreRequest(header=self.header(), nodes=pb.NodeSet(slots=[0]), **self.content([0]))
        self.call("ScoreService", "Score", scoring)
        self.call("PermitService", "Permit", self.placed(pb.PermitRequest(), "a"))
        self.call("BindService", "Bind", self.placed(pb.BindRequest(plugin="Cheap"), "a"))
        self.call("PostBindService", "PostBind", self.placed(pb.PostBindRequest(), "a"))
        self.assertEqual(seen, ["pod /p, uid p, attempt 1"] * 5)

    def test_gates(self):
        self.make_ready()
        request = pb.PreEnqueueRequest(header=self.header(attempt_id=0), pod_uids=["p", "q"])
        if self.inline:
            request.pods.extend([self.pod, self.open_pod])
        verdicts = self.call("PreEnqueueService", "PreEnqueue", request).verdicts
        self.assertEqual([verdict.code for verdict in verdicts], [pb.CODE_UNSCHEDULABLE, pb.CODE_SUCCESS])
        self.assertEqual((verdicts[0].plugin, list(verdicts[0].reasons), list(verdicts[1].reasons)), ("Cheap", ["gated"], []))

    def test_errors_have_reasons(self):
        self.make_ready()
        for field, reason in (("session_id", "SESSION_UNKNOWN"), ("profile", "NOT_CONFIGURED")):
            self.assertEqual(self.fails("FilterService", "Filter", self.filtering([0], **{field: "other"})), reason)
        without_what = pb.FilterRequest(header=self.header(), **self.content())
        self.assertEqual(self.fails("FilterService", "Filter", without_what), "INVALID")
        self.assertEqual(self.fails("FilterService", "Filter", self.filtering([0], enough=0)), "INVALID")

    def test_simulated_nodes(self):
        self.make_ready()
        simulation = pb.NodeSimulation()
        simulation.nodes.add(slot=2, removed_pod_uids=["on"])
        simulation.nodes.add(slot=2, added_pod_uids=["on"], continues=True)
        simulation.nodes.add(slot=0)
        request = pb.FilterRequest(header=self.header(), simulation=simulation)
        if self.inline:
            without = pb.InlineNode(node=self.cluster[2].node)
            request.pod.CopyFrom(self.pod)
            request.inline_nodes.extend([without, self.cluster[2], self.cluster[0]])
        answer = self.call("FilterService", "Filter", request)
        self.assertEqual((answer.processed, answer.feasible), (3, b"\x05"))
        too_many = pb.FilterRequest(header=self.header())
        too_many.simulation.nodes.extend(pb.SimulatedNode() for _ in range(MAX_SIMULATED_NODES + 1))
        self.assertEqual(self.fails("FilterService", "Filter", too_many), "INVALID")

    def test_a_disconnected_shim_is_evicted(self):
        for i in range(2 * MAX_SESSIONS):
            self.assertFalse(self.configure(f"shim-{i}").problems)
        self.assertEqual(len(self.host.sessions), MAX_SESSIONS)
        self.assertIn(f"shim-{2 * MAX_SESSIONS - 1}", self.host.sessions)


class InlineServerTest(ServerTest):
    inline = True

    def test_nodes_and_content_must_match(self):
        self.make_ready()
        request = self.filtering([0, 1])
        del request.inline_nodes[1]
        self.assertEqual(self.fails("FilterService", "Filter", request), "INVALID")
        request = pb.FilterRequest(header=self.header(), simulation=pb.NodeSimulation(nodes=[pb.SimulatedNode()]))
        self.assertEqual(self.fails("FilterService", "Filter", request), "INVALID")

    def test_calls_contain_the_pod(self):
        self.make_ready()
        without_pod = self.filtering([0, 1])
        without_pod.ClearField("pod")
        self.assertEqual(self.fails("FilterService", "Filter", without_pod), "INVALID")
        begin = pb.PreFilterRequest(header=self.header(), pod_uid="p")
        self.assertEqual(self.fails("PreFilterService", "PreFilter", begin), "INVALID")

    def test_all_nodes_of_a_call_are_evaluated(self):
        self.make_ready()
        self.assertEqual(self.call("FilterService", "Filter", self.filtering([0, 1, 2], enough=1)).processed, 3)

    def test_it_serves_no_sync_stream(self):
        self.configure()
        with self.assertRaises(grpc.RpcError) as caught:
            next(self.sync(pb.SyncRequest(session_id="s")))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)


class CachedServerTest(ServerTest):
    def test_versions_and_attempts_are_checked(self):
        self.make_ready()
        request = pb.FilterRequest(header=self.header(exact_version=9), search=pb.NodeSearch(num_feasible_nodes_to_find=3))
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
        request.search.nodes.slots.append(17)
        self.assertEqual(self.fails("FilterService", "Filter", request), "OBJECT_UNKNOWN")
        # The host forgets an attempt that the shim ended.
        self.requests.put(pb.SyncRequest(version=2, phase=pb.SyncRequest.PHASE_DELTA, ended_attempts=[1]))
        self.assertEqual(next(self.stream).ack.version, 2)
        self.assertEqual(self.fails("FilterService", "Filter", self.filtering([0], exact_version=2)), "ATTEMPT_UNKNOWN")

    def test_a_search_ends_at_one_more_feasible_node(self):
        self.make_ready()
        for enough, start, processed, feasible in ((1, 0, 1, 1), (1, 2, 2, 1), (2, 0, 3, 2), (2, 1, 3, 2), (100, 0, 3, 2)):
            answer = self.call("FilterService", "Filter", self.filtering([0, 1, 2], enough, start))
            self.assertEqual((answer.processed, bin(answer.feasible[0]).count("1")), (processed, feasible), f"{enough} from {start}")
        every = pb.FilterRequest(header=self.header(), search=pb.NodeSearch(num_feasible_nodes_to_find=1))
        self.assertEqual(self.call("FilterService", "Filter", every).processed, 1)

    def test_nodes_that_the_call_names_are_evaluated_twice(self):
        self.make_ready()
        delta = pb.SyncRequest(version=2, phase=pb.SyncRequest.PHASE_DELTA)
        heavy = pb.Pod(uid="heavy", name="heavy")
        heavy.containers.add(name="main").requests.cpu_millis = 300
        delta.changes.add(pod_upsert=pb.PodUpsert(pod=heavy))
        delta.changes.add(pod_placement=pb.PodPlacement(uid="heavy", state=pb.PLACEMENT_STATE_NOMINATED, slot=1))
        self.requests.put(delta)
        self.assertEqual(next(self.stream).ack.version, 2)
        request = self.filtering([0, 1, 2], exact_version=2)
        self.assertEqual(self.call("FilterService", "Filter", request).feasible, b"\3", "the shim decides which nodes")
        request.search.nominated.add(slot=1, pod_uids=["heavy"])
        self.assertEqual(self.call("FilterService", "Filter", request).feasible, b"\1")
        request.simulation.nodes.add(slot=1)
        request.simulation.nodes.add(slot=0)
        self.assertEqual(self.call("FilterService", "Filter", request).feasible, b"\3")
        request.simulation.nominated.add(slot=1, pod_uids=["heavy"])
        self.assertEqual(self.call("FilterService", "Filter", request).feasible, b"\2")
        request.simulation.nominated.add(slot=0, pod_uids=["unknown"])
        self.assertEqual(self.fails("FilterService", "Filter", request), "OBJECT_UNKNOWN")

    def test_simulations_must_fit_the_cache(self):
        self.make_ready()
        for reason, nodes in (
            ("OBJECT_UNKNOWN", [pb.SimulatedNode(slot=9)]),
            ("OBJECT_UNKNOWN", [pb.SimulatedNode(slot=0, removed_pod_uids=["on"])]),
            ("INVALID", [pb.SimulatedNode(slot=0, continues=True)]),
            ("INVALID", [pb.SimulatedNode(slot=0), pb.SimulatedNode(slot=1, continues=True)]),
        ):
            request = pb.FilterRequest(header=self.header(), simulation=pb.NodeSimulation(nodes=nodes))
            self.assertEqual(self.fails("FilterService", "Filter", request), reason)

    def test_a_call_with_a_minimum_waits_for_that_version_or_a_later_one(self):
        self.make_ready()
        header = self.header(attempt_id=0)
        header.min_version = 3

        def later(session):
            session.cache.cluster.version = 5

        self.assertEqual(self.waits(header, later, minimum=True), [0.98])
        # The cache is past the minimum now.
        self.assertEqual(self.waits(header, None, minimum=True), [])
        header.exact_version = 3
        with self.assertRaises(CallFailed) as caught:
            self.waits(header, None)
        self.assertEqual((caught.exception.reason, caught.exception.error.have_version), ("STALE", 5))

    def test_a_late_version_is_stale_while_the_answer_can_still_arrive(self):
        self.make_ready()
        for remaining, wait in ((1.0, 0.98), (0.1, 0.08), (0.05, 0.04), (0.0, 0.0), (None, 1.0)):
            for minimum in (False, True):
                header = self.header(**{"exact_version": 1, "min_version" if minimum else "exact_version": 2})
                waited = []
                with self.assertRaises(CallFailed) as caught:
                    self.waits(header, None, minimum, remaining, waited)
                self.assertEqual((caught.exception.reason, caught.exception.error.have_version), ("STALE", 1))
                self.assertEqual(len(waited), 1)
                self.assertAlmostEqual(waited[0], wait)

    def waits(self, header, meanwhile, minimum=False, remaining=1.0, waited=None):
        """How long the host waits for the call's version, in seconds; `meanwhile` is called instead of the wait."""
        waited = [] if waited is None else waited
        session = self.host.sessions["s"]

        def wait_for(_, timeout):
            waited.append(timeout)
            if meanwhile is not None:
                meanwhile(session)

        with self.host.changed, unittest.mock.patch.object(self.host.changed, "wait_for", wait_for):
            self.assertIs(self.host.session_for(header, lambda: remaining, minimum), session)
        return waited

    def test_refused_pushes_are_logged(self):
        self.make_ready()
        logging.disable(logging.NOTSET)
        outcomes = (
            (pb.PushResult.OUTCOME_APPLIED, ""),
            (pb.PushResult.OUTCOME_SUPERSEDED, "late"),
            (pb.PushResult.OUTCOME_FORBIDDEN, "not served"),
            (99, "of a later shim"),
        )
        request = pb.SyncRequest(version=2, phase=pb.SyncRequest.PHASE_DELTA)
        for outcome, message in outcomes:
            with self.host.changed:
                self.host.sessions["s"].cache.cluster.allow("p", "Cheap")
            push = next(self.stream)
            self.assertEqual(push.wait_decision.pod_uid, "p")
            request.push_results.add(push_id=push.push_id, outcome=outcome, message=message)
        ids = [result.push_id for result in request.push_results]
        self.assertEqual(len(set(ids) - {0}), len(outcomes))
        # A result that nothing waits for.
        request.push_results.add(push_id=1000, outcome=pb.PushResult.OUTCOME_FAILED, message="unknown")
        with self.assertLogs("outboard_plugin", "WARNING") as logs:
            self.requests.put(request)
            self.assertEqual(next(self.stream).ack.version, 2)
        lines = [record.getMessage() for record in logs.records]
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("that Cheap allows pod p: FORBIDDEN: not served", lines[0])
        self.assertIn("FAILED: of a later shim", lines[1])

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
