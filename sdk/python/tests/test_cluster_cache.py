"""The cluster cache, and the attributes of nodes."""

import unittest

from outboard_plugin import Cluster, Node, effects, requests
from outboard_plugin.cluster_cache import ClusterCache, CacheError
from outboard_plugin.proto import pb


def pod(uid, cpu=100, node="", **fields):
    made = pb.Pod(uid=uid, name=uid, node_name=node, **fields)
    made.containers.add(name="main").requests.cpu_millis = cpu
    return made


class ClusterCacheTest(unittest.TestCase):
    def setUp(self):
        self.begin(ClusterCache())

    def begin(self, cache):
        """Applies an empty snapshot."""
        self.cache = cache
        self.version = 0
        self.apply(phase=pb.SyncRequest.PHASE_SNAPSHOT_BEGIN)
        self.apply(phase=pb.SyncRequest.PHASE_SNAPSHOT_END, order=[])

    def apply(self, *changes, phase=pb.SyncRequest.PHASE_DELTA, order=None):
        if phase in (pb.SyncRequest.PHASE_DELTA, pb.SyncRequest.PHASE_SNAPSHOT_BEGIN):
            self.version += 1
        request = pb.SyncRequest(version=self.version, phase=phase)
        for change in changes:
            request.changes.add(**change)
        if order is not None:
            request.node_order.slots.extend(order)
            request.node_order.SetInParent()
        self.cache.apply(request)

    def node(self, slot, name, uid=None, **labels):
        return {"node_upsert": pb.NodeUpsert(slot=slot, node=pb.Node(name=name, uid=uid or name, labels=labels))}

    @staticmethod
    def pod(uid, **fields):
        return {"pod_upsert": pb.PodUpsert(pod=pod(uid, **fields))}

    @staticmethod
    def place(uid, state, slot=0):
        return {"pod_placement": pb.PodPlacement(uid=uid, state=state, slot=slot, attempt_id=7)}

    @property
    def cluster(self):
        return self.cache.cluster

    def test_a_snapshot_counts_once_it_is_complete(self):
        self.apply(self.node(0, "a"), phase=pb.SyncRequest.PHASE_SNAPSHOT_BEGIN)
        self.assertEqual(self.cluster.version, 0)
        self.apply(self.node(1, "b"), phase=pb.SyncRequest.PHASE_SNAPSHOT_MORE)
        self.apply(self.pod("p", node="b"), phase=pb.SyncRequest.PHASE_SNAPSHOT_END, order=[1, 0])
        self.assertEqual(self.cluster.version, 2)
        self.assertEqual([node.name for node in self.cluster.nodes], ["b", "a"])
        self.assertEqual(list(self.cluster.node(1).pods), ["p"])
        self.apply(phase=pb.SyncRequest.PHASE_SNAPSHOT_BEGIN)
        self.assertEqual((self.cluster.version, self.cluster.nodes), (0, []))

    def test_pods_move_as_updates_say(self):
        self.apply(self.node(0, "a"), self.node(1, "b"), self.pod("p"), order=[0, 1])
        a, b = self.cluster.nodes
        self.assertEqual(a.requested.cpu_millis, 0)
        self.apply(self.place("p", pb.PLACEMENT_STATE_ASSUMED, 0))
        self.assertEqual((a.requested.cpu_millis, a.requested.pods), (100, 1))
        self.apply(self.place("p", pb.PLACEMENT_STATE_WAITING, 1))
        self.assertEqual((a.requested.pods, b.requested.pods, self.cluster.waiting), (0, 1, {"p": 7}))
        self.apply(self.pod("p", cpu=300))  # keeps the assumed node
        self.assertEqual(b.requested.cpu_millis, 300)
        self.apply(self.place("p", pb.PLACEMENT_STATE_NOMINATED, 0))
        self.assertEqual((list(a.nominated), list(b.pods), self.cluster.waiting), (["p"], [], {}))
        self.apply(self.pod("p", node="b"))
        self.assertEqual((list(a.nominated), list(b.pods)), ([], ["p"]))
        self.apply({"pod_remove": pb.PodRemove(uid="p")})
        self.assertEqual((b.requested.pods, self.cluster.pods), (0, {}))

    def test_a_node_keeps_its_pods_while_it_changes_and_another_of_its_name_gets_those_that_name_it(self):
        self.apply(self.node(0, "a", colour="red"), self.pod("p", node="a"), self.pod("q"), order=[0])
        self.apply(self.place("q", pb.PLACEMENT_STATE_ASSUMED, 0))
        self.apply(self.node(0, "a", colour="blue"))
        self.assertEqual(self.cluster.nodes[0].labels, {"colour": "blue"})
        self.assertEqual(sorted(self.cluster.nodes[0].pods), ["p", "q"])
        self.apply(self.pod("r"), self.place("r", pb.PLACEMENT_STATE_ASSUMED, 0))
        self.apply(self.place("r", pb.PLACEMENT_STATE_BOUND, 0))
        self.assertEqual(sorted(self.cluster.nodes[0].pods), ["p", "q", "r"])
        self.apply({"node_remove": pb.NodeRemove(slot=0)}, order=[])
        self.assertIsNone(self.cluster.node_named("a"))
        self.apply(self.node(0, "a", uid="other"), order=[0])
        self.assertEqual(sorted(self.cluster.nodes[0].pods), ["p", "r"])

    def test_objects_are_known_by_kubernetes_kind(self):
        made = {
            ("Service", "ns", "a"): {"service": pb.Service(namespace="ns", name="a")},
            ("ReplicaSet", "ns", "a"): {"pod_controller": pb.PodController(kind="ReplicaSet", namespace="ns", name="a")},
            ("StatefulSet", "ns", "a"): {"pod_controller": pb.PodController(kind="StatefulSet", namespace="ns", name="a")},
            ("CSINode", "", "a"): {"csi_node": pb.CsiNode(name="a")},
            ("jobs.v1.x", "ns", "a"): {"generic_object": pb.GenericObject(resource="jobs.v1.x", namespace="ns", name="a")},
            ("jobs.v2.x", "ns", "a"): {"generic_object": pb.GenericObject(resource="jobs.v2.x", namespace="ns", name="a")},
        }
        self.apply(*({"object_upsert": pb.ClusterObject(**fields)} for fields in made.values()))
        self.assertEqual(set(self.cluster.objects), set(made))
        left = set(made)
        for kind, namespace, name in made:
            self.apply({"object_remove": pb.ObjectReference(kind=kind, namespace=namespace, name=name)})
            left.remove((kind, namespace, name))
            self.assertEqual(set(self.cluster.objects), left)
        # A kind of a later shim.
        self.apply({"object_upsert": pb.ClusterObject()}, {"object_remove": pb.ObjectReference(kind="New", name="a")})
        self.assertEqual(self.cluster.objects, {})

    def generic(self, name, json, namespace="ns", resource="configmaps.v1", **fields):
        made = pb.GenericObject(resource=resource, namespace=namespace, name=name, json=json, **fields)
        return {"object_upsert": pb.ClusterObject(generic_object=made)}

    def test_objects_of_declared_resources_are_found_by_name(self):
        self.apply(
            self.generic("a", '{"data": {"limit": "3"}}', uid="u", resource_version="7"),
            self.generic("a", "{}", namespace="other"),
            self.generic("a", "{}", namespace="", resource="widgets.v1.example.com", deleting=True),
        )
        found = self.cluster.find("configmaps.v1", "a", "ns")
        self.assertEqual((found.resource, found.namespace, found.name), ("configmaps.v1", "ns", "a"))
        self.assertEqual((found.uid, found.resource_version, found.deleting), ("u", "7", False))
        self.assertTrue(self.cluster.find("widgets.v1.example.com", "a").deleting)
        self.assertEqual(sorted(one.namespace for one in self.cluster.find_all("configmaps.v1")), ["ns", "other"])
        self.assertIsNone(self.cluster.find("configmaps.v1", "a"))
        self.assertIsNone(self.cluster.find("jobs.v1.batch", "a", "ns"))
        self.assertEqual(self.cluster.find_all("jobs.v1.batch"), [])
        self.apply(self.generic("a", '{"data": {"limit": "4"}}'))
        self.assertEqual(self.cluster.find("configmaps.v1", "a", "ns").at("data", "limit"), "4")
        self.assertEqual(found.at("data", "limit"), "3", "an object that a plugin holds does not change")
        self.apply({"object_remove": pb.ObjectReference(kind="configmaps.v1", namespace="ns", name="a")})
        self.assertIsNone(self.cluster.find("configmaps.v1", "a", "ns"))
        self.assertEqual([one.namespace for one in self.cluster.find_all("configmaps.v1")], ["other"])
        # A new snapshot replaces all.
        self.begin(self.cache)
        self.assertEqual(self.cluster.find_all("configmaps.v1"), [])

    def test_the_content_of_an_object_may_have_any_form(self):
        self.apply(self.generic("a", '{"data": {"limit": "3", "list": [1]}, "text": "x"}'))
        found = self.cluster.find("configmaps.v1", "a", "ns")
        self.assertEqual(found.at("data", "limit"), "3")
        self.assertEqual(found.at("data"), {"limit": "3", "list": [1]})
        for path in (("data", "other"), ("other", "limit"), ("text", "x"), ("data", "list", "0")):
            self.assertIsNone(found.at(*path), path)
        for text in ("[]", "3", "", "{"):
            self.apply(self.generic("a", text))
            found = self.cluster.find("configmaps.v1", "a", "ns")
            self.assertEqual((found.content, found.at("data")), ({}, None), text)

    def test_contradicting_changes_are_rejected(self):
        self.apply(self.node(0, "a"), self.pod("p"), order=[0])
        for change in (
            {"node_remove": pb.NodeRemove(slot=3)},
            self.place("x", pb.PLACEMENT_STATE_ASSUMED, 0),
            self.place("p", pb.PLACEMENT_STATE_ASSUMED, 3),
            self.node(0, "b"),
        ):
            with self.assertRaises(CacheError):
                self.apply(change)

    def test_decisions_are_pushed_with_the_attempt_that_waits(self):
        pushed = []
        self.begin(ClusterCache(lambda message, what: pushed.append((message.wait_decision, what))))
        self.apply(self.node(0, "a"), self.pod("p"), order=[0])
        self.apply(self.place("p", pb.PLACEMENT_STATE_WAITING, 0))
        self.cluster.allow("p", "Gang")
        self.cluster.reject("p", "Gang", "no")
        allows = pb.WaitDecision(attempt_id=7, pod_uid="p", plugin="Gang", allow=True)
        rejects = pb.WaitDecision(attempt_id=7, pod_uid="p", plugin="Gang", message="no")
        self.assertEqual(
            pushed,
            [(allows, "the decision that Gang allows pod p"), (rejects, "the decision that Gang rejects pod p")],
        )

    def test_writes_without_a_pod_are_pushed_with_the_plugins_name(self):
        pushed = []
        self.begin(ClusterCache(lambda message, what: pushed.append((message.effect, what))))
        self.apply(self.generic("a", "{}", uid="u", resource_version="7"))
        found = self.cluster.find("configmaps.v1", "a", "ns")
        wanted = [
            effects.create_object("k", "configmaps.v1", "b", {}),
            effects.replace_object("k", found, {}),
            effects.patch_object("k", found, {}),
            effects.delete_object("k", found),
            effects.record_object_event("k", found, "ConfigMap", "Read", "Reading", "note"),
        ]
        for effect in wanted:
            self.cluster.write(effect, "P")
            self.assertEqual(effect.plugin, "", "the plugin's own message stays as it is")
            effect.plugin = "P"
        self.assertEqual(pushed, [(effect, "write k of P") for effect in wanted])
        # These need a pod.
        for effect in (effects.patch_pod("k", {"a": "1"}), effects.record_event("k", "Held", "Holding", "note"), pb.Effect(), None):
            with self.assertRaises(ValueError):
                self.cluster.write(effect, "P")
        self.assertEqual(len(pushed), len(wanted))

    def test_without_a_cluster_cache_nothing_is_pushed(self):
        for send in (
            lambda: Cluster().allow("p", "Gang"),
            lambda: Cluster().write(effects.create_object("k", "configmaps.v1", "b", {}), "P"),
        ):
            with self.assertRaises(RuntimeError):
                send()


class InlineNodeTest(unittest.TestCase):
    def test_it_has_the_parts_that_came_with_the_call(self):
        sent = pb.InlineNode(
            node=pb.Node(name="n", labels={"a": "b"}),
            requested=pb.ResourceList(cpu_millis=300, pods=1),
            pods=[pod("on")],
        )
        node = Node(3, sent.node, sent)
        self.assertEqual((node.name, node.labels, node.requested.cpu_millis, list(node.pods)), ("n", {"a": "b"}, 300, ["on"]))
        self.assertIsNone(node.with_nominated(()))

    def test_nominated_pods_count_in_filter(self):
        sent = pb.InlineNode(
            node=pb.Node(name="n"),
            requested=pb.ResourceList(cpu_millis=300, pods=1, scalar={"gpu": 1}),
            nominated_requested=pb.ResourceList(cpu_millis=50, pods=1, scalar={"gpu": 2}),
            pods=[pod("on")],
            nominated_pods=[pod("soon")],
        )
        crowded = Node(3, sent.node, sent).with_nominated(())
        self.assertEqual(sorted(crowded.pods), ["on", "soon"])
        self.assertEqual((crowded.requested.cpu_millis, crowded.requested.pods, crowded.requested.scalar["gpu"]), (350, 2, 3))


class RequestsTest(unittest.TestCase):
    def test_init_containers_sidecars_overhead_and_the_pod_as_a_whole(self):
        made = pod("p", cpu=100)
        made.containers.add(name="two").requests.cpu_millis = 200
        made.init_containers.add(name="sidecar", restart_policy_always=True).requests.cpu_millis = 50
        made.init_containers.add(name="start").requests.cpu_millis = 500
        made.overhead.cpu_millis = 7
        self.assertEqual(requests.of_pod(made)["cpu"], 557)
        made.pod_requests.cpu_millis = 900
        self.assertEqual(requests.of_pod(made)["cpu"], 907)

    def test_a_resize_counts_with_its_largest_amount(self):
        made = pod("p", cpu=100)
        status = made.container_statuses.add(name="main")
        status.actual_requests.cpu_millis = 60
        status.allocated_requests.cpu_millis = 80
        self.assertEqual(requests.of_pod(made)["cpu"], 100)
        made.resize_infeasible = True
        self.assertEqual(requests.of_pod(made)["cpu"], 80)


if __name__ == "__main__":
    unittest.main()
