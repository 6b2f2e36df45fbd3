"""python3 -m unittest example_plugin_test"""

import types
import unittest

from example_plugin import DATASET, DATASETS, ExamplePlugin


def node(datasets=None):
    return types.SimpleNamespace(annotations={} if datasets is None else {DATASETS: datasets})


def pod(dataset=None):
    return types.SimpleNamespace(annotations={} if dataset is None else {DATASET: dataset})


def configured(**args):
    plugin = ExamplePlugin()
    plugin.configure(args)
    return plugin


class ExamplePluginTest(unittest.TestCase):
    def test_scores(self):
        plugin = configured()
        self.assertEqual(plugin.score(pod("a"), node("b, a")), 100)
        for other in (node("b"), node("ab"), node(""), node()):
            self.assertEqual(plugin.score(pod("a"), other), 0)
        self.assertEqual(plugin.score(pod(), node("a")), 0)
        self.assertEqual(plugin.score(pod(""), node("a,,b")), 0)

    def test_required(self):
        plugin = configured(required=True)
        self.assertIsNone(plugin.filter(pod("a"), node("a,b")))
        self.assertIsNone(plugin.filter(pod(), node()))
        self.assertEqual(
            plugin.filter(pod("a"), node("b")).reason, "node(s) did not have the pod's dataset"
        )

    def test_not_required(self):
        self.assertIsNone(configured().filter(pod("a"), node()))

    def test_arguments(self):
        for args in ({"require": True}, {"required": 1}, {"required": "yes"}):
            with self.assertRaises(ValueError):
                configured(**args)


if __name__ == "__main__":
    unittest.main()
