"""Plugins for tests: all extension points (`every`), the same without a cluster cache (`every_inline`), only Permit (`permit`),
filter and score in columns without a cluster cache (`columns`)."""

import sys

from outboard_plugin import Excluded, Placement, Plugin, Unschedulable, Wait, effects, serve


class EveryPoint(Plugin):
    def configure(self, args):
        for name in args:
            if name != "limit":
                raise ValueError(f"{name}: unknown field")

    def pre_enqueue(self, pod):
        if pod.scheduling_gates:
            return Unschedulable("gated")

    def pre_filter(self, pod, cluster):
        if pod.name == "spread":
            return [node.name for node in cluster.nodes if node.labels.get("disk") == "ssd"] or None
        if pod.name == "apart":
            return Unschedulable("nowhere")

    def filter(self, pod, node):
        if pod.name == "huge" or (pod.name == "selective" and node.pods):
            return Unschedulable("node(s) were too small")

    def score(self, pod, node):
        return 10 * (node.slot % 10)

    def reserve(self, pod, node):
        if pod.name == "port":
            return Unschedulable("port is taken")

    def unreserve(self, pod, node):
        pass

    def permit(self, pod, node):
        if pod.name == "tolerant":
            return Wait(5)
        if pod.name == "urgent":
            return Unschedulable("not now")


class WithCache(EveryPoint):
    def pre_bind(self, pod, node, done):
        return [effects.patch_pod("seen", {"example.com/seen": node.name})]

    def generate_placements(self, group, cluster):
        zones = {}
        for node in cluster.nodes:
            zones.setdefault(node.labels.get("topology.kubernetes.io/zone", "none"), []).append(node)
        return [Placement(zone, nodes) for zone, nodes in sorted(zones.items())]

    def score_placements(self, group, candidates):
        return [Excluded("too large") if len(one.nodes) > 8 else len(one.nodes) for one in candidates]


class PermitOnly(Plugin):
    def permit(self, pod, node):
        if pod.name == "tolerant":
            return Wait(5)


class InColumns(Plugin):
    filter_reasons = (Unschedulable("node(s) were cordoned"), Unschedulable("node(s) were too small"))

    def filter_columns(self, pod, columns):
        if pod.name == "huge":
            return [2] * len(columns)
        if pod.name == "selective":
            return [2 * (pods > 0) for pods in columns.requested("pods")]
        return columns.unschedulable

    def score_columns(self, pod, columns):
        return [len(name) % 10 for name in columns.names]


what = sys.argv.pop(1)
plugins = {"every": WithCache, "every_inline": EveryPoint, "permit": PermitOnly, "columns": InColumns}
serve(plugins[what](), inline_nodes=what in ("every_inline", "columns"))
