"""Plugins that declare resources read their objects at every point, write them, and write to their pod at PreBind."""

import logging
import os
import tempfile
import types
import unittest

import grpc

from outboard_plugin import Cluster, DeclaredResource, NotYet, Plugin, ShimBinds, Unschedulable, effects, server
from outboard_plugin.calls import Calls
from outboard_plugin.errors import CallFailed
from outboard_plugin.host import Host
from outboard_plugin.proto import pb

CONTEXT = types.SimpleNamespace(time_remaining=lambda: 1.0)
CONFIG_MAPS = "configmaps.v1"
POINTS = ("PRE_ENQUEUE", "PRE_FILTER", "FILTER", "SCORE", "RESERVE", "PERMIT", "PRE_BIND", "BIND", "POST_BIND")


class Reads(Plugin):
    """Notes at each point the limit that the ConfigMap `limits` has."""

    declared_resources = (
        DeclaredResource(CONFIG_MAPS, verbs=("CREATE", "PATCH_STATUS")),
        DeclaredResource("widgets.v1.example.com", optional=True),
    )
    wake_up_events = ((CONFIG_MAPS, "UPDATE_OTHER"),)
    seen: list = []  # of all copies that profiles have

    def read(self):
        limits = self.cluster.find(CONFIG_MAPS, "limits", "ns")
        self.seen.append(limits and limits.at("data", "limit"))

    def pre_enqueue(self, pod):
        self.read()

    def pre_filter(self, pod, cluster):
        self.read()

    def filter(self, pod, node):
        self.read()

    def score(self, pod, node):
        self.read()
        return 0

    def reserve(self, pod, node):
        self.read()

    def unreserve(self, pod, node):
        self.read()

    def permit(self, pod, node):
        self.read()

    def pre_bind(self, pod, node, done):
        self.read()
        return self.before_bind(done)

    @staticmethod
    def before_bind(done):
        return None

    def bind(self, pod, node):
        self.read()
        return ShimBinds()

    def post_bind(self, pod, node):
        self.read()


class DeclaredResourcesTest(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.addCleanup(setattr, Reads, "before_bind", staticmethod(Reads.before_bind))
        Reads.seen.clear()
        self.host = Host([Reads()], "build", "digest", "me")
        self.calls = Calls(self.host)
        request = pb.ConfigureRequest(session_id="s", instance="me", cycle_deadline_micros=100_000)
        profile = request.profiles.add(name="p")
        for point in POINTS:
            profile.points.add(extension_point=pb.ExtensionPoint.Value("EXTENSION_POINT_" + point), plugins=["Reads"])
        self.assertFalse(self.host.Configure(request, CONTEXT).problems)
        self.snapshot()

    @property
    def session(self):
        return self.host.sessions["s"]

    def snapshot(self):
        """A new stream with one node and one pod."""
        self.sent = self.session.begin_stream()
        begin = pb.SyncRequest(version=1, phase=pb.SyncRequest.PHASE_SNAPSHOT_BEGIN)
        begin.changes.add().node_upsert.CopyFrom(pb.NodeUpsert(slot=0, node=pb.Node(name="n", uid="n")))
        begin.changes.add().pod_upsert.pod.CopyFrom(pb.Pod(uid="p", name="p"))
        self.session.cache.apply(begin)
        self.session.cache.apply(pb.SyncRequest(version=1, phase=pb.SyncRequest.PHASE_SNAPSHOT_END))

    def limit(self, value):
        """Changes the ConfigMap."""
        change = pb.SyncRequest(version=1, phase=pb.SyncRequest.PHASE_DELTA)
        made = pb.GenericObject(resource=CONFIG_MAPS, namespace="ns", name="limits", json='{"data": {"limit": "%s"}}' % value)
        change.changes.add().object_upsert.generic_object.CopyFrom(made)
        self.session.cache.apply(change)

    def header(self):
        return pb.CallHeader(session_id="s", attempt_id=1, profile="p")

    def placed(self, request):
        request.header.CopyFrom(self.header())
        request.pod_uid, request.node_name = "p", "n"
        return request

    def pre_bind(self, *effects_done, node_name="n"):
        request = self.placed(pb.PreBindRequest())
        request.node_name = node_name
        for effect in effects_done:
            request.effects.add().CopyFrom(effect)
            request.results.add(key=effect.key, resource_version="9")
        return self.calls.PreBind(request, CONTEXT)

    def each_point(self):
        nodes = pb.NodeSet(slots=[0])
        calls = (
            (self.calls.PreEnqueue, pb.PreEnqueueRequest(header=self.header(), pod_uids=["p"])),
            (self.calls.PreFilter, pb.PreFilterRequest(header=self.header(), pod_uid="p")),
            (self.calls.Filter, pb.FilterRequest(header=self.header(), search=pb.NodeSearch(num_feasible_nodes_to_find=1))),
            (self.calls.Score, pb.ScoreRequest(header=self.header(), nodes=nodes)),
            (self.calls.Reserve, self.placed(pb.ReserveRequest())),
            (self.calls.Unreserve, self.placed(pb.UnreserveRequest())),
            (self.calls.Permit, self.placed(pb.PermitRequest())),
            (self.calls.PreBind, self.placed(pb.PreBindRequest())),
            (self.calls.Bind, self.placed(pb.BindRequest(plugin="Reads"))),
            (self.calls.PostBind, self.placed(pb.PostBindRequest())),
        )
        Reads.seen.clear()
        for call, request in calls:
            call(request, CONTEXT)
        return Reads.seen

    def test_the_host_reports_what_its_plugins_declare(self):
        info = self.host.GetHostInfo(pb.GetHostInfoRequest(), CONTEXT).plugins[0]
        verbs = [pb.DeclaredResource.VERB_CREATE, pb.DeclaredResource.VERB_PATCH_STATUS]
        self.assertEqual(
            list(info.declared_resources),
            [
                pb.DeclaredResource(resource=CONFIG_MAPS, verbs=verbs),
                pb.DeclaredResource(resource="widgets.v1.example.com", optional=True),
            ],
        )
        self.assertEqual(info.wake_up_events[0].resource, CONFIG_MAPS)
        # Without the interest, the shim would ask only about pods whose Reserve named effects.
        self.assertEqual(list(info.interests), [pb.Interest(extension_point=pb.EXTENSION_POINT_PRE_BIND, every_pod=True)])

    def test_what_a_host_cannot_serve_is_an_error_at_its_start(self):
        class UnknownVerb(Plugin):
            declared_resources = (DeclaredResource(CONFIG_MAPS, verbs=("READ",)),)

        class ReadsOnly(Plugin):
            declared_resources = (DeclaredResource(CONFIG_MAPS),)

        class AtPreBind(Plugin):
            def pre_bind(self, pod, node, done):
                return None

        class Writes(Plugin):
            declared_resources = (DeclaredResource(CONFIG_MAPS, verbs=("CREATE",)), DeclaredResource("jobs.v1.batch", optional=True))

        for plugin, inline in ((UnknownVerb(), False), (ReadsOnly(), True), (AtPreBind(), True)):
            with self.assertRaises(ValueError):
                Host([plugin], "build", "digest", "me", inline_nodes=inline)
        Host([Writes()], "build", "digest", "me", inline_nodes=True)
        Host([ReadsOnly(), AtPreBind()], "build", "digest", "me")

    def test_every_point_reads_the_current_object(self):
        self.assertEqual(self.each_point(), [None] * 10)
        self.limit(3)
        self.assertEqual(self.each_point(), ["3"] * 10)
        self.limit(4)
        self.assertEqual(self.each_point(), ["4"] * 10)
        # A new stream has a new cluster cache.
        self.snapshot()
        self.limit(5)
        self.assertEqual(self.each_point(), ["5"] * 10)

    def test_sessions_do_not_share_a_cluster_cache(self):
        self.limit(3)
        self.each_point()
        self.assertIsNot(Reads.cluster, self.session.cache.cluster)
        self.assertIsInstance(Reads().cluster, Cluster)
        self.assertEqual(Reads().cluster.pods, {})

    def test_before_the_bind_a_plugin_writes_once_and_then_lets_the_pod_go(self):
        self.assertEqual(self.pre_bind(), pb.PreBindResponse())
        patch = effects.patch_pod("rack", {"example.com/rack": "r1"})
        seen = []

        def before_bind(done):
            seen.append({key: result.resource_version for key, result in done.items()})
            return [patch]

        Reads.before_bind = staticmethod(before_bind)
        wanted = list(self.pre_bind().effects)
        self.assertEqual([(one.plugin, one.key) for one in wanted], [("Reads", "rack")])
        self.assertEqual(self.pre_bind(*wanted), pb.PreBindResponse())
        self.assertEqual(seen, [{}, {"rack": "9"}])
        # What another plugin wrote under this key is not this plugin's.
        others = pb.Effect(key="rack", plugin="Other")
        self.assertEqual([one.key for one in self.pre_bind(others).effects], ["rack"])

    def test_before_the_bind_a_plugin_may_wait_or_reject(self):
        Reads.before_bind = staticmethod(lambda done: NotYet())
        self.assertEqual(self.pre_bind(), pb.PreBindResponse(wait=True))
        Reads.before_bind = staticmethod(lambda done: Unschedulable("not today"))
        rejection = self.pre_bind().rejection
        self.assertEqual((rejection.plugin, rejection.code, list(rejection.reasons)), ("Reads", pb.CODE_UNSCHEDULABLE, ["not today"]))
        for wrong in (lambda done: ["x"], lambda done: 1 / 0):
            Reads.before_bind = staticmethod(wrong)
            self.assertEqual(self.pre_bind().rejection.code, pb.CODE_ERROR)

    def test_a_pod_whose_node_is_gone_is_rejected_and_not_asked_about_again(self):
        rejection = self.pre_bind(node_name="gone").rejection
        self.assertEqual((rejection.plugin, rejection.code), ("Reads", pb.CODE_UNSCHEDULABLE))
        self.assertEqual(Reads.seen, [])

    def test_each_effect_has_a_result(self):
        request = self.placed(pb.PreBindRequest(effects=[pb.Effect(key="k", plugin="Reads")]))
        with self.assertRaises(CallFailed) as caught:
            self.calls.PreBind(request, CONTEXT)
        self.assertEqual(caught.exception.reason, "INVALID")

    def test_a_write_that_the_shim_refuses_is_logged_and_one_that_came_too_late_is_not(self):
        logging.disable(logging.NOTSET)
        outcomes = (
            (pb.PushResult.OUTCOME_APPLIED, ""),
            (pb.PushResult.OUTCOME_CONFLICT, "changed"),
            (pb.PushResult.OUTCOME_SUPERSEDED, "in progress"),
            (pb.PushResult.OUTCOME_FORBIDDEN, "customResources does not allow it"),
        )
        results = []
        for outcome, message in outcomes:
            self.session.cache.cluster.write(effects.create_object("k", CONFIG_MAPS, "b", {}, "ns"), "Reads")
            sent = self.sent.get_nowait()
            self.assertEqual((sent.effect.plugin, sent.effect.put_object.name), ("Reads", "b"))
            results.append(pb.PushResult(push_id=sent.push_id, outcome=outcome, message=message))
        self.assertEqual(len({result.push_id for result in results} - {0}), len(outcomes))
        with self.assertLogs("outboard_plugin", "WARNING") as logs:
            self.session.take_results(results)
        lines = [record.getMessage() for record in logs.records]
        self.assertEqual(lines, ["The shim refused write k of Reads: FORBIDDEN: customResources does not allow it"])


class PreBindServiceTest(unittest.TestCase):
    def pre_bind(self, host):
        """The code of a call of PreBind over a socket."""
        with tempfile.TemporaryDirectory() as folder:
            address = "unix:" + os.path.join(folder, "s")
            running = server.start(host, address)
            try:
                with grpc.insecure_channel(address) as channel:
                    channel.unary_unary(
                        "/outboard.v1beta1.PreBindService/PreBind",
                        request_serializer=pb.PreBindRequest.SerializeToString,
                        response_deserializer=pb.PreBindResponse.FromString,
                    )(pb.PreBindRequest(header=pb.CallHeader(session_id="unknown")), timeout=10)
            except grpc.RpcError as error:
                return error.code()
            finally:
                running.stop(None).wait()
        return grpc.StatusCode.OK

    def test_it_is_served_with_a_cluster_cache_only(self):
        # SESSION_UNKNOWN
        self.assertEqual(self.pre_bind(Host([Reads()], "build", "digest", "me")), grpc.StatusCode.FAILED_PRECONDITION)
        inline = Host([Plugin()], "build", "digest", "me", inline_nodes=True)
        self.assertEqual(self.pre_bind(inline), grpc.StatusCode.UNIMPLEMENTED)


if __name__ == "__main__":
    unittest.main()
