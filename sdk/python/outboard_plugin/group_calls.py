"""The calls about groups of pods, on the cluster cache."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from outboard_plugin import answers, api
from outboard_plugin.errors import CallFailed, cut
from outboard_plugin.groups import Candidate, Excluded, Group, Placement
from outboard_plugin.proto import pb

MAX_PLACEMENTS = 256


def group_of(cluster: api.Cluster, message: Any) -> Group:
    """The group of a request. Raises CallFailed for unknown pods and nodes."""
    pods = [cluster.pods.get(uid) for uid in message.pod_uids]
    if None in pods:
        raise CallFailed("OBJECT_UNKNOWN", f"no pod {message.pod_uids[pods.index(None)]}")
    if not 0 < message.needed <= len(pods):
        raise CallFailed("INVALID", f"a group that needs {message.needed} of {len(pods)} pods")
    return Group(message.name, message.namespace, pods, message.needed, nodes_of(cluster, message.placed_slots))


def nodes_of(cluster: api.Cluster, slots: Sequence[int]) -> List[api.Node]:
    nodes = []
    for slot in slots:
        node = cluster.node(slot)
        if node is None:
            raise CallFailed("OBJECT_UNKNOWN", f"no node in slot {slot}")
        nodes.append(node)
    return nodes


def candidates_of(cluster: api.Cluster, group: Group, request: Any) -> List[Candidate]:
    candidates = []
    for asked in request.placements:
        assigned = asked.assignments
        if len(assigned.pods) != len(assigned.slots) or any(pod >= len(group.pods) for pod in assigned.pods):
            raise CallFailed("INVALID", "assignments of other pods, or without a node for each")
        pods = [group.pods[pod] for pod in assigned.pods]
        places = list(zip(pods, nodes_of(cluster, assigned.slots)))
        candidates.append(Candidate(asked.placement.name, nodes_of(cluster, asked.placement.nodes.slots), places))
    if not candidates:
        raise CallFailed("INVALID", "no placements")
    return candidates


def generated(name: str, plugin: api.Plugin, group: Group, cluster: api.Cluster) -> Any:
    """The answer of a plugin at placementGenerate."""
    said = plugin.generate_placements(group, cluster)
    if isinstance(said, api.Reject):
        return pb.GeneratePlacementsResponse(rejection=answers.status(name, said))
    if said is None:
        return pb.GeneratePlacementsResponse(any=pb.AnyPlacement())
    placements: Dict[str, Placement] = {placement.name: placement for placement in said}
    if not 0 < len(said) <= MAX_PLACEMENTS or len(placements) != len(said):
        raise ValueError(f"generate_placements named {len(said)} placements, {len(placements)} names; 1 to {MAX_PLACEMENTS} are allowed")
    response = pb.GeneratePlacementsResponse()
    for placement in said:
        nodes = pb.NodeSet(slots=[node.slot for node in placement.nodes])
        response.placements.placements.add(name=placement.name, nodes=nodes)
    return response


def scored(name: str, plugin: api.Plugin, group: Group, candidates: Sequence[Candidate]) -> Any:
    """The scores of a plugin at placementScore. Raises ValueError for scores that are not in 0 to 100."""
    said = plugin.score_placements(group, candidates)
    if len(said) != len(candidates):
        raise ValueError(f"score_placements answered for {len(said)} placements, not {len(candidates)}")
    scores = pb.PlacementScores(plugin=name)
    numbers: List[int] = []
    for i, score in enumerate(said):
        if isinstance(score, Excluded):
            scores.excluded.add(placement=i, reason=cut(score.reason) or "excluded")
            numbers.append(0)
        elif not 0 <= int(score) <= 100:
            raise ValueError(f"a score must be from 0 to 100, not {score}")
        else:
            numbers.append(int(score))
    scores.scores = bytes(numbers)
    return scores


def only(plugins: Sequence[Tuple[str, api.Plugin]]) -> Optional[Tuple[str, api.Plugin]]:
    return plugins[0] if len(plugins) == 1 else None
