"""Plugins that filter and score whole columns, on nodes that come in columns and on others."""

import logging
import random
import types
import unittest

from outboard_plugin import Node, Plugin, Unresolvable, Unschedulable, answers
from outboard_plugin.calls import Calls
from outboard_plugin.columns import NodesAsColumns, SentColumns
from outboard_plugin.errors import CallFailed
from outboard_plugin.host import Host
from outboard_plugin.proto import pb

RESOURCES = ("cpu", "pods", "example.com/gpu")
FIELDS = {"cpu": "cpu_millis", "pods": "pods"}


def texts(key, maps):
    """The column of a key, as a shim sends it."""
    column = pb.TextColumn(key=key)
    for each in maps:
        if key in each and each[key] not in column.values:
            column.values.append(each[key])
        column.indexes.append(1 + list(column.values).index(each[key]) if key in each else 0)
    return column


def amounts(resource, lists, absent):
    column = pb.ResourceColumn(resource=resource)
    for each in lists:
        if resource in FIELDS:
            named = each.HasField(FIELDS[resource])
            column.amounts.append(getattr(each, FIELDS[resource]) if named else absent)
        else:
            column.amounts.append(each.scalar[resource] if resource in each.scalar else absent)
    return column


def to_columns(sent):
    """InlineNodes in columns, as a shim sends them for the labels a and b, the annotation a and RESOURCES."""
    columns = pb.NodeColumns(
        names=[each.node.name for each in sent],
        unschedulable=[each.node.unschedulable for each in sent],
        labels=[texts(key, [each.node.labels for each in sent]) for key in ("a", "b")],
        annotations=[texts("a", [each.node.annotations for each in sent])],
        allocatable=[amounts(name, [each.node.allocatable for each in sent], -1) for name in RESOURCES],
        requested=[amounts(name, [each.requested for each in sent], 0) for name in RESOURCES],
    )
    columns.taints.SetInParent()
    for each in sent:
        taints = pb.TaintList(taints=each.node.taints)
        if taints.taints and taints not in columns.taints.values:
            columns.taints.values.append(taints)
        columns.taints.indexes.append(1 + list(columns.taints.values).index(taints) if taints.taints else 0)
    if any(each.HasField("nominated_requested") for each in sent):
        nominated = [each.nominated_requested for each in sent]
        columns.nominated_requested.extend(amounts(name, nominated, 0) for name in RESOURCES)
    return columns


def random_nodes(generator, count):
    def resources(named):
        drawn = pb.ResourceList(cpu_millis=100 * generator.randrange(5), pods=generator.randrange(4))
        if not named or generator.random() < 0.3:
            drawn.scalar["example.com/gpu"] = generator.randrange(3)
        return drawn

    sent = []
    for i in range(count):
        node = pb.Node(name=f"n{i}", uid=f"u{i}", unschedulable=generator.random() < 0.2)
        for key in ("a", "b"):
            if generator.random() < 0.7:
                node.labels[key] = generator.choice(("", "1", "2", "3"))
        if generator.random() < 0.5:
            node.annotations["a"] = "x"
        for _ in range(generator.randrange(3)):
            node.taints.add(key=generator.choice("tu"), effect=pb.TAINT_EFFECT_NO_SCHEDULE)
        if generator.random() < 0.8:
            node.allocatable.CopyFrom(resources(named=True))
        each = pb.InlineNode(node=node, requested=resources(named=False))
        if generator.random() < 0.2:
            each.nominated_requested.CopyFrom(resources(named=False))
            each.nominated_requested.pods = 1 + generator.randrange(2)
        sent.append(each)
    return sent


def as_nodes(sent):
    return [Node(i, each.node, each) for i, each in enumerate(sent)]


class BusyNodes(Plugin):
    """Node by node; Busy says the same in columns. It rejects some nodes only without their nominated pods."""

    def filter(self, pod, node):
        return Unschedulable("busy") if 300 <= node.requested.cpu_millis < 500 else None

    def score(self, pod, node):
        return min(100, node.requested.cpu_millis // 10)


class Busy(Plugin):
    filter_reasons = (Unschedulable("busy"),)

    def filter_columns(self, pod, columns):
        return [300 <= cpu < 500 for cpu in columns.requested("cpu")]

    def score_columns(self, pod, columns):
        return [min(100, cpu // 10) for cpu in columns.requested("cpu")]


class LabelsOfNodes(Plugin):
    def filter(self, pod, node):
        if node.unschedulable:
            return Unresolvable("cordoned")
        return None if node.labels.get("a", "") < "2" else Unschedulable("label too large")


class Labels(Plugin):
    filter_reasons = (Unresolvable("cordoned"), Unschedulable("label too large"))

    def filter_columns(self, pod, columns):
        verdicts = columns.label("a").map(lambda text: 0 if text < "2" else 2, absent=0)
        return [1 if cordoned else verdict for cordoned, verdict in zip(columns.unschedulable, verdicts)]


class Said(Plugin):
    filter_reasons = (Unschedulable("no"),)

    def __init__(self, said):
        self.said = said

    def filter_columns(self, pod, columns):
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    score_columns = filter_columns


class Array:
    """As numpy's, which need not be installed."""

    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values


def verdicts_of(answer):
    """For each node None, or plugin, code and reason; in both forms."""
    said = [(one.plugin, one.code, one.reasons[0]) for one in answer.reasons]
    if answer.verdicts:
        return [None if number == 0 else said[number - 1] for number in answer.verdicts]
    rejected = iter(answer.rejected)
    feasible = [answer.feasible[i // 8] >> (i % 8) & 1 for i in range(answer.processed)]
    return [None if each else said[next(rejected)] for each in feasible]


class ColumnsTest(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def test_sent_columns_and_columns_of_nodes_are_equal(self):
        generator = random.Random(1)
        for count in (0, 1, 7, 40):
            sent = random_nodes(generator, count)
            one, other = SentColumns(to_columns(sent)), NodesAsColumns(as_nodes(sent))
            self.assertEqual(len(one), count)
            self.assertEqual(len(other), count)
            self.assertEqual(list(one.names), list(other.names))
            self.assertEqual(list(one.unschedulable), list(other.unschedulable))
            for resource in (*RESOURCES, "example.com/none"):
                self.assertEqual(list(one.allocatable(resource)), list(other.allocatable(resource)), resource)
                self.assertEqual(list(one.requested(resource)), list(other.requested(resource)), resource)
            for a, b in (
                (one.label("a"), other.label("a")),
                (one.label("none"), other.label("none")),
                (one.annotation("a"), other.annotation("a")),
                (one.taints, other.taints),
            ):
                self.assertEqual(list(a.indexes), list(b.indexes))
                self.assertEqual(list(map(str, a.values)), list(map(str, b.values)))

    def test_a_dictionary_maps_each_value_once(self):
        seen = []
        column = NodesAsColumns(as_nodes([pb.InlineNode(node=pb.Node(labels={"a": text})) for text in "3133"])).label("a")
        self.assertEqual(column.map(lambda text: seen.append(text) or int(text), absent=-1), [3, 1, 3, 3])
        self.assertEqual(seen, ["3", "1"])
        self.assertEqual(NodesAsColumns(as_nodes([pb.InlineNode()])).label("a").map(int, absent=-1), [-1])

    def test_columns_and_nodes_get_the_same_verdicts_and_scores(self):
        generator = random.Random(2)
        of_nodes = [("Labels", LabelsOfNodes()), ("Busy", BusyNodes())]
        of_columns = [("Labels", Labels()), ("Busy", Busy())]
        crowded = 0
        for _ in range(50):
            sent = random_nodes(generator, generator.randrange(20))
            expected = answers.search(of_nodes, None, as_nodes(sent), 0, len(sent))
            for is_simulation in (False, True):
                answer = answers.evaluate_columns(of_columns, None, to_columns(sent), is_simulation)
                self.assertEqual(verdicts_of(answer), verdicts_of(expected))
                self.assertEqual(list(answer.only_without_nominated), list(expected.only_without_nominated))
                self.assertEqual(len({one.SerializeToString() for one in answer.reasons}), len(answer.reasons))
            crowded += len(answer.only_without_nominated)
            # The same plugins where nodes do not come in columns.
            answer = answers.search(of_columns, None, as_nodes(sent), 0, len(sent))
            self.assertEqual(verdicts_of(answer), verdicts_of(expected))
            scores = answers.scores(BusyNodes(), None, as_nodes(sent))
            self.assertEqual(answers.score_columns(Busy(), None, SentColumns(to_columns(sent))), scores)
            self.assertEqual(answers.scores(Busy(), None, as_nodes(sent)), scores)
        self.assertGreater(crowded, 0, "no node was rejected only without its nominated pods")

    def test_answers_may_be_arrays(self):
        columns = to_columns([pb.InlineNode(), pb.InlineNode()])
        answer = answers.evaluate_columns([("P", Said(Array([True, False])))], None, columns, False)
        self.assertEqual(verdicts_of(answer), [("P", pb.CODE_UNSCHEDULABLE, "no"), None])
        self.assertEqual(answers.score_columns(Said(Array([7, 100])), None, SentColumns(columns)), bytes([7, 100]))

    def test_a_failing_plugin_ends_a_search_at_the_first_node_that_it_decides(self):
        sent = [pb.InlineNode(requested=pb.ResourceList(cpu_millis=cpu)) for cpu in (300, 400, 0, 300)]
        for said in (ValueError("broken"), [0, 0], [0, 0, 0, 2], [0, -1, 0, 0], None):
            plugins = [("Busy", Busy()), ("Said", Said(said))]
            answer = answers.evaluate_columns(plugins, None, to_columns(sent), False)
            self.assertEqual(list(answer.verdicts), [1, 1])
            self.assertEqual((answer.error.plugin, answer.error.code), ("Said", pb.CODE_ERROR))
            # In a simulation it rejects, and in `search` of nodes it fails at the same one.
            answer = answers.evaluate_columns(plugins, None, to_columns(sent), True)
            self.assertFalse(answer.HasField("error"))
            self.assertEqual([each[0] for each in verdicts_of(answer)], ["Busy", "Busy", "Said", "Busy"])
            answer = answers.search(plugins, None, as_nodes(sent), 0, 4)
            self.assertEqual((answer.processed, answer.error.plugin), (2, "Said"))
        # A plugin that no node reaches is not asked.
        plugins = [("All", Said([1, 1, 1, 1])), ("Said", Said(ValueError("broken")))]
        answer = answers.evaluate_columns(plugins, None, to_columns(sent), False)
        self.assertEqual(list(answer.verdicts), [1, 1, 1, 1])
        self.assertFalse(answer.HasField("error"))
        with self.assertRaisesRegex(ValueError, "score_columns answered for 1 nodes, not 4"):
            answers.score_columns(Said([1]), None, SentColumns(to_columns(sent)))
        with self.assertRaisesRegex(ValueError, "a score must be from 0 to 100, not 101"):
            answers.score_columns(Said([1, 2, 3, 101]), None, SentColumns(to_columns(sent)))


class ColumnsHostTest(unittest.TestCase):
    def setUp(self):
        self.host = Host([Labels(), Busy()], "build", "digest", "me", inline_nodes=True)
        self.calls = Calls(self.host)
        self.context = types.SimpleNamespace(time_remaining=lambda: 1.0)
        request = pb.ConfigureRequest(session_id="s", instance="me", cycle_deadline_micros=100_000)
        profile = request.profiles.add(name="p")
        profile.points.add(extension_point=pb.EXTENSION_POINT_FILTER, plugins=["Labels", "Busy"])
        profile.points.add(extension_point=pb.EXTENSION_POINT_SCORE, plugins=["Busy"])
        self.assertFalse(self.host.Configure(request, self.context).problems)
        self.sent = random_nodes(random.Random(3), 9)

    def header(self):
        return pb.CallHeader(session_id="s", attempt_id=1, exact_version=1, profile="p")

    def search(self, **fields):
        search = pb.NodeSearch(nodes=pb.NodeSet(slots=range(9)), num_feasible_nodes_to_find=9)
        return pb.FilterRequest(header=self.header(), pod=pb.Pod(), search=search, **fields)

    def test_the_capability_needs_columns_at_all_points_and_parts_that_come_in_columns(self):
        def capabilities(*plugins, inline=True):
            host = Host(plugins, "build", "digest", "me", inline_nodes=inline)
            return list(host.GetHostInfo(None, None).capabilities)

        class Pods(Labels):
            needed_fields = ("Node.pods",)

        class MaybePods(Labels):
            optional_fields = ("Node.pods",)

        class HalfColumns(Labels):
            def score(self, pod, node):
                return 1

        class Binds(Plugin):
            def bind(self, pod, node):
                return None

        both = [pb.CAPABILITY_INLINE_NODES, pb.CAPABILITY_NODE_COLUMNS]
        self.assertEqual(capabilities(Labels(), Busy()), both)
        self.assertEqual(capabilities(Labels(), Binds()), both)
        self.assertEqual(capabilities(MaybePods()), both)
        for plugins in ([Labels(), BusyNodes()], [Pods()], [HalfColumns()], [Binds()]):
            self.assertEqual(capabilities(*plugins), both[:1])
        self.assertEqual(capabilities(Labels(), inline=False), [])

    def test_it_answers_about_columns_as_about_nodes(self):
        columns = to_columns(self.sent)
        expected = answers.search([("Labels", LabelsOfNodes()), ("Busy", BusyNodes())], None, as_nodes(self.sent), 0, 9)
        answer = self.calls.Filter(self.search(node_columns=columns), self.context)
        self.assertEqual(verdicts_of(answer), verdicts_of(expected))
        simulation = pb.NodeSimulation(nodes=[pb.SimulatedNode(slot=i) for i in range(9)])
        request = pb.FilterRequest(header=self.header(), pod=pb.Pod(), simulation=simulation, node_columns=columns)
        self.assertEqual(verdicts_of(self.calls.Filter(request, self.context)), verdicts_of(expected))
        request = pb.ScoreRequest(header=self.header(), pod=pb.Pod(), nodes=pb.NodeSet(slots=range(9)), node_columns=columns)
        scores = self.calls.Score(request, self.context).plugins[0].scores
        self.assertEqual(scores, answers.scores(BusyNodes(), None, as_nodes(self.sent)))

    def test_columns_and_nodes_must_match(self):
        def too_short(change):
            columns = to_columns(self.sent)
            change(columns)
            return columns

        for columns in (
            None,
            pb.NodeColumns(),
            to_columns(self.sent[1:]),
            too_short(lambda columns: columns.unschedulable.pop()),
            too_short(lambda columns: columns.labels[1].indexes.pop()),
            too_short(lambda columns: columns.annotations[0].indexes.pop()),
            too_short(lambda columns: columns.taints.indexes.pop()),
            too_short(lambda columns: columns.allocatable[0].amounts.pop()),
            too_short(lambda columns: columns.requested[2].amounts.pop()),
        ):
            for call, request in (
                (self.calls.Filter, self.search(node_columns=columns)),
                (
                    self.calls.Score,
                    pb.ScoreRequest(
                        header=self.header(), pod=pb.Pod(), nodes=pb.NodeSet(slots=range(9)), node_columns=columns
                    ),
                ),
            ):
                with self.assertRaises(CallFailed) as caught:
                    call(request, self.context)
                self.assertEqual(caught.exception.reason, "INVALID")

    def test_a_shim_without_columns_sends_nodes(self):
        # As the server reads them: bytes.
        request = types.SimpleNamespace(
            header=self.header(),
            pod=pb.Pod(),
            search=self.search().search,
            inline_nodes=[each.SerializeToString() for each in self.sent],
            WhichOneof=lambda _: "search",
            HasField=lambda name: name != "node_columns",
        )
        expected = self.calls.Filter(self.search(node_columns=to_columns(self.sent)), self.context)
        self.assertEqual(verdicts_of(self.calls.Filter(request, self.context)), verdicts_of(expected))


if __name__ == "__main__":
    unittest.main()
