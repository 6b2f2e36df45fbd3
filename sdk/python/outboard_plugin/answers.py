"""Runs plugins over nodes, and packs their results."""

from __future__ import annotations

import logging
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from outboard_plugin import api
from outboard_plugin.columns import Columns, NodesAsColumns, SentColumns
from outboard_plugin.errors import cut
from outboard_plugin.proto import pb

log = logging.getLogger("outboard_plugin")

# Plugins with their names, in the profile's order.
Plugins = Sequence[Tuple[str, api.Plugin]]
# The plugin that rejects a node, and its verdict; None: no plugin rejects it.
NodeVerdict = Optional[Tuple[str, api.Reject]]

# By slot: the nominated pods that count beside the pod to evaluate.
Nominated = Mapping[int, Sequence[api.Pod]]
NO_NOMINATED: Nominated = {}

# The size of the first block of nodes that `search` checks.
FEWEST_AT_ONCE = 128


class PluginFailed(Exception):
    def __init__(self, plugin: str, error: BaseException) -> None:
        super().__init__(str(error))
        self.plugin, self.error = plugin, error


def status(name: str, verdict: api.Reject) -> Any:
    return pb.PluginStatus(plugin=name, code=pb.Code.Value("CODE_" + verdict.code), reasons=[cut(str(verdict.reason)) or verdict.code])


def raised(name: str, error: BaseException) -> str:
    """For the pod's events, which name no plugin otherwise."""
    return cut(f"plugin {name} raised {type(error).__name__}: {error}")


def failure(name: str, error: BaseException) -> Any:
    log.error("plugin %s failed", name, exc_info=error)
    return pb.PluginStatus(plugin=name, code=pb.CODE_ERROR, reasons=[raised(name, error)])


def _verdicts(plugin: api.Plugin, pod: Any, nodes: Sequence[api.Node]) -> Tuple[List[Any], Optional[BaseException]]:
    """The plugin's verdicts up to the first node on which it fails, and the error."""
    said: List[Any] = []
    try:
        if api.overrides(plugin, "filter_columns"):
            verdicts = (None, *plugin.filter_reasons)
            return [verdicts[number] for number in _numbers(plugin, pod, NodesAsColumns(nodes))], None
        if api.overrides(plugin, "filter_nodes"):
            all_said = list(plugin.filter_nodes(pod, nodes))
            if len(all_said) != len(nodes):
                raise ValueError(f"filter_nodes answered for {len(all_said)} nodes, not {len(nodes)}")
            return all_said, None
        one, add = plugin.filter, said.append
        for node in nodes:
            add(one(pod, node))
        return said, None
    except Exception as error:  # pylint: disable=broad-except
        return said, error


def _listed(said: Any) -> List[int]:
    """The numbers that a plugin returned, also as booleans or as a numpy array."""
    return list(map(int, said.tolist() if hasattr(said, "tolist") else said))


def _numbers(plugin: api.Plugin, pod: Any, columns: Columns) -> List[int]:
    """The plugin's answer for each node. Raises ValueError if it is not one."""
    numbers = _listed(plugin.filter_columns(pod, columns))
    if len(numbers) != len(columns):
        raise ValueError(f"filter_columns answered for {len(numbers)} nodes, not {len(columns)}")
    if numbers and not 0 <= min(numbers) <= max(numbers) <= len(plugin.filter_reasons):
        raise ValueError(f"filter_columns must answer 0 to {len(plugin.filter_reasons)} (filter_reasons)")
    return numbers


def _run_filters(plugins: Plugins, pod: Any, nodes: Sequence[api.Node]) -> Tuple[List[NodeVerdict], Optional[PluginFailed]]:
    said: List[NodeVerdict] = [None] * len(nodes)
    left = list(range(len(nodes)))
    failed: Optional[PluginFailed] = None
    for name, plugin in plugins:
        if not left:
            break
        verdicts, error = _verdicts(plugin, pod, nodes if len(left) == len(nodes) else [nodes[i] for i in left])
        if error is not None:
            # Drop this node and all following nodes.
            failed = PluginFailed(name, error)
            del said[left[len(verdicts)] :]
            left = left[: len(verdicts)]
        if any(verdicts):
            for i, verdict in zip(left, verdicts):
                if verdict is not None:
                    said[i] = (name, verdict)
            left = [i for i in left if said[i] is None]
    return said, failed


def evaluate(
    plugins: Plugins, pod: Any, nodes: Sequence[api.Node], nominated: Nominated = NO_NOMINATED
) -> Tuple[List[NodeVerdict], List[int], Optional[PluginFailed]]:
    """The verdict on each node, up to the first on which a plugin fails; and the positions of nodes that are rejected only
    without their nominated pods.

    A node with nominated pods is checked with and without them."""
    both = (node.with_nominated(nominated.get(node.slot, ())) for node in nodes)
    crowded = [(i, with_others) for i, with_others in enumerate(both) if with_others is not None]
    if not crowded:
        said, failed = _run_filters(plugins, pod, nodes)
        return said, [], failed
    all_said: List[NodeVerdict] = []
    only_without: List[int] = []
    first = 0
    for i, with_others in [*crowded, (len(nodes), None)]:
        said, failed = _run_filters(plugins, pod, nodes[first:i])
        all_said += said
        first = i + 1
        if failed is not None or with_others is None:
            return all_said, only_without, failed
        for node in (with_others, nodes[i]):
            said, failed = _run_filters(plugins, pod, [node])
            if failed is not None:
                return all_said, only_without, failed
            if said[0] is not None:
                if node is nodes[i]:
                    only_without.append(i)
                break
        all_said += said
    return all_said, only_without, None


class FilterAnswer:
    """Packs verdicts."""

    def __init__(self) -> None:
        self.response = pb.FilterResponse()
        self.feasible = 0
        self._bits: List[str] = []
        self._rejected: List[int] = []
        self._reasons: Dict[Tuple[str, str, str], int] = {}

    def add(self, said: NodeVerdict, only_without_nominated: bool = False) -> None:
        if said is None:
            self._bits.append("1")
            self.feasible += 1
            return
        self._bits.append("0")
        if only_without_nominated:
            self.response.only_without_nominated.append(len(self._rejected))
        name, verdict = said
        key = (name, verdict.code, verdict.reason)
        index = self._reasons.get(key)
        if index is None:
            index = self._reasons[key] = len(self._reasons)
            self.response.reasons.append(status(name, verdict))
        self._rejected.append(index)

    def add_feasible(self, count: int) -> None:
        self._bits.extend("1" * count)
        self.feasible += count

    def finish(self) -> Any:
        count = len(self._bits)
        self.response.processed = count
        self.response.rejected.extend(self._rejected)
        if count:
            self._bits.reverse()
            self.response.feasible = int("".join(self._bits), 2).to_bytes((count + 7) // 8, "little")
        return self.response


def search(
    plugins: Plugins, pod: Any, nodes: Sequence[api.Node], start: int, enough: int, nominated: Nominated = NO_NOMINATED
) -> Any:
    """Checks nodes from `start`, wrapping around, until it finds one feasible node more than `enough`."""
    answer = FilterAnswer()
    if nodes and start % len(nodes):
        start %= len(nodes)
        nodes = list(nodes[start:]) + list(nodes[:start])
    first, at_once = 0, FEWEST_AT_ONCE
    while first < len(nodes):
        # If plugins reject nearly all nodes, few long blocks are faster than many short ones.
        block = nodes[first : first + max(enough + 1 - answer.feasible, at_once)]
        first, at_once = first + len(block), at_once * 2
        said, only_without, failed = evaluate(plugins, pod, block, nominated)
        if answer.feasible + len(said) <= enough and not any(said):
            answer.add_feasible(len(said))
        else:
            marked = set(only_without)
            for i, verdict in enumerate(said):
                if verdict is None and answer.feasible == enough:
                    return answer.finish()
                answer.add(verdict, i in marked)
        if failed is not None:
            answer.response.error.CopyFrom(failure(failed.plugin, failed.error))
            break
    return answer.finish()


def evaluate_each(plugins: Plugins, pod: Any, nodes: Sequence[api.Node], nominated: Nominated = NO_NOMINATED) -> Any:
    """Checks every node separately; a failing plugin rejects the node."""
    answer = FilterAnswer()
    for node in nodes:
        said, only_without, failed = evaluate(plugins, pod, [node], nominated)
        if failed is not None:
            answer.add((failed.plugin, api.Unresolvable(raised(failed.plugin, failed.error))))
        else:
            answer.add(said[0], bool(only_without))
    return answer.finish()


class _Rejections:
    """Verdicts on the nodes of columns: for each node 0, or the number of a plugin's reason."""

    def __init__(self, plugins: Plugins, pod: Any, columns: Columns) -> None:
        self.numbers = [0] * len(columns)
        self.failed: Optional[PluginFailed] = None
        first = 0
        for name, plugin in plugins:
            if 0 not in self.numbers:
                break
            try:
                said = _numbers(plugin, pod, columns)
            except Exception as error:  # pylint: disable=broad-except
                self.failed = PluginFailed(name, error)
                break
            if first == 0:
                self.numbers = said
            elif any(said):
                self.numbers = [old or (new and new + first) for old, new in zip(self.numbers, said)]
            first += len(plugin.filter_reasons)


def _reasons(plugins: Plugins) -> List[Any]:
    """The statuses that the numbers of _Rejections stand for, from 1."""
    return [status(name, verdict) for name, plugin in plugins for verdict in plugin.filter_reasons]


def _pack(numbers: List[int], statuses: List[Any]) -> Any:
    """An answer with the reasons that nodes have, each once."""
    response = pb.FilterResponse()
    sent: Dict[bytes, int] = {}
    sent_as = {0: 0}
    for number in sorted(set(numbers) - {0}):
        reason = statuses[number - 1]
        key = reason.SerializeToString(deterministic=True)
        if key not in sent:
            sent[key] = len(sent) + 1
            response.reasons.append(reason)
        sent_as[number] = sent[key]
    response.verdicts.extend([sent_as[number] for number in numbers])
    return response


def _both_ways(plugins: Plugins, pod: Any, message: Any) -> Tuple[List[int], List[int], Optional[PluginFailed]]:
    """The verdicts on all nodes; the positions of nodes that are rejected only without their nominated pods; and the failure
    of a plugin, which is one on every node that no plugin rejects."""
    plain = SentColumns(message)
    without = _Rejections(plugins, pod, plain)
    if not plain.crowded:
        return without.numbers, [], without.failed
    beside = _Rejections(plugins, pod, SentColumns(message, with_nominated=True))
    only_without = []
    for i in plain.crowded:
        if beside.numbers[i] != 0:
            without.numbers[i] = beside.numbers[i]
        elif without.numbers[i] != 0:
            only_without.append(i)
    return without.numbers, only_without, without.failed or beside.failed


def evaluate_columns(plugins: Plugins, pod: Any, message: Any, is_simulation: bool) -> Any:
    """Checks all nodes of columns. A plugin that fails ends a search at the first node that no plugin rejects, and rejects
    simulated nodes."""
    numbers, only_without, failed = _both_ways(plugins, pod, message)
    statuses = _reasons(plugins)
    is_error = failed is not None and not is_simulation and 0 in numbers
    if is_error:
        numbers = numbers[: numbers.index(0)]
    elif failed is not None:
        statuses.append(status(failed.plugin, api.Unresolvable(raised(failed.plugin, failed.error))))
        numbers = [number or len(statuses) for number in numbers]
    response = _pack(numbers, statuses)
    if only_without:
        rejected = {i: position for position, i in enumerate(i for i, number in enumerate(numbers) if number)}
        response.only_without_nominated.extend([rejected[i] for i in only_without if i in rejected])
    if failed is not None and is_error:
        response.error.CopyFrom(failure(failed.plugin, failed.error))
    return response


def score_columns(plugin: api.Plugin, pod: Any, columns: Columns) -> bytes:
    """As scores, of all nodes of columns."""
    said = _listed(plugin.score_columns(pod, columns))
    if len(said) != len(columns):
        raise ValueError(f"score_columns answered for {len(said)} nodes, not {len(columns)}")
    return _packed(said)


def scores(plugin: api.Plugin, pod: Any, nodes: Sequence[api.Node]) -> bytes:
    """One byte per node. Raises ValueError if a score is not in 0 to 100."""
    said: Sequence[Any]
    if api.overrides(plugin, "score_columns"):
        return score_columns(plugin, pod, NodesAsColumns(nodes))
    if api.overrides(plugin, "score_nodes"):
        said = plugin.score_nodes(pod, nodes)
    else:
        one = plugin.score
        said = [one(pod, node) for node in nodes]
    if len(said) != len(nodes):
        raise ValueError(f"score_nodes answered for {len(said)} nodes, not {len(nodes)}")
    return _packed(said)


def _packed(said: Sequence[Any]) -> bytes:
    try:
        packed = bytes(map(int, said))
        if not packed or max(packed) <= 100:
            return packed
    except (TypeError, ValueError):
        pass
    wrong = next(score for score in said if score is None or not 0 <= int(score) <= 100)
    raise ValueError(f"a score must be from 0 to 100, not {wrong}")
