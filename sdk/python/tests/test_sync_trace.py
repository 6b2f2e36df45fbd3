"""The contract's example of a Sync stream gives the cache that it says."""

import json
import pathlib
import unittest

from google.protobuf import json_format

from outboard_plugin.cluster_cache import ClusterCache, CacheError
from outboard_plugin.proto import pb

TRACE = json.loads((pathlib.Path(__file__).parents[3] / "proto/testing/sync_trace.json").read_text())


def message(step):
    return json_format.ParseDict(step, pb.SyncRequest())


def contents(cluster):
    """In the trace's form."""
    if cluster.version == 0:
        return {"version": 0}
    pods = {uid: None for uid in cluster.pods}
    for uid, (slot, nominated) in cluster._place.items():
        pods[uid] = {"nominated": slot} if nominated else slot
    return {
        "version": cluster.version,
        "nodes": {str(node.slot): node.name for node in cluster.nodes},
        "order": [node.slot for node in cluster.nodes],
        "pods": pods,
        "waiting": sorted(cluster.waiting),
        "namespaces": sorted(cluster.namespaces),
        "objects": sorted(f"{kind} {namespace}/{name}" for kind, namespace, name in cluster.objects),
    }


class SyncTraceTest(unittest.TestCase):
    def test_each_step_gives_its_cache(self):
        cache = ClusterCache()
        for step in TRACE["steps"]:
            with self.subTest(step["what"]):
                cache.apply(message(step["request"]))
                self.assertEqual(contents(cache.cluster), step["cache"])

    def test_messages_that_contradict_the_cache_are_refused(self):
        for case in TRACE["refused"]:
            with self.subTest(case["what"]):
                cache = ClusterCache()
                for step in TRACE["steps"]:
                    cache.apply(message(step["request"]))
                    if cache.cluster.version:
                        break
                *before, last = [message(request) for request in case["requests"]]
                for request in before:
                    cache.apply(request)
                with self.assertRaises(CacheError):
                    cache.apply(last)


if __name__ == "__main__":
    unittest.main()
