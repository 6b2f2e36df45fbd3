"""Plugins that say where groups of pods may be placed."""

import logging
import unittest

from outboard_plugin import Excluded, Placement, Plugin, Unschedulable, group_calls
from outboard_plugin.calls import Calls
from outboard_plugin.errors import CallFailed
from outboard_plugin.host import Host, plugin_info
from outboard_plugin.proto import pb


class Racks(Plugin):
    """A placement for each rack, unless `answer` is set; scores by free nodes."""

    answer = None
    seen = None

    def generate_placements(self, group, cluster):
        type(self).seen = group
        if type(self).answer is not None:
            return type(self).answer(cluster)
        racks = {}
        for node in cluster.nodes:
            racks.setdefault(node.labels["rack"], []).append(node)
        return [Placement(rack, nodes) for rack, nodes in racks.items()]

    def score_placements(self, group, candidates):
        return [Excluded("is being repaired") if one.name == "b" else 10 * len(one.nodes) for one in candidates]


class Context:
    """Of a call whose deadline is far."""

    @staticmethod
    def time_remaining():
        return 10.0


class GroupsTest(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        Racks.answer = Racks.seen = None
        self.host = Host([Racks()], "build", "digest", "me")
        request = pb.ConfigureRequest(session_id="s", instance="me")
        profile = request.profiles.add(name="p")
        for point in ("PLACEMENT_GENERATE", "PLACEMENT_SCORE"):
            number = pb.ExtensionPoint.Value("EXTENSION_POINT_" + point)
            profile.points.add(extension_point=number, plugins=["Racks"])
        self.assertFalse(self.host.Configure(request, None).problems)
        self.host.sessions["s"].begin_stream()
        cache = self.host.sessions["s"].cache
        snapshot = pb.SyncRequest(version=1, phase=pb.SyncRequest.PHASE_SNAPSHOT_BEGIN)
        for slot, rack in enumerate("aab"):
            node = pb.Node(name=f"n{slot}", uid=f"n{slot}", labels={"rack": rack})
            snapshot.changes.add(node_upsert=pb.NodeUpsert(slot=slot, node=node))
            snapshot.node_order.slots.append(slot)
        for name in "xy":
            snapshot.changes.add(pod_upsert=pb.PodUpsert(pod=pb.Pod(uid=name, name=name)))
        cache.apply(snapshot)
        cache.apply(pb.SyncRequest(version=1, phase=pb.SyncRequest.PHASE_SNAPSHOT_END))

    @staticmethod
    def group():
        return pb.PendingGroup(name="gang x", namespace="", pod_uids=["x", "y"], needed=2, placed_slots=[2])

    def call(self, method, request):
        request.header.CopyFrom(pb.CallHeader(session_id="s", attempt_id=1, exact_version=1, profile="p"))
        if not request.HasField("group"):
            request.group.CopyFrom(self.group())
        return getattr(Calls(self.host), method)(request, Context())

    def generate(self):
        return self.call("GeneratePlacements", pb.GeneratePlacementsRequest())

    def score(self, *slots):
        request = pb.ScorePlacementsRequest()
        for name, nodes in slots:
            placement = pb.GroupPlacement(name=name, nodes=pb.NodeSet(slots=nodes))
            places = pb.GroupAssignments(pods=[0, 1], slots=[nodes[0], nodes[0]])
            request.placements.add(placement=placement, assignments=places)
        return self.call("ScorePlacements", request)

    def test_placements_are_sets_of_nodes(self):
        placements = self.generate().placements.placements
        self.assertEqual([(one.name, list(one.nodes.slots)) for one in placements], [("a", [0, 1]), ("b", [2])])
        self.assertEqual([pod.uid for pod in Racks.seen.pods], ["x", "y"])
        self.assertEqual([node.name for node in Racks.seen.placed], ["n2"])

    def test_a_plugin_rejects_the_group(self):
        Racks.answer = lambda cluster: Unschedulable("no rack is free")
        rejection = self.generate().rejection
        self.assertEqual((rejection.plugin, rejection.code), ("Racks", pb.CODE_UNSCHEDULABLE))
        self.assertEqual(list(rejection.reasons), ["no rack is free"])

    def test_without_an_opinion_any_nodes_will_do(self):
        class Silent(Racks):
            def generate_placements(self, group, cluster):
                return None

        cluster = self.host.sessions["s"].cache.cluster
        group = group_calls.group_of(cluster, self.group())
        self.assertEqual(group_calls.generated("Silent", Silent(), group, cluster).WhichOneof("outcome"), "any")

    def test_two_placements_of_one_name_are_a_failure_of_the_plugin(self):
        Racks.answer = lambda cluster: [Placement("a", cluster.nodes), Placement("a", cluster.nodes)]
        self.assertEqual(self.generate().rejection.code, pb.CODE_ERROR)

    def test_scores_and_exclusions(self):
        answer = self.score(("a", [0, 1]), ("b", [2]))
        self.assertEqual(list(answer.plugins[0].scores), [20, 0])
        self.assertEqual([(one.placement, one.reason) for one in answer.plugins[0].excluded], [(1, "is being repaired")])

    def test_a_score_beyond_a_hundred_is_a_failure_of_the_plugin(self):
        answer = self.score(("a", [0] * 11))
        self.assertEqual((answer.error.plugin, answer.error.code), ("Racks", pb.CODE_ERROR))

    def test_unknown_pods_and_nodes(self):
        request = pb.GeneratePlacementsRequest(group=self.group())
        request.group.pod_uids[1] = "z"
        with self.assertRaises(CallFailed):
            self.call("GeneratePlacements", request)
        with self.assertRaises(CallFailed):
            self.score(("a", [7]))

    def test_a_host_without_a_cache_cannot_have_them(self):
        with self.assertRaises(ValueError):
            plugin_info(Racks(), inline_nodes=True)


if __name__ == "__main__":
    unittest.main()
