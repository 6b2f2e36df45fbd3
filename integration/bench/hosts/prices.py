"""The second host of `./dev bench hosts`: rejects nodes without a price, and prefers cheap ones."""

import sys

from outboard_plugin import Plugin, Unschedulable, serve


class Prices(Plugin):
    needed_fields = ("Node.metadata.labels['price']",)

    def filter(self, pod, node):
        if "price" not in node.labels:
            return Unschedulable("node(s) had no price")
        return None

    def score(self, pod, node):
        return max(0, 100 - int(node.labels["price"]))


serve(Prices(), inline_nodes="--inline-nodes" in sys.argv, arguments=[flag for flag in sys.argv[1:] if flag != "--inline-nodes"])
