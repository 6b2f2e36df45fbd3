"""ExamplePlugin: rejects nodes that cost too much, and prefers cheap nodes."""

from outboard_plugin import Plugin, Unresolvable, serve

MAX_PRICE = "example-plugin/max-price"


def read_price(text):
    """The price, or None if the text is not a price."""
    try:
        price = float(text)
    except ValueError:
        return None
    return price if 0 <= price <= 1e9 else None


class ExamplePlugin(Plugin):
    # The shim sends only annotations that a plugin declares.
    needed_fields = (f"Pod.metadata.annotations['{MAX_PRICE}']",)
    # Events that may make a rejected pod schedulable.
    wake_up_events = (("Node", "ADD"), ("Node", "UPDATE_NODE_LABEL"))

    def __init__(self):
        self.configure({})

    def configure(self, args):
        for field in sorted(set(args) - {"label", "maxPrice"}):
            raise ValueError(f"{field}: unknown field")
        label = args.get("label", "example-plugin/price")
        if not isinstance(label, str) or not label:
            raise ValueError("label: must be the name of a label")
        max_price = args.get("maxPrice")
        if max_price is not None and (isinstance(max_price, bool) or not isinstance(max_price, (int, float)) or max_price <= 0):
            raise ValueError("maxPrice: must be greater than zero")
        self.label, self.max_price = label, max_price

    def filter(self, pod, node):
        limit = self.max_price
        if MAX_PRICE in pod.annotations:
            wanted = read_price(pod.annotations[MAX_PRICE])
            if wanted is None:
                return Unresolvable(f"the pod's annotation {MAX_PRICE} is not a price")
            limit = wanted if limit is None else min(limit, wanted)
        if limit is None:
            return None
        price = self.price_of(node)
        if price is None:
            return Unresolvable("node(s) had no price")
        # Unresolvable: evicting pods does not change a node's price, so preemption cannot help.
        return None if price <= limit else Unresolvable("node(s) cost too much")

    def score(self, pod, node):
        price = self.price_of(node)
        return 100 if price is None else round(100 / (1 + price))

    def price_of(self, node):
        return read_price(node.labels[self.label]) if self.label in node.labels else None


if __name__ == "__main__":
    serve(ExamplePlugin())
