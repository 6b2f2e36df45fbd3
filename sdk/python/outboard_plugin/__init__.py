"""Scheduling plugins for Outboard, in Python.

A plugin is a class that overrides the extension points that it implements; `serve` runs a plugin host with it:

    from outboard_plugin import Plugin, Unschedulable, serve

    class OnlyBigNodes(Plugin):
        def filter(self, pod, node):
            if node.allocatable.cpu_millis < 8000:
                return Unschedulable("node(s) were too small")

    serve(OnlyBigNodes())

The host has no Kubernetes credentials. It keeps a cache of the cluster, which the shim updates. Pods and nodes are the
contract's messages (`proto/outboard/v1beta1/types.proto`), read-only. All plugins of a host run on one thread at a time.
"""

from outboard_plugin.api import (
    Bound,
    Cluster,
    Node,
    NotYet,
    Plugin,
    Reject,
    Reserved,
    ShimBinds,
    Unresolvable,
    Unschedulable,
    Wait,
)
from outboard_plugin.call_info import CallFilter, CallInfo, current_call
from outboard_plugin.columns import Columns, Dictionary
from outboard_plugin.groups import Candidate, Excluded, Group, Placement
from outboard_plugin.objects import DeclaredResource, Object
from outboard_plugin.server import serve

__all__ = [
    "Bound",
    "CallFilter",
    "CallInfo",
    "Candidate",
    "Cluster",
    "Columns",
    "DeclaredResource",
    "Dictionary",
    "Excluded",
    "Group",
    "Node",
    "NotYet",
    "Object",
    "Placement",
    "Plugin",
    "Reject",
    "Reserved",
    "ShimBinds",
    "Unresolvable",
    "Unschedulable",
    "Wait",
    "current_call",
    "serve",
]
