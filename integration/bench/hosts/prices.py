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


class PricesInColumns(Plugin):
    name = "Prices"
    needed_fields = Prices.needed_fields
    filter_reasons = (Unschedulable("node(s) had no price"),)

    def filter_columns(self, pod, columns):
        return [index == 0 for index in columns.label("price").indexes]

    def score_columns(self, pod, columns):
        return columns.label("price").map(lambda text: max(0, 100 - int(text)), absent=0)


forms = {"--inline-nodes": Prices, "--columns": PricesInColumns}
form = next((flag for flag in sys.argv if flag in forms), None)
serve(forms.get(form, Prices)(), inline_nodes=form is not None, arguments=[flag for flag in sys.argv[1:] if flag not in forms])
