"""python3 -m unittest price_table_test"""

import os
import tempfile
import types
import unittest

from price_table import PriceTable


def node(kind=None):
    return types.SimpleNamespace(labels={} if kind is None else {"node.kubernetes.io/instance-type": kind})


class PriceTableTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "prices.csv")
        self.write("type,price\nsmall,1\nlarge,3\nhuge,5\n")
        self.now = 0.0
        self.plugin = PriceTable()
        self.plugin.clock = lambda: self.now
        self.plugin.configure({"file": self.file})

    def write(self, text):
        draft = self.file + ".draft"
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, self.file)

    def scores(self):
        return [self.plugin.score(None, node(kind)) for kind in ("small", "large", "huge", "unknown", None)]

    def test_cheap_nodes_are_better(self):
        self.assertEqual(self.scores(), [100, 50, 0, 0, 0])

    def test_a_changed_table_is_loaded(self):
        self.write("type,price\nsmall,5\nlarge,3\nhuge,1\n")
        self.assertEqual(self.scores(), [100, 50, 0, 0, 0])
        self.now = 11.0
        self.assertEqual(self.scores(), [0, 50, 100, 0, 0])

    def test_an_invalid_table_keeps_the_last_one(self):
        for text in ("", "type,price\nsmall,cheap\n", "type,price\nsmall\n", "type,price\n,1\n", "type,price\nsmall,-1\n"):
            self.write(text)
            self.now += 11.0
            with self.assertLogs("price_table", "ERROR"):
                self.assertEqual(self.scores(), [100, 50, 0, 0, 0])
        os.remove(self.file)
        self.now += 11.0
        with self.assertLogs("price_table", "ERROR"):
            self.assertEqual(self.scores(), [100, 50, 0, 0, 0])

    def test_arguments(self):
        for args in ({}, {"file": ""}, {"file": "/nothing"}, {"file": self.file, "refreshSeconds": 0}, {"file": self.file, "x": 1}):
            with self.assertRaises(ValueError):
                PriceTable().configure(args)


if __name__ == "__main__":
    unittest.main()
