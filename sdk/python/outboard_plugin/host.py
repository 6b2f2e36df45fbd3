"""The host's identity, its sessions, and the cluster cache of each session."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import logging
import queue
import re
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import grpc

from outboard_plugin import api
from outboard_plugin.errors import CallFailed, cut
from outboard_plugin.cluster_cache import ClusterCache, CacheError
from outboard_plugin.proto import pb

log = logging.getLogger("outboard_plugin")

CONTRACT = "v1beta1"
MAX_SESSIONS = 64
SESSION_ID = re.compile("[a-z0-9-]{1,63}")
# The period of acknowledgements of changes; the contract requires one per second. A snapshot is acknowledged at once.
ACK_SECONDS = 0.4
# Pushes that wait for a result. The limit is for a shim that answers none.
MAX_UNANSWERED_PUSHES = 10000


# By point, in the profile's order.
Points = Dict[int, List[Tuple[str, api.Plugin]]]


class Session:
    """One shim's configuration, cluster cache and attempts.

    Threading: the host's lock.
    """

    def __init__(self) -> None:
        self.profiles: Dict[str, Points] = {}
        self.cache: Optional[ClusterCache] = None
        self.pushes: queue.Queue[Any] = queue.Queue()
        self.stream = 0  # number of the stream that updates the cluster cache
        self.connected = False  # that stream is open
        self.attempts: Dict[int, str] = {}  # attempt_id → pod uid
        self.ended = False  # the shim leaves
        self.last_heard = time.monotonic()
        self._unanswered: Dict[int, str] = {}  # push_id of the stream → what was pushed, for logs
        self._push_ids = itertools.count(1)
        self._inline: Dict[int, Tuple[bytes, api.Node]] = {}  # by slot, the last received ones

    def inline_node(self, slot: int, sent: bytes) -> api.Node:
        """The node of a call. Cached: most nodes repeat unchanged, and building one takes longer than checking it."""
        known = self._inline.get(slot)
        if known is not None and known[0] == sent:
            return known[1]
        message = pb.InlineNode.FromString(sent)
        node = api.Node(slot, message.node, message)
        self._inline[slot] = (sent, node)
        return node

    def configure(self, profiles: Dict[str, Points]) -> None:
        """Takes plugins that no other session has."""
        self.profiles = profiles
        for points in profiles.values():
            for name, plugin in itertools.chain.from_iterable(points.values()):
                plugin._find_state = functools.partial(self._state_of, name)  # pylint: disable=protected-access

    def _state_of(self, plugin: str, uid: str) -> bytes:
        """What the plugin keeps for the pod; b"" if nothing."""
        return self.cache.cluster.states.get(uid, {}).get(plugin, b"") if self.cache is not None else b""

    def begin_stream(self) -> queue.Queue[Any]:
        """Replaces the stream, its cluster cache and its attempts. Returns the queue of what the new stream sends."""
        self.stream += 1
        self.cache = ClusterCache(self.push)
        self.attempts = {}
        self.connected = True
        self.pushes.put(None)
        self.pushes = queue.Queue()
        self._unanswered = {}
        return self.pushes

    def push(self, message: Any, what: str) -> None:
        """Sends a message of a plugin to the shim; `what` names it in the log if the shim refuses it."""
        message.push_id = next(self._push_ids)
        if len(self._unanswered) >= MAX_UNANSWERED_PUSHES:
            self._unanswered = {}
        self._unanswered[message.push_id] = what
        self.pushes.put(message)

    def take_results(self, results: Iterable[Any]) -> None:
        """Logs the pushes that the shim refused. SUPERSEDED and CONFLICT are not faults: the pod no longer waits, another write
        is in progress, or the object has changed and the plugin decides again."""
        outcomes = pb.PushResult.Outcome
        for result in results:
            pushed = self._unanswered.pop(result.push_id, None)
            harmless = (pb.PushResult.OUTCOME_APPLIED, pb.PushResult.OUTCOME_SUPERSEDED, pb.PushResult.OUTCOME_CONFLICT)
            if pushed is None or result.outcome in harmless:
                continue
            # The contract requires that unknown outcomes count as FAILED.
            known = result.outcome if result.outcome in outcomes.values() else pb.PushResult.OUTCOME_FAILED
            name = outcomes.Name(known).removeprefix("OUTCOME_")
            log.warning("The shim refused %s: %s: %s", pushed, name, result.message)


def add_problem(problems: Any, profile: str, message: str, plugin: str = "", field: str = "", warning: bool = False) -> None:
    severity = pb.ConfigProblem.SEVERITY_WARNING if warning else pb.ConfigProblem.SEVERITY_ERROR
    problems.add(profile=profile, plugin=plugin, field=cut(field), message=cut(message), severity=severity)


def point_value(name: str) -> int:
    """The contract's value of an extension point: "FILTER"."""
    return int(pb.ExtensionPoint.Value("EXTENSION_POINT_" + name))


def plugin_info(plugin: api.Plugin, inline_nodes: bool) -> Any:
    """What the plugin declares. Raises ValueError for what the contract, or a host without a cluster cache, does not have."""
    name, points = api.name_of(plugin), api.points_of(plugin)
    info = pb.PluginInfo(
        name=name,
        extension_points=map(point_value, points),
        default_weight=plugin.weight,
        needed_fields=plugin.needed_fields,
        optional_fields=plugin.optional_fields,
    )
    for resource, action in plugin.wake_up_events:
        info.wake_up_events.add(resource=resource, actions=[pb.ClusterEvent.Action.Value("ACTION_" + action)])
    for declared in plugin.declared_resources:
        if inline_nodes and not declared.verbs and not declared.optional:
            raise ValueError(f"{name} reads {declared.resource}, which needs a cluster cache: not with inline_nodes")
        verbs = [pb.DeclaredResource.Verb.Value("VERB_" + verb) for verb in declared.verbs]
        info.declared_resources.add(resource=declared.resource, verbs=verbs, optional=declared.optional)
    if inline_nodes and {"PLACEMENT_GENERATE", "PLACEMENT_SCORE"} & set(points):
        raise ValueError(f"{name} places groups, which needs a cluster cache: not with inline_nodes")
    if "PRE_BIND" in points:
        if inline_nodes:
            raise ValueError(f"{name} has pre_bind, which needs a cluster cache: not with inline_nodes")
        info.interests.add(extension_point=point_value("PRE_BIND"), every_pod=True)
    return info


class Host:
    """PluginHostService and ClusterStateService.

    Threading: `changed` guards all members and is notified of new versions.
    """

    def __init__(
        self, plugins: Sequence[api.Plugin], build: str, digest: str, instance: str, inline_nodes: Optional[bool] = None
    ) -> None:
        self.plugins = {api.name_of(plugin): plugin for plugin in plugins}
        if len(self.plugins) != len(plugins):
            raise ValueError("two plugins have the same name")
        if inline_nodes is None:
            modes = {plugin.inline_nodes for plugin in plugins}
            if len(modes) > 1:
                raise ValueError("inline_nodes differs between plugins; it must be equal for all plugins of a host")
            inline_nodes = modes == {True}
        self.inline_nodes = inline_nodes
        # Nodes that come with calls come in columns.
        self.columns = inline_nodes and api.uses_columns(plugins)
        self.infos = [plugin_info(plugin, inline_nodes) for plugin in plugins]
        self.build, self.digest = build, digest
        self.instance = instance
        self.started = time.time()
        self.sessions: Dict[str, Session] = {}
        self.draining = False
        self.changed = threading.Condition()

    # --- PluginHostService

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802: names of RPCs
        return pb.HandshakeResponse(
            contract_versions=[CONTRACT],
            instance=self.instance,
            build=self.build,
            build_digest=self.digest,
            started_unix_micros=int(self.started * 1e6),
        )

    def GetHostInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        response = pb.GetHostInfoResponse()
        if self.inline_nodes:
            response.capabilities.append(pb.CAPABILITY_INLINE_NODES)
        if self.columns:
            response.capabilities.append(pb.CAPABILITY_NODE_COLUMNS)
        response.plugins.extend(self.infos)
        return response

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.changed:
            if request.instance != self.instance:
                raise CallFailed("WRONG_INSTANCE", f"this is instance {self.instance}, not {request.instance}")
            if self.draining:
                raise CallFailed("DRAINING", "the host is about to exit")
            if not SESSION_ID.fullmatch(request.session_id):
                raise CallFailed("INVALID", "session_id must match [a-z0-9-]{1,63}")
            session = self.sessions.get(request.session_id)
            if session is not None and session.ended:
                raise CallFailed("DRAINING", "the session has ended")
            response = pb.ConfigureResponse()
            profiles: Dict[str, Points] = {}
            for profile in request.profiles:
                if profile.name in profiles or not profile.name:
                    add_problem(response.problems, profile.name, "the profile name is empty or not unique")
                profiles[profile.name] = self._profile(profile, response.problems)
            if any(problem.severity != pb.ConfigProblem.SEVERITY_WARNING for problem in response.problems):
                return response
            oldest = self._session_to_delete() if session is None else ""
            if request.validate_only:
                return response
            if session is None:
                self.sessions.pop(oldest, None)
                session = self.sessions[request.session_id] = Session()
            session.configure(profiles)
            session.last_heard = time.monotonic()
            return response

    def _profile(self, profile: Any, problems: Any) -> Points:
        """Plugins by point: copies, so that configure() affects only this profile. Adds errors and warnings to `problems`."""
        points: Points = {}
        plugins = {name: copy.copy(plugin) for name, plugin in self.plugins.items()}
        for point in profile.points:
            enabled = points.setdefault(point.extension_point, [])
            for name in point.plugins:
                plugin = plugins.get(name)
                if plugin is None:
                    add_problem(problems, profile.name, "this host has no such plugin", name)
                elif point.extension_point not in map(point_value, api.points_of(plugin)):
                    add_problem(problems, profile.name, "the plugin does not implement this extension point", name)
                else:
                    enabled.append((name, plugin))
        texts = {name: "{}" for enabled in points.values() for name, _ in enabled}
        texts.update((args.plugin, args.args_json) for args in profile.args)
        for name, text in texts.items():
            plugin = plugins.get(name)
            if plugin is None:
                add_problem(problems, profile.name, "args for an unknown plugin", name)
                continue
            try:
                args = json.loads(text)
                if not isinstance(args, dict):
                    raise ValueError("args must be an object")
                warnings = plugin.configure(args) or ()
                if isinstance(warnings, str):
                    raise TypeError("configure must return a list of warnings, not a text")
                for warning in warnings:
                    field, _, message = warning.rpartition(": ")
                    add_problem(problems, profile.name, message, name, field, warning=True)
            except Exception as error:  # pylint: disable=broad-except
                field, _, message = str(error).rpartition(": ")
                add_problem(problems, profile.name, message or type(error).__name__, name, field)
        return points

    def _session_to_delete(self) -> str:
        """At the limit of sessions, the disconnected session that was silent for longest; "" below it."""
        if len(self.sessions) < MAX_SESSIONS:
            return ""
        idle = [(session.last_heard, id) for id, session in self.sessions.items() if not session.connected]
        if not idle:
            raise CallFailed("INVALID", f"more than {MAX_SESSIONS} sessions")
        return min(idle)[1]

    def Probe(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.changed:
            response = pb.ProbeResponse(instance=self.instance, state=pb.ProbeResponse.STATE_READY)
            session = self.sessions.get(request.session_id)
            if request.session_id:
                if session is None or not session.profiles:
                    response.state = pb.ProbeResponse.STATE_INITIALIZING
                    response.reason = "not configured"
                elif not self.inline_nodes and (session.cache is None or session.cache.cluster.version == 0):
                    response.state = pb.ProbeResponse.STATE_INITIALIZING
                    response.reason = "waiting for a snapshot"
                else:
                    session.last_heard = time.monotonic()
                    response.snapshot_version = session.cache.cluster.version if session.cache is not None else 0
                    response.attempts_in_flight = len(session.attempts)
            if self.draining or (session is not None and session.ended):
                response.state = pb.ProbeResponse.STATE_DRAINING
                response.reason = "the host is draining" if self.draining else "the session has ended"
            return response

    def EndSession(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.changed:
            session = self.sessions.get(request.session_id)
            if session is None:
                return pb.EndSessionResponse()
            session.ended = True
            return pb.EndSessionResponse(attempts_in_flight=len(session.attempts))

    def Drain(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.changed:
            self.draining = True
            return pb.DrainResponse(attempts_in_flight=self._attempts_in_flight())

    def drain(self, seconds: float) -> None:
        """As the call Drain; also waits until the attempts in progress end."""
        with self.changed:
            self.draining = True
            self.changed.wait_for(lambda: not self._attempts_in_flight(), timeout=seconds)

    def _attempts_in_flight(self) -> int:
        return sum(len(session.attempts) for session in self.sessions.values())

    # --- ClusterStateService

    def Sync(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:  # noqa: N802
        first = next(requests, None)
        if first is None:
            return
        with self.changed:
            if not first.session_id:
                raise CallFailed("INVALID", "the first message must name the session")
            session = self.sessions.get(first.session_id)
            if session is None:
                raise CallFailed("SESSION_UNKNOWN", f"no session {first.session_id}")
            pushes = session.begin_stream()
            stream = session.stream
        # Without the callback, a stream that the shim cancelled would wait for pushes forever.
        if not context.add_callback(lambda: pushes.put(None)):
            return
        reader = threading.Thread(target=self._read, args=(session, stream, first, requests, pushes), daemon=True)
        reader.start()
        acknowledged, due = 0, time.monotonic() + ACK_SECONDS
        while True:
            # Each push wakes two more threads. One push per change would cost more than all other work for a pod.
            try:
                push = pushes.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                due = time.monotonic() + ACK_SECONDS
                with self.changed:
                    version = session.cache.cluster.version if session.stream == stream and session.cache is not None else 0
                if version <= acknowledged:
                    continue
                push = pb.SyncResponse(ack=pb.Ack(version=version))
            if push is None:
                return
            if isinstance(push, CallFailed):
                raise push
            if push.HasField("ack"):
                acknowledged = push.ack.version
            yield push

    def _read(self, session: Session, stream: int, first: Any, requests: Iterator[Any], pushes: queue.Queue[Any]) -> None:
        try:
            request = first
            while request is not None:
                with self.changed:
                    if session.stream != stream or session.cache is None:
                        return
                    session.cache.apply(request)
                    for attempt in request.ended_attempts:
                        session.attempts.pop(attempt, None)
                    session.take_results(request.push_results)
                    version = session.cache.cluster.version
                    self.changed.notify_all()
                if request.phase == pb.SyncRequest.PHASE_SNAPSHOT_END:
                    pushes.put(pb.SyncResponse(ack=pb.Ack(version=version)))
                request = next(requests, None)
        except CacheError as error:
            with self.changed:
                if session.stream == stream:
                    session.cache = None
            pushes.put(CallFailed("INVALID", str(error), code=grpc.StatusCode.FAILED_PRECONDITION))
        except grpc.RpcError:
            pass  # The shim disconnected.
        except Exception as error:  # pylint: disable=broad-except
            log.exception("Sync failed: a change could not be applied; closing the stream")
            pushes.put(CallFailed("INTERNAL", str(error)))
        finally:
            with self.changed:
                # The shim disconnected or starts a new stream, so it will not refer to these attempts again.
                if session.stream == stream:
                    session.attempts = {}
                    session.cache = None
                    session.connected = False
                    session.last_heard = time.monotonic()
                self.changed.notify_all()
            pushes.put(None)

    # --- For the calls about pods

    def session_for(self, header: Any, time_remaining: Callable[[], Optional[float]], minimum: bool = False) -> Session:
        """The caller's session, at the call's version; the caller must hold the lock."""
        session = self.sessions.get(header.session_id)
        if session is None:
            raise CallFailed("SESSION_UNKNOWN", f"no session {header.session_id}")
        if self.inline_nodes:
            session.last_heard = time.monotonic()
        else:
            self._await_version(session, header.min_version if minimum else header.exact_version, time_remaining, minimum)
        if header.profile not in session.profiles:
            raise CallFailed("NOT_CONFIGURED", f"no profile {header.profile}")
        return session

    def _await_version(
        self, session: Session, wanted: int, time_remaining: Callable[[], Optional[float]], minimum: bool
    ) -> None:
        def version() -> int:
            return session.cache.cluster.version if session.cache is not None else 0

        # Version 0 in a call means any version, once the cluster cache is complete.
        if version() < max(wanted, 1):
            # Wait as long as the response can still arrive within the deadline.
            remaining = time_remaining()
            timeout = 1.0 if remaining is None else max(0.0, remaining - min(remaining / 5, 0.02))
            self.changed.wait_for(lambda: version() >= max(wanted, 1), timeout)
        have = version()
        if have < max(wanted, 1) or (have > wanted > 0 and not minimum):
            raise CallFailed("STALE", f"the cluster cache is at version {have}", have)
