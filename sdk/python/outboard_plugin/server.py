"""The contract's services over gRPC: `serve` runs plugins as a host."""

import argparse
import concurrent.futures
import copy
import json
import logging
import os
import queue
import re
import signal
import sys
import threading
import time
import uuid

import grpc

from outboard_plugin import api
from outboard_plugin.mirror import Mirror, MirrorError
from outboard_plugin.proto import pb, services

log = logging.getLogger("outboard_plugin")

CONTRACT = "v1alpha1"
MAX_MESSAGE_BYTES = 16 << 20
MAX_TEXT_BYTES = 1024  # of a message for people
MAX_SESSIONS = 64
MAX_HYPOTHESES = 65536
SESSION_ID = re.compile("[a-z0-9-]{1,63}")
GRPC_CODES = {
    "STALE": grpc.StatusCode.FAILED_PRECONDITION,
    "ATTEMPT_UNKNOWN": grpc.StatusCode.NOT_FOUND,
    "SESSION_UNKNOWN": grpc.StatusCode.FAILED_PRECONDITION,
    "WRONG_INSTANCE": grpc.StatusCode.FAILED_PRECONDITION,
    "NOT_CONFIGURED": grpc.StatusCode.FAILED_PRECONDITION,
    "INVALID": grpc.StatusCode.INVALID_ARGUMENT,
    "OBJECT_UNKNOWN": grpc.StatusCode.NOT_FOUND,
    "DRAINING": grpc.StatusCode.UNAVAILABLE,
    "INTERNAL": grpc.StatusCode.INTERNAL,
}


def cut(text):
    """A text for people, as long as the contract allows. It may quote a request of any size."""
    return text.encode(errors="replace")[:MAX_TEXT_BYTES].decode(errors="ignore")


class CallFailed(Exception):
    """Why a call has no answer; `reason` is the name of a CallError.Reason."""

    def __init__(self, reason, message, have_version=0, code=None):
        super().__init__(cut(message))
        self.error = pb.CallError(
            reason=pb.CallError.Reason.Value(reason), message=cut(message), have_version=have_version
        )
        self.code = code or GRPC_CODES[reason]


class Session:
    """One shim's configuration, mirror and attempts. Threading: the host's lock."""

    def __init__(self):
        self.profiles = {}  # name → {point: [Plugin]}
        self.mirror = None
        self.pushes = queue.Queue()
        self.stream = 0  # number of the stream that feeds the mirror
        self.connected = False
        self.idle_since = time.monotonic()
        self.attempts = {}  # attempt_id → pod uid
        self.draining = False

    def push_decision(self, attempt_id, pod_uid, plugin, allow, message):
        self.pushes.put(
            pb.SyncResponse(
                wait_decision=pb.WaitDecision(
                    attempt_id=attempt_id, pod_uid=pod_uid, plugin=plugin, allow=allow, message=message
                )
            )
        )


class Host:
    def __init__(self, plugins, build, digest, instance):
        self.plugins = {api.name_of(plugin): plugin for plugin in plugins}
        if len(self.plugins) != len(plugins):
            raise ValueError("two plugins have the same name")
        self.build, self.digest = build, digest
        self.instance = instance
        self.started = time.time()
        self.sessions = {}
        self.draining = False
        self.changed = threading.Condition()

    # --- PluginHostService

    def GetHostInfo(self, request, context):  # noqa: N802: names of RPCs
        response = pb.GetHostInfoResponse(
            contract_versions=[CONTRACT],
            host_instance=self.instance,
            build=self.build,
            build_digest=self.digest,
            started_unix_micros=int(self.started * 1e6),
        )
        for name, plugin in self.plugins.items():
            info = response.plugins.add(
                name=name,
                extension_points=[pb.ExtensionPoint.Value(point) for point in api.points_of(plugin)],
                default_weight=plugin.weight,
                needed_fields=plugin.needed_fields,
            )
            for resource, action in plugin.wake_up_events:
                info.wake_up_events.add(resource=resource, actions=[pb.ClusterEvent.Action.Value(action)])
        return response

    def Configure(self, request, context):  # noqa: N802
        with self.changed:
            if self.draining:
                raise CallFailed("DRAINING", "the host is about to exit")
            if not SESSION_ID.fullmatch(request.session_id):
                raise CallFailed("INVALID", "session_id must match [a-z0-9-]{1,63}")
            if request.contract_version != CONTRACT:
                raise CallFailed("INVALID", f"this host speaks {CONTRACT}")
            session = self.sessions.get(request.session_id)
            if session is not None and session.draining:
                raise CallFailed("DRAINING", "the session is draining")
            response = pb.ConfigureResponse()
            profiles = {}
            for profile in request.profiles:
                if profile.name in profiles or not profile.name:
                    response.problems.add(profile=profile.name, message="a profile has no name of its own")
                profiles[profile.name] = self._profile(profile, response.problems)
            if response.problems:
                return response
            if session is None:
                self._make_room()
                session = self.sessions[request.session_id] = Session()
            session.profiles = profiles
            return response

    def _profile(self, profile, problems):
        """Plugins by point: copies, so that what configure() sets is this profile's alone. What is wrong goes to `problems`."""
        points = {}
        plugins = {name: copy.copy(plugin) for name, plugin in self.plugins.items()}
        for point in profile.points:
            enabled = points.setdefault(point.extension_point, [])
            for name in point.plugins:
                plugin = plugins.get(name)
                if plugin is None:
                    problems.add(profile=profile.name, plugin=name, message="this host has no such plugin")
                elif point.extension_point not in map(pb.ExtensionPoint.Value, api.points_of(plugin)):
                    problems.add(profile=profile.name, plugin=name, message="the plugin does not implement this extension point")
                else:
                    enabled.append((name, plugin))
        texts = {name: "{}" for enabled in points.values() for name, _ in enabled}
        texts.update((args.plugin, args.args_json) for args in profile.args)
        for name, text in texts.items():
            plugin = plugins.get(name)
            if plugin is None:
                problems.add(profile=profile.name, plugin=name, message="args for an unknown plugin")
                continue
            try:
                args = json.loads(text)
                if not isinstance(args, dict):
                    raise ValueError("args must be an object")
                plugin.configure(args)
            except Exception as error:  # pylint: disable=broad-except
                field, _, message = str(error).rpartition(": ")
                problems.add(profile=profile.name, plugin=name, field=cut(field), message=cut(message) or type(error).__name__)
        return points

    def _make_room(self):
        """Forgets the session that has been without a stream for longest, if there are too many."""
        if len(self.sessions) < MAX_SESSIONS:
            return
        idle = [(session.idle_since, name) for name, session in self.sessions.items() if not session.connected]
        if not idle:
            raise CallFailed("INVALID", f"more than {MAX_SESSIONS} sessions")
        del self.sessions[min(idle)[1]]

    def Probe(self, request, context):  # noqa: N802
        with self.changed:
            response = pb.ProbeResponse(host_instance=self.instance, state=pb.ProbeResponse.READY)
            session = self.sessions.get(request.session_id)
            if request.session_id:
                if session is None or session.mirror is None or session.mirror.cluster.version == 0:
                    response.state = pb.ProbeResponse.INITIALISING
                    response.reason = "not configured, or waiting for a snapshot"
                else:
                    response.snapshot_version = session.mirror.cluster.version
                    response.attempts_in_flight = len(session.attempts)
            if self.draining or (session is not None and session.draining):
                response.state = pb.ProbeResponse.DRAINING
                response.reason = "told to drain"
            return response

    def Drain(self, request, context):  # noqa: N802
        with self.changed:
            session = self.sessions.get(request.session_id)
            if session is None:
                return pb.DrainResponse()
            session.draining = True
            return pb.DrainResponse(attempts_in_flight=len(session.attempts))

    # --- ClusterStateService

    def Sync(self, requests, context):  # noqa: N802
        first = next(requests, None)
        if first is None:
            return
        with self.changed:
            if not first.session_id:
                raise CallFailed("INVALID", "the first message must name the session")
            session = self.sessions.get(first.session_id)
            if session is None:
                raise CallFailed("SESSION_UNKNOWN", f"no session {first.session_id}")
            # A new stream replaces the old one and its mirror.
            session.stream += 1
            stream = session.stream
            session.mirror = Mirror(pb, session.push_decision)
            session.attempts = {}
            session.connected = True
            # The old stream, if there is one, ends.
            session.pushes.put(None)
            session.pushes = queue.Queue()
            pushes = session.pushes
        reader = threading.Thread(target=self._read, args=(session, stream, first, requests, pushes), daemon=True)
        reader.start()
        while True:
            push = pushes.get()
            if push is None:
                return
            if isinstance(push, CallFailed):
                raise push
            yield push

    def _read(self, session, stream, first, requests, pushes):
        try:
            request = first
            while request is not None:
                with self.changed:
                    if session.stream != stream:
                        return
                    session.mirror.apply(request)
                    for attempt in request.ended_attempts:
                        session.attempts.pop(attempt, None)
                    version = session.mirror.cluster.version
                    self.changed.notify_all()
                if request.phase in (pb.SyncRequest.DELTA, pb.SyncRequest.SNAPSHOT_END):
                    pushes.put(pb.SyncResponse(ack=pb.Ack(version=version)))
                request = next(requests, None)
        except MirrorError as error:
            with self.changed:
                if session.stream == stream:
                    session.mirror = None
            pushes.put(CallFailed("INVALID", str(error), code=grpc.StatusCode.FAILED_PRECONDITION))
        except grpc.RpcError:
            pass  # The shim is gone.
        except Exception as error:  # pylint: disable=broad-except
            log.exception("a change could not be applied")
            pushes.put(CallFailed("INTERNAL", str(error)))
        finally:
            with self.changed:
                # The shim is gone, or begins anew; nobody asks about these any more.
                if session.stream == stream:
                    session.attempts = {}
                    session.mirror = None
                    session.connected = False
                    session.idle_since = time.monotonic()
                self.changed.notify_all()
            pushes.put(None)

    # --- The calls about pods

    def _session(self, header, context, minimum=False):
        """The session, at the version that the call is about."""
        if header.host_instance != self.instance:
            raise CallFailed("WRONG_INSTANCE", f"this is instance {self.instance}, not {header.host_instance}")
        session = self.sessions.get(header.session_id)
        if session is None:
            raise CallFailed("SESSION_UNKNOWN", f"no session {header.session_id}")
        wanted = header.snapshot_version

        def version():
            return session.mirror.cluster.version if session.mirror is not None else 0

        # 0 in a call that has to say a version is no version; any complete mirror will do.
        self.changed.wait_for(lambda: version() >= max(wanted, 1) or not context.is_active(), self._patience(context))
        have = version()
        if have < max(wanted, 1) or (have > wanted > 0 and not minimum):
            raise CallFailed("STALE", f"the mirror is at version {have}", have)
        if header.profile not in session.profiles:
            raise CallFailed("NOT_CONFIGURED", f"no profile {header.profile}")
        return session

    @staticmethod
    def _patience(context):
        """How long a call may wait and still be answered in time."""
        remaining = context.time_remaining()
        return 1.0 if remaining is None else max(0.0, remaining - min(remaining / 5, 0.02))

    @staticmethod
    def _plugins(session, header, point):
        return session.profiles[header.profile].get(pb.ExtensionPoint.Value(point), [])

    @staticmethod
    def _pod(session, uid):
        pod = session.mirror.cluster.pods.get(uid)
        if pod is None:
            raise CallFailed("OBJECT_UNKNOWN", f"no pod {uid}")
        return pod

    def _attempt(self, session, header):
        uid = session.attempts.get(header.attempt_id)
        if uid is None:
            raise CallFailed("ATTEMPT_UNKNOWN", f"no attempt {header.attempt_id}")
        return self._pod(session, uid)

    @staticmethod
    def _status(name, verdict):
        return pb.PluginStatus(plugin=name, code=pb.Code.Value(verdict.code), reasons=[cut(str(verdict.reason)) or verdict.code])

    @staticmethod
    def _failure(name, error):
        log.exception("plugin %s failed", name)
        return pb.PluginStatus(plugin=name, code=pb.ERROR, reasons=[cut(f"{type(error).__name__}: {error}")])

    def PreFilter(self, request, context):  # noqa: N802
        with self.changed:
            header = request.header
            session = self._session(header, context)
            if self.draining or session.draining:
                raise CallFailed("DRAINING", "the host takes no new attempts")
            if header.attempt_id == 0:
                raise CallFailed("INVALID", "attempt_id is required")
            pod = self._pod(session, request.pod_uid)
            session.attempts[header.attempt_id] = pod.uid
            response = pb.PreFilterResponse()
            names = None
            for name, plugin in self._plugins(session, header, "PRE_FILTER"):
                try:
                    said = plugin.pre_filter(pod, session.mirror.cluster)
                except Exception as error:  # pylint: disable=broad-except
                    response.rejection.CopyFrom(self._failure(name, error))
                    return response
                if said is None:
                    continue
                if isinstance(said, api.Reject):
                    response.rejected_by.append(name)
                    response.rejection.CopyFrom(self._status(name, said))
                    if said.code != "UNSCHEDULABLE":
                        break
                    continue
                names = set(said) if names is None else names & set(said)
                response.restricted_by.append(name)
            if names is not None and not response.HasField("rejection"):
                response.node_names.names.extend(sorted(names))
            return response

    def _judge(self, plugins, pod, node):
        """(plugin, verdict) of the first that objects, None where none does; raises what a plugin raises, with its name."""
        for name, plugin in plugins:
            try:
                verdict = plugin.filter(pod, node)
            except Exception as error:
                raise PluginFailed(name, error) from error
            if verdict is not None:
                return name, verdict
        return None

    def _judge_with_nominated(self, plugins, pod, node):
        """The verdict, and whether it holds only without the nominated pods."""
        others = {
            uid: other for uid, other in node.nominated.items() if uid != pod.uid and other.priority >= pod.priority
        }
        if not others:
            return self._judge(plugins, pod, node), False
        said = self._judge(plugins, pod, node.with_pods({**node.pods, **others}))
        if said is not None:
            return said, False
        return self._judge(plugins, pod, node), True

    def Filter(self, request, context):  # noqa: N802
        with self.changed:
            header = request.header
            session = self._session(header, context)
            pod = self._attempt(session, header)
            plugins = self._plugins(session, header, "FILTER")
            if request.hypotheses:
                return self._filter_hypotheses(session, pod, plugins, request.hypotheses)
            nodes = self._nodes(session, request.nodes) if request.HasField("nodes") else session.mirror.cluster.nodes
            enough = enough_nodes(len(nodes), request.percentage_of_nodes_to_score, request.first_feasible_only)
            answer = FilterAnswer()
            for i in range(len(nodes)):
                node = nodes[(request.start_offset + i) % len(nodes)]
                try:
                    said, only_without = self._judge_with_nominated(plugins, pod, node)
                except PluginFailed as failed:
                    answer.response.error.CopyFrom(self._failure(failed.plugin, failed.error))
                    break
                if said is None and answer.feasible == enough:
                    break
                answer.add(said, only_without)
            return answer.finish()

    def _filter_hypotheses(self, session, pod, plugins, hypotheses):
        if len(hypotheses) > MAX_HYPOTHESES:
            raise CallFailed("INVALID", f"{len(hypotheses)} hypotheses")
        answer = FilterAnswer()
        node, pods = None, {}
        for told in hypotheses:
            if not told.continues:
                node = session.mirror.cluster.node(told.slot)
                if node is None:
                    raise CallFailed("OBJECT_UNKNOWN", f"no node in slot {told.slot}")
                pods = dict(node.pods)
            elif node is None or node.slot != told.slot:
                raise CallFailed("INVALID", "a hypothesis continues one of another node")
            for uid in told.removed_pod_uids:
                if pods.pop(uid, None) is None:
                    raise CallFailed("OBJECT_UNKNOWN", f"pod {uid} is not there")
            for uid in told.added_pod_uids:
                pods[uid] = self._pod(session, uid)
            changed = node.with_pods(dict(pods))
            changed.nominated = node.nominated
            try:
                said, _ = self._judge_with_nominated(plugins, pod, changed)
            except PluginFailed as failed:
                said = (failed.plugin, api.Reject(f"{type(failed.error).__name__}: {failed.error}"))
            answer.add(said, False)
        return answer.finish()

    @staticmethod
    def _nodes(session, node_set):
        nodes = [session.mirror.cluster.node(slot) for slot in node_set.slots]
        if None in nodes:
            raise CallFailed("OBJECT_UNKNOWN", f"no node in slot {node_set.slots[nodes.index(None)]}")
        if len(set(node_set.slots)) != len(nodes):
            raise CallFailed("INVALID", "a slot is named twice")
        return nodes

    def PreScore(self, request, context):  # noqa: N802
        with self.changed:
            session = self._session(request.header, context)
            self._attempt(session, request.header)
            self._nodes(session, request.nodes)
            return pb.PreScoreResponse()

    def Score(self, request, context):  # noqa: N802
        with self.changed:
            session = self._session(request.header, context)
            pod = self._attempt(session, request.header)
            nodes = self._nodes(session, request.nodes)
            response = pb.ScoreResponse()
            for name, plugin in self._plugins(session, request.header, "SCORE"):
                try:
                    scores = bytes(checked_score(plugin.score(pod, node)) for node in nodes)
                except Exception as error:  # pylint: disable=broad-except
                    response.error.CopyFrom(self._failure(name, error))
                    return response
                response.plugins.add(plugin=name, scores=scores)
            return response

    def PreEnqueue(self, request, context):  # noqa: N802
        with self.changed:
            session = self._session(request.header, context, minimum=True)
            if len(request.pod_uids) > 4096:
                raise CallFailed("INVALID", "at most 4096 pods a call")
            response = pb.PreEnqueueResponse()
            for uid in request.pod_uids:
                pod = self._pod(session, uid)
                verdict = response.verdicts.add()
                for name, plugin in self._plugins(session, request.header, "PRE_ENQUEUE"):
                    said = plugin.pre_enqueue(pod)
                    if said is not None:
                        verdict.CopyFrom(self._status(name, said))
                        break
            return response

    def _placed(self, request, context):
        session = self._session(request.header, context, minimum=True)
        attempt = request.header.attempt_id
        if attempt not in session.attempts:
            # Where no plugin has a say before, nobody told of the attempt.
            points = session.profiles[request.header.profile]
            if any(points.get(pb.ExtensionPoint.Value(point)) for point in ("PRE_FILTER", "FILTER", "PRE_SCORE", "SCORE")):
                raise CallFailed("ATTEMPT_UNKNOWN", f"no attempt {attempt}")
            session.attempts[attempt] = self._pod(session, request.pod_uid).uid
        pod = self._attempt(session, request.header)
        node = next((n for n in session.mirror.cluster.nodes if n.name == request.node_name), None)
        if node is None:
            raise CallFailed("OBJECT_UNKNOWN", f"no node {request.node_name}")
        return session, pod, node

    def Reserve(self, request, context):  # noqa: N802
        with self.changed:
            session, pod, node = self._placed(request, context)
            response = pb.ReserveResponse()
            plugins = self._plugins(session, request.header, "RESERVE")
            for i, (name, plugin) in enumerate(plugins):
                try:
                    said = plugin.reserve(pod, node)
                    status = self._status(name, said) if said is not None else None
                except Exception as error:  # pylint: disable=broad-except
                    status = self._failure(name, error)
                if status is None:
                    continue
                for _, reserved in reversed(plugins[: i + 1]):
                    reserved.unreserve(pod, node)
                response.rejection.CopyFrom(status)
                break
            return response

    def Unreserve(self, request, context):  # noqa: N802
        with self.changed:
            session = self._session(request.header, context, minimum=True)
            pod = session.mirror.cluster.pods.get(request.pod_uid)
            node = next((n for n in session.mirror.cluster.nodes if n.name == request.node_name), None)
            if pod is not None:
                for name, plugin in reversed(self._plugins(session, request.header, "RESERVE")):
                    try:
                        plugin.unreserve(pod, node)
                    except Exception as error:  # pylint: disable=broad-except
                        self._failure(name, error)
            return pb.UnreserveResponse()

    def Permit(self, request, context):  # noqa: N802
        with self.changed:
            session, pod, node = self._placed(request, context)
            response = pb.PermitResponse()
            for name, plugin in self._plugins(session, request.header, "PERMIT"):
                try:
                    said = plugin.permit(pod, node)
                except Exception as error:  # pylint: disable=broad-except
                    response.rejection.CopyFrom(self._failure(name, error))
                    break
                if isinstance(said, api.Reject):
                    response.rejection.CopyFrom(self._status(name, said))
                    break
                if isinstance(said, api.Wait):
                    response.waits.add(plugin=name, timeout_millis=int(said.seconds * 1000))
            return response


class PluginFailed(Exception):
    def __init__(self, plugin, error):
        super().__init__(str(error))
        self.plugin, self.error = plugin, error


def checked_score(score):
    if score is None or not 0 <= int(score) <= 100:
        raise ValueError(f"a score must be from 0 to 100, not {score}")
    return int(score)


def enough_nodes(count, percentage, first_only):
    """How many feasible nodes of a list end the search, as filter.proto says."""
    if first_only:
        return 1
    if count < 100:
        return count
    if percentage == 0:
        percentage = max(5, 50 - count // 125)
    return max(100, count * percentage // 100)


class FilterAnswer:
    """Packs verdicts."""

    def __init__(self):
        self.response = pb.FilterResponse()
        self.feasible = 0
        self._bits = bytearray()
        self._reasons = {}

    def add(self, said, only_without_nominated):
        i = self.response.processed
        if i % 8 == 0:
            self._bits.append(0)
        self.response.processed = i + 1
        if said is None:
            self._bits[i // 8] |= 1 << (i % 8)
            self.feasible += 1
            return
        if only_without_nominated:
            self.response.only_without_nominated.append(len(self.response.rejected))
        if said not in self._reasons:
            self._reasons[said] = len(self._reasons)
            self.response.reasons.append(Host._status(*said))
        self.response.rejected.append(self._reasons[said])

    def finish(self):
        self.response.feasible = bytes(self._bits)
        return self.response


SERVICES = {
    "PluginHostService": ("GetHostInfo", "Configure", "Probe", "Drain"),
    "ClusterStateService": ("Sync",),
    "PreEnqueueService": ("PreEnqueue",),
    "PreFilterService": ("PreFilter",),
    "FilterService": ("Filter",),
    "PreScoreService": ("PreScore",),
    "ScoreService": ("Score",),
    "ReserveService": ("Reserve", "Unreserve"),
    "PermitService": ("Permit",),
}


def _unary(method):
    def call(request, context):
        try:
            return method(request, context)
        except CallFailed as failed:
            context.set_trailing_metadata((("grpc-status-details-bin", failed.error.SerializeToString()),))
            context.abort(failed.code, str(failed))

    return call


def _stream(method):
    def call(requests, context):
        try:
            yield from method(requests, context)
        except CallFailed as failed:
            context.set_trailing_metadata((("grpc-status-details-bin", failed.error.SerializeToString()),))
            context.abort(failed.code, str(failed))

    return call


def register(host, server):
    """Adds the contract's services, as far as they are served, to a gRPC server."""
    for service, methods in SERVICES.items():
        adapter = type(service, (), {})()
        for method in methods:
            wrap = _stream if method == "Sync" else _unary
            setattr(adapter, method, wrap(getattr(host, method)))
        services.add(service, adapter, server)


def serve(*plugins, build="dev", digest="", arguments=None):
    """Runs a host with these plugins until SIGTERM or SIGINT, then drains.

    `digest` tells one build from another; by default it follows from the program's own file."""
    parser = argparse.ArgumentParser(description="A plugin host for outboard-shim: " + ", ".join(map(api.name_of, plugins)))
    parser.add_argument(
        "--listen",
        required=True,
        metavar="unix:PATH",
        help="a Unix socket; {instance} in PATH stands for this instance's id, as in unix:/run/outboard/hosts/NAME@{instance}.sock",
    )
    parser.add_argument("--drain-timeout", type=float, default=20.0, metavar="SECONDS", help="how long attempts under way may take to end")
    flags = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    instance = "python-" + uuid.uuid4().hex[:16]
    address = flags.listen.replace("{instance}", instance)
    if not address.startswith("unix:"):
        parser.error("only unix:PATH is served")
    host = Host(plugins, build, digest or _digest_of_program(), instance)
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(max_workers=16),
        options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES), ("grpc.max_send_message_length", MAX_MESSAGE_BYTES)],
    )
    register(host, server)
    os.umask(0o177)
    if server.add_insecure_port(address) == 0:
        sys.exit(f"cannot listen on {address}")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    server.start()
    log.info("instance %s listens on %s with %s", instance, address, ", ".join(host.plugins))
    stopping.wait()
    with host.changed:
        host.draining = True
        host.changed.wait_for(
            lambda: not any(session.attempts for session in host.sessions.values()), timeout=flags.drain_timeout
        )
    server.stop(grace=1).wait()


def _digest_of_program():
    import hashlib

    try:
        with open(sys.argv[0], "rb") as program:
            return hashlib.sha256(program.read()).hexdigest()[:40]
    except OSError:
        return ""
