"""A plugin host in plain Python: host.py --listen unix:PATH. docs/write-a-host.md explains it."""

import concurrent.futures
import os
import re
import signal
import sys
import time

import grpc
from call_errors.rpc_status_pb2 import RpcStatus
from outboard.handshake.v1 import handshake_pb2, handshake_pb2_grpc
from outboard.v1beta1 import call_pb2, filter_pb2, filter_pb2_grpc, plugin_host_pb2, plugin_host_pb2_grpc
from outboard.v1beta1 import score_pb2, score_pb2_grpc

INSTANCE, STARTED_MICROS = f"plain-python-{os.getpid()}-{time.time_ns()}", time.time_ns() // 1000
PRICE, MAX_PRICE = "example.com/price", "example.com/max-price"


def number(labels, name, default):
    return int(labels[name]) if labels.get(name, "").isdecimal() else default


def budget(pod, node):
    """None if the node can take the pod; otherwise the plugin, the code and the reason. Evicting pods does not help."""
    if number(node.labels, PRICE, 0) > number(pod.labels, MAX_PRICE, float("inf")):
        return "Budget", call_pb2.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, "node(s) were too expensive"


def cheap_nodes(pod, node):
    """0 to 100; a larger score is better."""
    return 100 - min(100, number(node.labels, PRICE, 100))


FILTER, SCORE = plugin_host_pb2.EXTENSION_POINT_FILTER, plugin_host_pb2.EXTENSION_POINT_SCORE
PLUGINS = {"Budget": (FILTER, budget), "CheapNodes": (SCORE, cheap_nodes)}


def fail(context, code, reason, message):
    """Raises: ends the call with a google.rpc.Status, whose detail is an Any with the CallError."""
    error = call_pb2.CallError(reason="REASON_" + reason, message=message)
    status = RpcStatus(code=code.value[0], message=message)
    status.details.add(type_url="type.googleapis.com/outboard.v1beta1.CallError", value=error.SerializeToString())
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)


class Host(handshake_pb2_grpc.HandshakeServiceServicer, plugin_host_pb2_grpc.PluginHostServiceServicer,
           filter_pb2_grpc.FilterServiceServicer, score_pb2_grpc.ScoreServiceServicer):
    sessions, ended, draining = {}, set(), False  # sessions: id -> profile -> extension point -> names of plugins

    def Handshake(self, request, context):
        return handshake_pb2.HandshakeResponse(
            contract_versions=["v1beta1"], instance=INSTANCE, build="example", started_unix_micros=STARTED_MICROS)

    def GetHostInfo(self, request, context):
        response = plugin_host_pb2.GetHostInfoResponse(capabilities=["CAPABILITY_INLINE_NODES"])
        for name, (point, _) in PLUGINS.items():
            fields = [f"Node.metadata.labels['{PRICE}']"]
            plugin = response.plugins.add(name=name, extension_points=[point], needed_fields=fields)
            plugin.wake_up_events.add(resource="Node", actions=["ACTION_ADD", "ACTION_UPDATE_NODE_LABEL"])
        return response

    def Configure(self, request, context):
        if request.instance != INSTANCE:
            fail(context, grpc.StatusCode.FAILED_PRECONDITION, "WRONG_INSTANCE", f"this is instance {INSTANCE}")
        if not re.fullmatch("[a-z0-9-]{1,63}", request.session_id):
            fail(context, grpc.StatusCode.INVALID_ARGUMENT, "INVALID", "session_id must match [a-z0-9-]{1,63}")
        if self.draining or request.session_id in self.ended:
            fail(context, grpc.StatusCode.UNAVAILABLE, "DRAINING", "the session has ended, or the host drains")
        response, profiles = plugin_host_pb2.ConfigureResponse(), {}
        for profile in request.profiles:
            points = profiles[profile.name] = {point.extension_point: list(point.plugins) for point in profile.points}
            wrong = [name for point in points for name in points[point] if PLUGINS.get(name, (0,))[0] != point]
            wrong += [args.plugin for args in profile.args if args.plugin not in PLUGINS or args.args_json != "{}"]
            for name in wrong:
                response.problems.add(profile=profile.name, plugin=name, message="no such plugin, point or argument")
        if not response.problems and not request.validate_only:
            self.sessions.pop(request.session_id, None)
            self.sessions[request.session_id] = profiles
            if len(self.sessions) > 64:  # The contract requires 8.
                del self.sessions[next(iter(self.sessions))]  # Configured first.
            self.ended &= self.sessions.keys()
        return response

    def Probe(self, request, context):
        state, reason = "STATE_READY", ""
        if self.draining or request.session_id in self.ended:
            state, reason = "STATE_DRAINING", "the session has ended, or the host drains"
        elif request.session_id and request.session_id not in self.sessions:
            state, reason = "STATE_INITIALIZING", "not configured"
        return plugin_host_pb2.ProbeResponse(state=state, reason=reason, instance=INSTANCE)

    def EndSession(self, request, context):
        self.ended |= {request.session_id} & self.sessions.keys()
        return plugin_host_pb2.EndSessionResponse()

    def plugins_at(self, point, request, context, slots):
        header, profiles = request.header, self.sessions.get(request.header.session_id)
        if profiles is None or header.profile not in profiles:
            reason = "SESSION_UNKNOWN" if profiles is None else "NOT_CONFIGURED"
            fail(context, grpc.StatusCode.FAILED_PRECONDITION, reason, "Configure did not name this session and profile")
        if not request.HasField("pod") or len(slots) != len(request.inline_nodes):
            fail(context, grpc.StatusCode.INVALID_ARGUMENT, "INVALID", "pod or inline_nodes are missing")
        return profiles[header.profile].get(point, [])

    def Filter(self, request, context):
        slots = request.search.nodes.slots if request.HasField("search") else request.simulation.nodes
        plugins = self.plugins_at(FILTER, request, context, slots)
        if request.WhichOneof("what") is None:
            fail(context, grpc.StatusCode.INVALID_ARGUMENT, "INVALID", "search or simulation is required")
        verdicts, reasons = [], {}
        for node in request.inline_nodes:
            verdict = next(filter(None, (PLUGINS[name][1](request.pod, node.node) for name in plugins)), None)
            verdicts.append(0 if verdict is None else reasons.setdefault(verdict, len(reasons) + 1))
        statuses = [call_pb2.PluginStatus(plugin=plugin, code=code, reasons=[reason]) for plugin, code, reason in reasons]
        return filter_pb2.FilterResponse(verdicts=verdicts, reasons=statuses)

    def Score(self, request, context):
        response = score_pb2.ScoreResponse()
        for name in self.plugins_at(SCORE, request, context, request.nodes.slots):
            scores = bytes(PLUGINS[name][1](request.pod, node.node) for node in request.inline_nodes)
            response.plugins.add(plugin=name, scores=scores)
        return response


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # The threads of gRPC inherit it.
    # One thread, so that calls run one at a time. The shim may ping every 10 s, also without calls.
    host, server = Host(), grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=1), options=[
        ("grpc.max_receive_message_length", 64 << 20),  # inline_node.proto; gRPC's default is 4 MiB.
        ("grpc.http2.min_ping_interval_without_data_ms", 9000), ("grpc.keepalive_permit_without_calls", 1)])
    handshake_pb2_grpc.add_HandshakeServiceServicer_to_server(host, server)
    plugin_host_pb2_grpc.add_PluginHostServiceServicer_to_server(host, server)
    filter_pb2_grpc.add_FilterServiceServicer_to_server(host, server)
    score_pb2_grpc.add_ScoreServiceServicer_to_server(host, server)
    os.umask(0o177)  # Only this user may connect.
    server.add_insecure_port(sys.argv[sys.argv.index("--listen") + 1].replace("{instance}", INSTANCE))
    server.start()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    host.draining = True
    server.stop(grace=1).wait(2)
