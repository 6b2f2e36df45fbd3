"""What one Filter call costs a Python host without a cache, with nodes as messages and in columns.

PYTHONPATH=sdk/python python3 integration/bench/hosts/node_forms.py [NODES], with grpcio and grpcio-tools. Measures from the
request's bytes to the answer's, in one process and without gRPC: medians in milliseconds. A call with messages costs more
the more nodes changed since the call before."""

import statistics
import sys
import time
import types

from outboard_plugin import Plugin, Unschedulable
from outboard_plugin.calls import Calls
from outboard_plugin.host import Host
from outboard_plugin.proto import pb, raw

CALLS = 20
CONTEXT = types.SimpleNamespace(time_remaining=lambda: None)
FIELDS = ("Node.metadata.labels['price']", "Node.status.allocatable['cpu']", "Node.requested['cpu']")


class ByNode(Plugin):
    needed_fields = FIELDS

    def filter(self, pod, node):
        if node.allocatable.cpu_millis - node.requested.cpu_millis < 1000:
            return Unschedulable("node(s) were full")
        return Unschedulable("node(s) were too expensive") if int(node.labels["price"]) > 90 else None


class InColumns(Plugin):
    needed_fields = FIELDS
    filter_reasons = (Unschedulable("node(s) were full"), Unschedulable("node(s) were too expensive"))

    def filter_columns(self, pod, columns):
        expensive = columns.label("price").map(lambda text: 2 if int(text) > 90 else 0, absent=0)
        nodes = zip(columns.allocatable("cpu"), columns.requested("cpu"), expensive)
        return [1 if has - used < 1000 else verdict for has, used, verdict in nodes]


class WithNumpy(InColumns):
    def filter_columns(self, pod, columns):
        import numpy

        price = columns.label("price")
        expensive = numpy.array([0] + [2 if int(text) > 90 else 0 for text in price.values])[numpy.array(price.indexes)]
        free = numpy.array(columns.allocatable("cpu")) - numpy.array(columns.requested("cpu"))
        return numpy.where(free < 1000, 1, expensive)


def nodes_of(count, requested):
    """Every tenth node costs too much, every fifth is full."""
    for i in range(count):
        node = pb.Node(name=f"node-{i}", uid=f"00000000-0000-0000-0000-{i:012}", creation_unix_seconds=1_700_000_000 + i)
        node.labels["price"] = str(i % 100)
        node.allocatable.cpu_millis = 32000
        used = 31500 if i % 5 == 0 else requested
        yield pb.InlineNode(node=node, requested=pb.ResourceList(cpu_millis=used))


def request_for(nodes, columns):
    count = len(nodes)
    header = pb.CallHeader(session_id="s", attempt_id=1, exact_version=1, profile="p")
    search = pb.NodeSearch(nodes=pb.NodeSet(slots=range(count)), num_feasible_nodes_to_find=count)
    request = pb.FilterRequest(header=header, pod=pb.Pod(uid="p", name="p"), search=search)
    if not columns:
        request.inline_nodes.extend(nodes)
        return request.SerializeToString()
    prices = [str(price) for price in range(100)][:count]
    request.node_columns.CopyFrom(
        pb.NodeColumns(
            names=[each.node.name for each in nodes],
            unschedulable=[False] * count,
            labels=[pb.TextColumn(key="price", values=prices, indexes=[1 + i % 100 for i in range(count)])],
            allocatable=[pb.ResourceColumn(resource="cpu", amounts=[each.node.allocatable.cpu_millis for each in nodes])],
            requested=[pb.ResourceColumn(resource="cpu", amounts=[each.requested.cpu_millis for each in nodes])],
        )
    )
    return request.SerializeToString()


def measure(what, plugin, requests):
    """Calls with the requests in turn."""
    host = Host([plugin], "bench", "", "i", inline_nodes=True)
    configure = pb.ConfigureRequest(session_id="s", instance="i", cycle_deadline_micros=1_000_000)
    profile = configure.profiles.add(name="p")
    profile.points.add(extension_point=pb.EXTENSION_POINT_FILTER, plugins=list(host.plugins))
    assert not host.Configure(configure, CONTEXT).problems
    calls, millis, feasible = Calls(host), [], 0
    for i in range(CALLS):
        began = time.perf_counter()
        answer = calls.Filter(raw.FilterRequest.FromString(requests[i % len(requests)]), CONTEXT)
        answer.SerializeToString()
        millis.append(1000 * (time.perf_counter() - began))
        feasible = list(answer.verdicts).count(0) if answer.verdicts else answer.processed - len(answer.rejected)
    print(f"{what:42} {statistics.median(millis):8.2f} ms {len(requests[0]) / 1024:8.0f} KiB  {feasible} feasible")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    one, other = list(nodes_of(count, 1000)), list(nodes_of(count, 2000))
    measure("messages, all nodes changed", ByNode(), [request_for(each, False) for each in (one, other)])
    measure("messages, no node changed", ByNode(), [request_for(one, False)])
    measure("columns", InColumns(), [request_for(each, True) for each in (one, other)])
    try:
        import numpy  # noqa: F401
    except ImportError:
        return
    measure("columns, numpy", WithNumpy(), [request_for(each, True) for each in (one, other)])


main()
