"""The contract's services over gRPC: `serve` runs plugins as a host."""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import logging
import os
import signal
import sys
import uuid
from typing import Any, Callable, Iterator, Optional, Sequence

import grpc

from outboard_plugin import api
from outboard_plugin.call_info import CallFilter, scope
from outboard_plugin.calls import Calls
from outboard_plugin.errors import CallFailed
from outboard_plugin.host import Host
from outboard_plugin.proto import pb, raw, services

log = logging.getLogger("outboard_plugin")

# The limit of inline_node.proto; a snapshot arrives in smaller chunks.
MAX_MESSAGE_BYTES = 64 << 20
STOP_SECONDS = 1.0
SERVICE_PACKAGE = "outboard.v1beta1"

HOST_SERVICES = {
    "HandshakeService": ("Handshake",),
    "PluginHostService": ("GetHostInfo", "Configure", "Probe", "EndSession", "Drain"),
    "ClusterStateService": ("Sync",),
}
POD_SERVICES = {
    "PreEnqueueService": ("PreEnqueue",),
    "PreFilterService": ("PreFilter",),
    "FilterService": ("Filter",),
    "PreScoreService": ("PreScore",),
    "ScoreService": ("Score",),
    "GroupService": ("GeneratePlacements", "ScorePlacements"),
    "ReserveService": ("Reserve", "Unreserve"),
    "PermitService": ("Permit",),
    "PreBindService": ("PreBind",),
    "BindService": ("Bind",),
    "PostBindService": ("PostBind",),
}
RAW_SERVICES = ("FilterService", "ScoreService")
# Only with a cluster cache.
CACHE_SERVICES = ("ClusterStateService", "GroupService", "PreBindService")


def _fail(context: Any, failed: CallFailed) -> None:
    status = pb.RpcStatus(code=failed.code.value[0], message=str(failed))
    status.details.add(type_url=f"type.googleapis.com/{SERVICE_PACKAGE}.CallError", value=failed.error.SerializeToString())
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(failed.code, str(failed))


def _unary(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def call(request: Any, context: Any) -> Any:
        try:
            with scope():
                return method(request, context)
        except CallFailed as failed:
            return _fail(context, failed)

    return call


def _stream(method: Callable[[Iterator[Any], Any], Iterator[Any]]) -> Callable[[Iterator[Any], Any], Iterator[Any]]:
    def call(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        try:
            yield from method(requests, context)
        except CallFailed as failed:
            _fail(context, failed)

    return call


def register(host: Host, server: Any) -> None:
    """Adds the supported services of the contract to a gRPC server."""
    calls = Calls(host)
    for owner, names in ((host, HOST_SERVICES), (calls, POD_SERVICES)):
        for service, methods in names.items():
            if service in CACHE_SERVICES and host.inline_nodes:
                continue
            if service in RAW_SERVICES and host.inline_nodes:
                _add_raw(service, methods[0], getattr(calls, methods[0]), server)
                continue
            adapter = type(service, (), {})()
            for method in methods:
                wrap: Any = _stream if method == "Sync" else _unary
                setattr(adapter, method, wrap(getattr(owner, method)))
            services.add(service, adapter, server)


def _add_raw(service: str, method: str, call: Callable[[Any, Any], Any], server: Any) -> None:
    """Adds a method whose request has nodes as bytes, because most nodes are cached and need no parsing."""
    handler = grpc.unary_unary_rpc_method_handler(
        _unary(call),
        request_deserializer=getattr(raw, method + "Request").FromString,
        response_serializer=getattr(pb, method + "Response").SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"{SERVICE_PACKAGE}.{service}", {method: handler}),))


def start(host: Host, address: str) -> Any:
    """Starts a server at `unix:PATH` that only this user can access; raises OSError if it cannot listen."""
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(max_workers=16),
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            # A shim may ping every 10 s, also without calls. By default gRPC would close its connection after a few.
            ("grpc.http2.min_ping_interval_without_data_ms", 9000),
            ("grpc.keepalive_permit_without_calls", 1),
        ],
    )
    register(host, server)
    mask = os.umask(0o177)
    try:
        if server.add_insecure_port(address) == 0:
            raise OSError(f"cannot listen on {address}")
        server.start()
    except RuntimeError as error:  # Newer versions of gRPC raise it.
        raise OSError(f"cannot listen on {address}: {error}") from error
    finally:
        os.umask(mask)
    return server


def start_metrics(address: str) -> None:
    """Serves the metrics of prometheus_client's default registry at http://ADDRESS/metrics. Raises ValueError, or OSError if
    it cannot listen. Loopback only, as it has neither TLS nor authorization; scrape it through a proxy that has."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "[::1]") or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"must be 127.0.0.1:PORT or [::1]:PORT, not {address}")
    try:
        import prometheus_client
    except ImportError as error:
        raise ValueError("requires the package prometheus_client") from error
    prometheus_client.start_http_server(int(port), addr=host.strip("[]"))


def serve(
    *plugins: api.Plugin,
    build: str = "dev",
    digest: str = "",
    inline_nodes: Optional[bool] = None,
    arguments: Optional[Sequence[str]] = None,
) -> None:
    """Runs a host with these plugins until SIGTERM or SIGINT, then drains.

    `digest` identifies the build; by default it is computed from the program's file. `inline_nodes`: nodes come with each
    call, and the host has no cluster cache; by default the plugins' value."""
    parser = argparse.ArgumentParser(description="A plugin host for outboard-shim: " + ", ".join(map(api.name_of, plugins)))
    parser.add_argument(
        "--listen",
        required=True,
        metavar="unix:PATH",
        help="Unix socket; {instance} in PATH is replaced by the instance id, as in unix:/run/outboard/hosts/NAME@{instance}.sock",
    )
    parser.add_argument("--drain-timeout", type=float, default=20.0, metavar="SECONDS", help="time limit for attempts in progress to end")
    parser.add_argument("--metrics-address", metavar="127.0.0.1:PORT", help="Prometheus metrics; requires the package prometheus_client")
    flags = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s%(call)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(CallFilter())
    instance = "python-" + uuid.uuid4().hex[:16]
    address = flags.listen.replace("{instance}", instance)
    if not address.startswith("unix:"):
        parser.error("--listen: only unix:PATH is supported")
    # Blocked for sigwait below; the threads of gRPC inherit the mask.
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    host = Host(plugins, build, digest or _digest_of_program(), instance, inline_nodes)
    if flags.metrics_address is not None:
        try:
            start_metrics(flags.metrics_address)
        except (OSError, ValueError) as error:
            parser.error(f"--metrics-address: {error}")
    try:
        server = start(host, address)
    except OSError as error:
        sys.exit(str(error))
    form = "; nodes come with each call" + (", in columns" if host.columns else "") if host.inline_nodes else ""
    log.info("instance %s listens on %s with %s%s", instance, address, ", ".join(host.plugins), form)
    signal.sigwait(signals)
    host.drain(flags.drain_timeout)
    # gRPC 1.67 waits forever for calls whose request it could not read.
    server.stop(grace=STOP_SECONDS).wait(2 * STOP_SECONDS)


def _digest_of_program() -> str:
    try:
        with open(sys.argv[0], "rb") as program:
            return hashlib.sha256(program.read()).hexdigest()[:40]
    except OSError:
        return ""
