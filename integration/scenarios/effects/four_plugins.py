"""Four plugins that reach the Kubernetes API: three through the shim, one with credentials of its own."""

import json
import ssl
import urllib.error
import urllib.request

from outboard_plugin import Bound, DeclaredResource, Plugin, Unresolvable, Unschedulable, effects, serve


class AnnotateRack(Plugin):
    """Writes the rack of its node into the pod's annotations, before the pod is bound."""

    def configure(self, args):
        self.key = args.get("key", "example.com/rack")

    def pre_bind(self, pod, node, done):
        return [effects.patch_pod("rack", annotations={self.key: node.labels.get("rack", "unknown")})]


class RecordPlacement(Plugin):
    """Records an event about the pod when it gets a node."""

    def reserve(self, pod, node):
        note = f"Node {node.name} in rack {node.labels.get('rack', 'unknown')} is reserved for the pod"
        return [effects.record_event("reserved", reason="Reserved", action="Reserving", note=note)]


class Blocklist(Plugin):
    """Rejects the nodes that a ConfigMap names: `nodes: n1,n2` in its data."""

    declared_resources = (DeclaredResource("configmaps.v1"),)
    # A change of any ConfigMap may help the pods that this plugin rejected.
    wake_up_events = (
        ("configmaps.v1", "ADD"),
        ("configmaps.v1", "UPDATE_OTHER"),
        ("configmaps.v1", "DELETE"),
    )

    def filter(self, pod, node):
        blocklist = self.cluster.find("configmaps.v1", "blocklist", namespace="default")
        blocked = blocklist and blocklist.at("data", "nodes")
        if isinstance(blocked, str) and node.name in blocked.split(","):
            return Unresolvable("node(s) were in the ConfigMap blocklist")


class BindItself(Plugin):
    """Binds pods with the token of a service account that may create pods/binding."""

    def configure(self, args):
        mounted = "/var/run/secrets/kubernetes.io/serviceaccount/"
        self.server = args.get("server", "https://kubernetes.default.svc")
        self.token_file = args.get("tokenFile", mounted + "token")
        self.tls = ssl.create_default_context(cafile=args.get("caFile", mounted + "ca.crt"))

    def bind(self, pod, node):
        with open(self.token_file, encoding="utf-8") as file:
            token = file.read().strip()
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            # The UID: another pod of this name is not bound.
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node.name},
        }
        request = urllib.request.Request(
            f"{self.server}/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding",
            data=json.dumps(binding).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            # The shim waits for `deadlines.bind`, and no other call runs meanwhile.
            urllib.request.urlopen(request, timeout=0.8, context=self.tls).close()
        except urllib.error.HTTPError as error:
            # 409: the pod is bound already.
            if error.code != 409:
                return Unschedulable(f"the API server refused the Binding: {error.code} {error.reason}")
        except OSError:
            pass  # The Binding may have arrived.
        # The shim reads the pod, and believes only that.
        return Bound()


if __name__ == "__main__":
    serve(AnnotateRack(), RecordPlacement(), Blocklist(), BindItself())
