"""Verdicts and scores, packed as the contract requires."""

import logging
import random
import unittest

from outboard_plugin import Node, Plugin, Unresolvable, Unschedulable, answers
from outboard_plugin.proto import pb


def nodes(count):
    return [Node(i, pb.Node(name=f"n{i}", uid=f"u{i}")) for i in range(count)]


class Scripted(Plugin):
    """Returns the dictionary's verdict for each node name; raises it if it is an exception."""

    def __init__(self, said):
        self.said = said
        self.asked = []

    def filter(self, pod, node):
        self.asked.append(node.name)
        verdict = self.said.get(node.name)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


class Batched(Scripted):
    def filter_nodes(self, pod, nodes):
        return [Scripted.filter(self, pod, node) for node in nodes]


def one_by_one(plugins, pod, order, enough):
    """The contract's rules, node by node: (node, verdict) pairs and the plugin that failed."""
    seen, feasible = [], 0
    for node in order:
        verdict = None
        for name, plugin in plugins:
            try:
                verdict = plugin.filter(pod, node)
            except ValueError:
                return seen, name
            if verdict is not None:
                verdict = (name, verdict)
                break
        if verdict is None:
            if feasible == enough:
                break
            feasible += 1
        seen.append(verdict)
    return seen, None


def unpack(response):
    seen, rejected = [], iter(response.rejected)
    for i in range(response.processed):
        if response.feasible[i // 8] >> (i % 8) & 1:
            seen.append(None)
        else:
            status = response.reasons[next(rejected)]
            seen.append((status.plugin, status.reasons[0]))
    return seen


class AnswersTest(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def test_search_equals_evaluating_node_by_node(self):
        for seed in range(300):
            rng = random.Random(seed)
            order = nodes(rng.randrange(1, 600))
            enough = rng.randrange(1, len(order) + 1)
            start = rng.randrange(0, 2 * len(order))
            plugins = []
            for name in ("A", "B")[: rng.randrange(1, 3)]:
                share = rng.random()
                said = {
                    node.name: rng.choice((Unschedulable("small"), Unresolvable("never")))
                    for node in order
                    if rng.random() < share
                }
                if rng.random() < 0.3:
                    said[rng.choice(order).name] = ValueError("broken")
                plugins.append((name, Scripted(said)))
            at = start % len(order)
            want, failed = one_by_one(plugins, None, order[at:] + order[:at], enough)
            got = answers.search(plugins, None, order, start, enough)
            self.assertEqual(unpack(got), [said and (said[0], said[1].reason) for said in want], f"seed {seed}")
            self.assertEqual(got.error.plugin if got.HasField("error") else None, failed, f"seed {seed}")

    def test_a_batch_gives_the_same(self):
        said = {"n3": Unschedulable("small"), "n5": Unresolvable("never")}
        order = nodes(9)
        self.assertEqual(
            answers.search([("A", Batched(said))], None, order, 2, 9),
            answers.search([("A", Scripted(said))], None, order, 2, 9),
        )

    def test_a_search_examines_little_more_than_it_needs(self):
        plugin = Scripted({})
        answers.search([("A", plugin)], None, nodes(5000), 0, 500)
        self.assertEqual(len(plugin.asked), 501)

    def test_a_second_plugin_is_not_called_for_rejected_nodes(self):
        second = Scripted({})
        answers.search([("A", Scripted({"n1": Unschedulable("no")})), ("B", second)], None, nodes(3), 0, 3)
        self.assertEqual(second.asked, ["n0", "n2"])

    def test_a_batch_of_the_wrong_length_fails_the_plugin(self):
        class Short(Plugin):
            def filter_nodes(self, pod, nodes):
                return [None]

        got = answers.search([("Short", Short())], None, nodes(3), 0, 3)
        self.assertEqual(got.error.plugin, "Short")
        self.assertIn("not 3", got.error.reasons[0])
        self.assertEqual(got.processed, 0)

    def test_nodes_with_nominated_pods_are_evaluated_with_and_without_them(self):
        class Crowd(Plugin):
            def filter(self, pod, node):
                if node.name == "n1" and len(node.pods) == 1:
                    return Unschedulable("full")
                if node.name == "n2" and not node.pods:
                    return Unschedulable("lonely")
                return None

        order = nodes(4)
        nominated = {node.slot: [pb.Pod(uid="x")] for node in order[1:3]}
        pod = pb.Pod(uid="p")
        said, only_without, failed = answers.evaluate([("Crowd", Crowd())], pod, order, nominated)
        self.assertEqual([verdict and verdict[1].reason for verdict in said], [None, "full", "lonely", None])
        self.assertEqual(only_without, [2])
        self.assertIsNone(failed)
        response = answers.search([("Crowd", Crowd())], pod, order, 0, 4, nominated)
        self.assertEqual(list(response.only_without_nominated), [1])
        self.assertEqual(answers.evaluate_each([("Crowd", Crowd())], pod, order, nominated), response)

    def test_simulated_nodes_are_evaluated_separately(self):
        plugin = Scripted({"n0": ValueError("broken"), "n1": Unschedulable("no")})
        response = answers.evaluate_each([("A", plugin)], None, nodes(3))
        self.assertFalse(response.HasField("error"))
        self.assertEqual(unpack(response), [("A", "plugin A raised ValueError: broken"), ("A", "no"), None])
        codes = [pb.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, pb.CODE_UNSCHEDULABLE]
        self.assertEqual([reason.code for reason in response.reasons], codes)

    def test_scores_are_checked(self):
        class Scores(Plugin):
            def __init__(self, said):
                self.said = said

            def score_nodes(self, pod, nodes):
                return self.said

        self.assertEqual(answers.scores(Scores([0, 100, 7]), None, nodes(3)), bytes([0, 100, 7]))
        self.assertEqual(answers.scores(Scores([]), None, []), b"")
        for wrong in ([1, 2], [1, 2, 101], [1, 2, -1], [1, 2, 300], [1, 2, None]):
            with self.assertRaises(ValueError):
                answers.scores(Scores(wrong), None, nodes(3))


if __name__ == "__main__":
    unittest.main()
