"""The calls about pods, with nodes from the cluster cache or from the call."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Set, Tuple

from outboard_plugin import answers, api, call_info, effects, group_calls
from outboard_plugin.columns import SentColumns
from outboard_plugin.errors import CallFailed
from outboard_plugin.host import Host, Session, point_value
from outboard_plugin.proto import pb

MAX_PODS_A_CALL = 4096
MAX_SIMULATED_NODES = 65536
# Of what plugins keep for a pod: each, and all of a host together.
MAX_STATE_BYTES = 4 << 10
MAX_STATES_BYTES = 16 << 10


class Calls:
    """Every service from PreEnqueue to PostBind.

    Threading: one call at a time, under the host's lock.
    """

    def __init__(self, host: Host) -> None:
        self.host = host

    # --- Finding pods and nodes

    def _session(self, request: Any, context: Any, minimum: bool = False) -> Session:
        return self.host.session_for(request.header, context.time_remaining, minimum)

    @staticmethod
    def _plugins(session: Session, request: Any, point: str) -> List[Tuple[str, api.Plugin]]:
        """The profile's plugins at the point, each with the leader's epoch and the current cluster cache."""
        enabled = session.profiles[request.header.profile].get(point_value(point), [])
        for _, plugin in enabled:
            plugin.leader_epoch = request.header.leader_epoch
            if session.cache is not None:
                plugin.cluster = session.cache.cluster
        return enabled

    @staticmethod
    def _cluster(session: Session) -> api.Cluster:
        return session.cache.cluster if session.cache is not None else api.Cluster()

    def _pod(self, session: Session, uid: str, sent: Any) -> Any:
        if self.host.inline_nodes:
            return sent
        pod = self._cluster(session).pods.get(uid)
        if pod is None:
            raise CallFailed("OBJECT_UNKNOWN", f"no pod {uid}")
        return pod

    def _pod_of_attempt(self, session: Session, request: Any) -> Any:
        """The attempt's pod. Without a cluster cache, each call contains the pod, and the host has no attempts."""
        if self.host.inline_nodes:
            pod = self._sent_pod(request)
        else:
            pod = self._pod(session, self._attempt(session, request), None)
        call_info.enter(pod, request.header.attempt_id)
        return pod

    @staticmethod
    def _sent_pod(request: Any) -> Any:
        if not request.HasField("pod"):
            raise CallFailed("INVALID", "pod is required")
        return request.pod

    def _attempt(self, session: Session, request: Any) -> str:
        uid = session.attempts.get(request.header.attempt_id)
        if uid is None:
            raise CallFailed("ATTEMPT_UNKNOWN", f"no attempt {request.header.attempt_id}")
        return uid

    def _nodes(self, session: Session, slots: Any, sent: Any) -> Sequence[api.Node]:
        """The nodes in these slots; `sent` are the request's inline_nodes."""
        if self.host.inline_nodes:
            if len(slots) != len(sent):
                raise CallFailed("INVALID", "inline_nodes and nodes differ in length")
            return list(map(session.inline_node, slots, sent))
        cluster = self._cluster(session)
        nodes = [cluster._slots.get(slot) for slot in slots]  # pylint: disable=protected-access
        found = [node for node in nodes if node is not None]
        if len(found) != len(nodes):
            raise CallFailed("OBJECT_UNKNOWN", f"no node in slot {slots[nodes.index(None)]}")
        if len(set(slots)) != len(nodes):
            raise CallFailed("INVALID", "duplicate slot")
        return found

    def _has_columns(self, request: Any, slots: Any) -> bool:
        """Whether the nodes in these slots came in columns."""
        if not self.host.columns or not request.HasField("node_columns"):
            return False
        sent = request.node_columns
        if not len(slots) == len(sent.names) == len(sent.unschedulable):
            raise CallFailed("INVALID", "node_columns and nodes differ in length")
        columns = [*sent.labels, *sent.annotations, *([sent.taints] if sent.HasField("taints") else ())]
        if any(len(column.indexes) != len(slots) for column in columns):
            raise CallFailed("INVALID", "a column of node_columns has another length")
        for amounts in (sent.allocatable, sent.requested, sent.nominated_requested):
            if any(len(column.amounts) != len(slots) for column in amounts):
                raise CallFailed("INVALID", "a column of node_columns has another length")
        return True

    def _node_named(self, session: Session, request: Any) -> Optional[api.Node]:
        if self.host.inline_nodes:
            sent = request.inline_node
            return api.Node(0, sent.node, sent) if request.HasField("inline_node") else None
        return self._cluster(session).node_named(request.node_name)

    # --- PreFilter to Score

    def PreFilter(self, request: Any, context: Any) -> Any:  # noqa: N802: names of RPCs
        with self.host.changed:
            session = self._session(request, context)
            if self.host.draining or session.ended:
                raise CallFailed("DRAINING", "the host accepts no new attempts")
            if request.header.attempt_id == 0:
                raise CallFailed("INVALID", "attempt_id is required")
            pod = self._sent_pod(request) if self.host.inline_nodes else self._pod(session, request.pod_uid, None)
            call_info.enter(pod, request.header.attempt_id)
            if not self.host.inline_nodes:
                session.attempts[request.header.attempt_id] = pod.uid
            response = pb.PreFilterResponse()
            names: Optional[Set[str]] = None
            for name, plugin in self._plugins(session, request, "PRE_FILTER"):
                try:
                    said = plugin.pre_filter(pod, self._cluster(session))
                except Exception as error:  # pylint: disable=broad-except
                    response.rejection.CopyFrom(answers.failure(name, error))
                    return response
                if said is None:
                    continue
                if isinstance(said, api.Reject):
                    response.rejected_by.append(name)
                    response.rejection.CopyFrom(answers.status(name, said))
                    if said.code != "UNSCHEDULABLE":
                        break
                    continue
                names = set(said) if names is None else names & set(said)
                response.restricted_by.append(name)
            if names is not None and not response.HasField("rejection"):
                response.node_names.names.extend(sorted(names))
            return response

    def Filter(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session = self._session(request, context)
            pod = self._pod_of_attempt(session, request)
            plugins = self._plugins(session, request, "FILTER")
            what = request.WhichOneof("what")
            if what == "simulation":
                self._check_number(request.simulation.nodes)
                if self._has_columns(request, request.simulation.nodes):
                    return answers.evaluate_columns(plugins, pod, request.node_columns, is_simulation=True)
                simulated = self._simulated_nodes(session, request)
                return answers.evaluate_each(plugins, pod, simulated, self._nominated(session, request.simulation))
            if what != "search":
                raise CallFailed("INVALID", "search or simulation is required")
            search = request.search
            if search.num_feasible_nodes_to_find == 0:
                raise CallFailed("INVALID", "num_feasible_nodes_to_find must be at least 1")
            if self._has_columns(request, search.nodes.slots):
                return answers.evaluate_columns(plugins, pod, request.node_columns, is_simulation=False)
            if search.HasField("nodes") or self.host.inline_nodes:
                nodes = self._nodes(session, search.nodes.slots, request.inline_nodes)
            else:
                nodes = self._cluster(session).nodes
            # Every node that comes with the call is evaluated.
            enough = len(nodes) if self.host.inline_nodes else search.num_feasible_nodes_to_find
            return answers.search(plugins, pod, nodes, search.start_offset, enough, self._nominated(session, search))

    def _nominated(self, session: Session, question: Any) -> answers.Nominated:
        """The nominated pods that a search or simulation names, by slot."""
        if not question.nominated:
            return answers.NO_NOMINATED
        return {named.slot: [self._pod(session, uid, None) for uid in named.pod_uids] for named in question.nominated}

    @staticmethod
    def _check_number(simulated_nodes: Any) -> None:
        if len(simulated_nodes) > MAX_SIMULATED_NODES:
            raise CallFailed("INVALID", f"{len(simulated_nodes)} simulated nodes, more than {MAX_SIMULATED_NODES}")

    def _simulated_nodes(self, session: Session, request: Any) -> List[api.Node]:
        simulated_nodes = request.simulation.nodes
        if self.host.inline_nodes:
            if len(request.inline_nodes) != len(simulated_nodes):
                raise CallFailed("INVALID", "inline_nodes and simulated nodes differ in length")
            all_sent = map(pb.InlineNode.FromString, request.inline_nodes)
            return [api.Node(simulated.slot, sent.node, sent) for simulated, sent in zip(simulated_nodes, all_sent)]
        nodes: List[api.Node] = []
        node: Optional[api.Node] = None
        for simulated in simulated_nodes:
            if not simulated.continues:
                node = self._cluster(session).node(simulated.slot)
                if node is None:
                    raise CallFailed("OBJECT_UNKNOWN", f"no node in slot {simulated.slot}")
            elif node is None or node.slot != simulated.slot:
                raise CallFailed("INVALID", "a simulated node continues a simulation of another node")
            pods = dict(node.pods)
            for uid in simulated.removed_pod_uids:
                if pods.pop(uid, None) is None:
                    raise CallFailed("OBJECT_UNKNOWN", f"pod {uid} is not on the node")
            for uid in simulated.added_pod_uids:
                pods[uid] = self._pod(session, uid, None)
            node = node.with_pods(pods)
            nodes.append(node)
        return nodes

    def PreScore(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session = self._session(request, context)
            self._pod_of_attempt(session, request)
            if not self._has_columns(request, request.nodes.slots):
                self._nodes(session, request.nodes.slots, request.inline_nodes)
            return pb.PreScoreResponse()

    def Score(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session = self._session(request, context)
            pod = self._pod_of_attempt(session, request)
            columns = SentColumns(request.node_columns) if self._has_columns(request, request.nodes.slots) else None
            nodes = self._nodes(session, request.nodes.slots, request.inline_nodes) if columns is None else ()
            response = pb.ScoreResponse()
            for name, plugin in self._plugins(session, request, "SCORE"):
                try:
                    if columns is not None:
                        scores = answers.score_columns(plugin, pod, columns)
                    else:
                        scores = answers.scores(plugin, pod, nodes)
                    response.plugins.add(plugin=name, scores=scores)
                except Exception as error:  # pylint: disable=broad-except
                    response.error.CopyFrom(answers.failure(name, error))
                    return response
            return response

    # --- Groups of pods

    def GeneratePlacements(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session = self._session(request, context)
            cluster = self._cluster(session)
            group = group_calls.group_of(cluster, request.group)
            call_info.enter(group.pods[0], request.header.attempt_id)
            enabled = group_calls.only(self._plugins(session, request, "PLACEMENT_GENERATE"))
            if enabled is None:
                raise CallFailed("NOT_CONFIGURED", "the profile has no placementGenerate plugin here")
            name, plugin = enabled
            try:
                return group_calls.generated(name, plugin, group, cluster)
            except Exception as error:  # pylint: disable=broad-except
                return pb.GeneratePlacementsResponse(rejection=answers.failure(name, error))

    def ScorePlacements(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session = self._session(request, context)
            cluster = self._cluster(session)
            group = group_calls.group_of(cluster, request.group)
            call_info.enter(group.pods[0], request.header.attempt_id)
            candidates = group_calls.candidates_of(cluster, group, request)
            response = pb.ScorePlacementsResponse()
            for name, plugin in self._plugins(session, request, "PLACEMENT_SCORE"):
                try:
                    response.plugins.append(group_calls.scored(name, plugin, group, candidates))
                except Exception as error:  # pylint: disable=broad-except
                    return pb.ScorePlacementsResponse(error=answers.failure(name, error))
            return response

    # --- Before and after

    def PreEnqueue(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session = self._session(request, context, minimum=True)
            if len(request.pod_uids) > MAX_PODS_A_CALL:
                raise CallFailed("INVALID", f"more than {MAX_PODS_A_CALL} pods in a call")
            if self.host.inline_nodes and len(request.pods) != len(request.pod_uids):
                raise CallFailed("INVALID", "pods and pod_uids differ in length")
            response = pb.PreEnqueueResponse()
            for i, uid in enumerate(request.pod_uids):
                pod = self._pod(session, uid, request.pods[i] if self.host.inline_nodes else None)
                call_info.enter(pod)
                verdict = response.verdicts.add(code=pb.CODE_SUCCESS)
                for name, plugin in self._plugins(session, request, "PRE_ENQUEUE"):
                    try:
                        said = plugin.pre_enqueue(pod)
                    except Exception as error:  # pylint: disable=broad-except
                        verdict.CopyFrom(answers.failure(name, error))
                        break
                    if said is not None:
                        verdict.CopyFrom(answers.status(name, said))
                        break
            return response

    def _placed(self, request: Any, context: Any, began_elsewhere: bool = False) -> Tuple[Session, Any, api.Node]:
        session = self._session(request, context, minimum=True)
        attempt = request.header.attempt_id
        if not self.host.inline_nodes and attempt not in session.attempts:
            # The attempt is unknown if no plugin has an earlier point, or if another instance began it.
            points = ("PRE_FILTER", "FILTER", "PRE_SCORE", "SCORE")
            if not began_elsewhere and any(self._plugins(session, request, point) for point in points):
                raise CallFailed("ATTEMPT_UNKNOWN", f"no attempt {attempt}")
            session.attempts[attempt] = self._pod(session, request.pod_uid, None).uid
        pod = self._pod_of_attempt(session, request)
        node = self._node_named(session, request)
        if node is None:
            raise CallFailed("OBJECT_UNKNOWN", f"no node {request.node_name}")
        return session, pod, node

    def Reserve(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session, pod, node = self._placed(request, context)
            response = pb.ReserveResponse()
            plugins = self._plugins(session, request, "RESERVE")
            for i, (name, plugin) in enumerate(plugins):
                try:
                    said = plugin.reserve(pod, node)
                    status = None
                    if isinstance(said, api.Reject):
                        status = answers.status(name, said)
                    elif isinstance(said, api.Reserved):
                        self._keep(response, name, said.state)
                        response.effects.extend(effects.of_plugin(name, said.effects))
                    else:
                        response.effects.extend(effects.of_plugin(name, said))
                except Exception as error:  # pylint: disable=broad-except
                    status = answers.failure(name, error)
                if status is None:
                    continue
                self._unreserve(plugins[: i + 1], pod, node)
                del response.effects[:]
                del response.states[:]
                response.rejection.CopyFrom(status)
                break
            return response

    @staticmethod
    def _keep(response: Any, plugin: str, state: bytes) -> None:
        """Adds what the plugin keeps for the pod. The shim would refuse a whole answer with too much of it."""
        if not state:
            return
        if len(state) > MAX_STATE_BYTES:
            raise ValueError(f"a state of {len(state)} bytes; the limit is 4 KiB")
        if sum(len(its.state) for its in response.states) + len(state) > MAX_STATES_BYTES:
            raise ValueError("the states of all plugins exceed 16 KiB")
        response.states.add(plugin=plugin, state=state)

    @staticmethod
    def _unreserve(plugins: answers.Plugins, pod: Any, node: Optional[api.Node]) -> None:
        for name, plugin in reversed(plugins):
            try:
                plugin.unreserve(pod, node)
            except Exception as error:  # pylint: disable=broad-except
                answers.failure(name, error)

    def Unreserve(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session = self._session(request, context, minimum=True)
            node = self._node_named(session, request)
            if self.host.inline_nodes:
                pod = request.pod if request.HasField("pod") else None
            else:
                pod = self._cluster(session).pods.get(request.pod_uid)
            if pod is not None:
                call_info.enter(pod, request.header.attempt_id)
                self._unreserve(self._plugins(session, request, "RESERVE"), pod, node)
            return pb.UnreserveResponse()

    def Permit(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session, pod, node = self._placed(request, context, began_elsewhere=request.resumed)
            response = pb.PermitResponse()
            for name, plugin in self._plugins(session, request, "PERMIT"):
                try:
                    said = plugin.permit(pod, node)
                except Exception as error:  # pylint: disable=broad-except
                    response.rejection.CopyFrom(answers.failure(name, error))
                    break
                if isinstance(said, api.Reject):
                    response.rejection.CopyFrom(answers.status(name, said))
                    break
                if isinstance(said, api.Wait):
                    response.waits.add(plugin=name, timeout_micros=int(said.seconds * 1_000_000))
            return response

    def PreBind(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session = self._session(request, context, minimum=True)
            if len(request.effects) != len(request.results):
                raise CallFailed("INVALID", "effects and results differ in number")
            pod, node = self._pod(session, request.pod_uid, None), self._node_named(session, request)
            call_info.enter(pod, request.header.attempt_id)
            response = pb.PreBindResponse()
            for name, plugin in self._plugins(session, request, "PRE_BIND"):
                if node is None:
                    # An error would make the shim ask again, and the node does not come back.
                    return pb.PreBindResponse(rejection=answers.status(name, api.Unschedulable("the node is gone")))
                pairs = zip(request.effects, request.results)
                done = {effect.key: result for effect, result in pairs if effect.plugin == name}
                try:
                    said = plugin.pre_bind(pod, node, done)
                    if isinstance(said, api.Reject):
                        return pb.PreBindResponse(rejection=answers.status(name, said))
                    if isinstance(said, api.NotYet):
                        response.wait = True
                        continue
                    wanted = effects.of_plugin(name, said)
                except Exception as error:  # pylint: disable=broad-except
                    return pb.PreBindResponse(rejection=answers.failure(name, error))
                response.effects.extend(effect for effect in wanted if effect.key not in done)
            return response

    def _with_node(self, request: Any, context: Any) -> Tuple[Session, Any, api.Node]:
        """Pod and node of Bind and PostBind: an attempt that began on another instance is as good."""
        session = self._session(request, context, minimum=True)
        node = self._node_named(session, request)
        if node is None:
            raise CallFailed("OBJECT_UNKNOWN", f"no node {request.node_name}")
        pod = self._pod(session, request.pod_uid, request.pod)
        call_info.enter(pod, request.header.attempt_id)
        return session, pod, node

    def Bind(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session, pod, node = self._with_node(request, context)
            plugin = dict(self._plugins(session, request, "BIND")).get(request.plugin)
            if plugin is None:
                raise CallFailed("INVALID", f"plugin {request.plugin} is not at bind in the profile")
            response = pb.BindResponse()
            try:
                said = plugin.bind(pod, node)
            except Exception as error:  # pylint: disable=broad-except
                response.rejection.CopyFrom(answers.failure(request.plugin, error))
                return response
            if isinstance(said, api.Reject):
                response.rejection.CopyFrom(answers.status(request.plugin, said))
            elif isinstance(said, api.Bound):
                response.bound.SetInParent()
            elif isinstance(said, api.ShimBinds):
                response.shim_binds.SetInParent()
                response.shim_binds.annotations.update(said.annotations)
            else:
                response.skip.SetInParent()
            return response

    def PostBind(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.host.changed:
            session, pod, node = self._with_node(request, context)
            for name, plugin in self._plugins(session, request, "POST_BIND"):
                try:
                    plugin.post_bind(pod, node)
                except Exception as error:  # pylint: disable=broad-except
                    answers.failure(name, error)
            return pb.PostBindResponse()
