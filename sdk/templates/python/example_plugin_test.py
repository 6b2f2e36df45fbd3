"""python3 -m unittest example_plugin_test"""

import types
import unittest

from example_plugin import ExamplePlugin


def node(**labels):
    return types.SimpleNamespace(labels={key.replace("_", "/", 1): value for key, value in labels.items()})


def pod(**annotations):
    return types.SimpleNamespace(annotations={f"example-plugin/{key.replace('_', '-')}": value for key, value in annotations.items()})


def configured(**args):
    plugin = ExamplePlugin()
    plugin.configure(args)
    return plugin


class ExamplePluginTest(unittest.TestCase):
    def test_limits(self):
        plugin = configured(label="price", maxPrice=1.5)
        self.assertIsNone(plugin.filter(pod(), node(price="1.5")))
        self.assertEqual(plugin.filter(pod(), node(price="2")).reason, "node(s) cost too much")
        self.assertEqual(plugin.filter(pod(max_price="1"), node(price="1.2")).reason, "node(s) cost too much")
        self.assertEqual(plugin.filter(pod(), node()).reason, "node(s) had no price")
        self.assertIn("is not a price", plugin.filter(pod(max_price="a lot"), node(price="1")).reason)

    def test_no_limit(self):
        self.assertIsNone(configured().filter(pod(), node()))

    def test_cheap_nodes_are_better(self):
        plugin = configured(label="price")
        self.assertGreater(plugin.score(pod(), node(price="0.5")), plugin.score(pod(), node(price="2")))

    def test_arguments(self):
        for args in ({"prize": 1}, {"maxPrice": 0}, {"maxPrice": "1"}, {"label": ""}):
            with self.assertRaises(ValueError):
                configured(**args)


if __name__ == "__main__":
    unittest.main()
