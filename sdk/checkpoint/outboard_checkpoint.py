"""Tells the scheduler that this pod has written a checkpoint.

A training program calls `written()` after each checkpoint. It patches the annotation
`outboard/last-checkpoint-time` of the pod in which it runs, with the token of the pod's account. Only the standard
library is needed. As a program: `python3 -m outboard_checkpoint`.
"""

import datetime
import json
import logging
import os
import socket
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Dict, Optional

__all__ = ["Reporter", "written"]

CHECKPOINT = "outboard/last-checkpoint-time"
ESTIMATED_END = "outboard/estimated-end"
CHECKPOINTING = "outboard/checkpointing"

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_log = logging.getLogger(__name__)


def _timestamp(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Reporter:
    """Patches the annotations of one pod.

    The defaults are those of a container: the environment variables of Kubernetes, the mounted account (or the folder
    OUTBOARD_ACCOUNT), and the pod's name from the variable POD_NAME, else from the host name. A pod with `hostNetwork`
    or a `hostname` of its own must set POD_NAME from `metadata.name`.

    Thread-safe. Errors are those of urllib: `OSError`, `urllib.error.HTTPError` if the API server refuses,
    `http.client.HTTPException`.
    """

    def __init__(self, server: Optional[str] = None, namespace: Optional[str] = None, pod: Optional[str] = None,
                 account: Optional[str] = None, timeout: float = 10.0, least_interval: float = 10.0) -> None:
        """`least_interval`: seconds between two patches; a checkpoint in between is not reported, because the
        scheduler needs the time only roughly, and each patch is a write of the API server."""
        if server is None:
            host = os.environ.get("KUBERNETES_SERVICE_HOST")
            if not host:
                raise OSError("KUBERNETES_SERVICE_HOST is not set: not in a pod")
            if ":" in host:
                host = f"[{host}]"
            server = f"https://{host}:{os.environ.get('KUBERNETES_SERVICE_PORT_HTTPS', '443')}"
        self._account = account or os.environ.get("OUTBOARD_ACCOUNT") or _ACCOUNT
        self._timeout = timeout
        self._least_interval = least_interval
        self._lock = threading.Lock()
        self._last: Optional[float] = None  # By time.monotonic().
        namespace = namespace or os.environ.get("POD_NAMESPACE") or self._read("namespace")
        pod = pod or os.environ.get("POD_NAME") or socket.gethostname()
        self._url = "{}/api/v1/namespaces/{}/pods/{}".format(
            server.rstrip("/"), urllib.parse.quote(namespace, safe=""), urllib.parse.quote(pod, safe=""))

    def written(self, when: Optional[float] = None, estimated_end: Optional[float] = None) -> bool:
        """A checkpoint is complete. `when`: its time, in seconds since the Unix epoch; None: now. `estimated_end`: when
        the training will end. Returns False if the last report was less than `least_interval` ago."""
        with self._lock:
            now = time.monotonic()
            if self._last is not None and now - self._last < self._least_interval:
                return False
            annotations = {CHECKPOINTING: "true", CHECKPOINT: _timestamp(time.time() if when is None else when)}
            if estimated_end is not None:
                annotations[ESTIMATED_END] = _timestamp(estimated_end)
            self._patch(annotations)
            self._last = now
            return True

    def _read(self, name: str) -> str:
        with open(os.path.join(self._account, name), encoding="utf-8") as file:
            return file.read().strip()

    def _patch(self, annotations: Dict[str, str]) -> None:
        request = urllib.request.Request(
            self._url, method="PATCH", data=json.dumps({"metadata": {"annotations": annotations}}).encode(),
            # The kubelet renews the token's file.
            headers={"Authorization": "Bearer " + self._read("token"), "Accept": "application/json",
                     "Content-Type": "application/merge-patch+json"})
        context = None
        if self._url.startswith("https:"):
            context = ssl.create_default_context(cafile=os.path.join(self._account, "ca.crt"))
        handlers = [urllib.request.ProxyHandler({})]  # The API server is not behind a proxy.
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        with urllib.request.build_opener(*handlers).open(request, timeout=self._timeout) as response:
            response.read()


_default_lock = threading.Lock()
_default: Optional[Reporter] = None


def written(when: Optional[float] = None, estimated_end: Optional[float] = None) -> bool:
    """As Reporter.written, for the pod in which this process runs. Never raises: training goes on without the
    scheduler. A failure is a warning in the log, and the result is False."""
    global _default
    try:
        with _default_lock:
            if _default is None:
                _default = Reporter()
            reporter = _default
        return reporter.written(when, estimated_end)
    except Exception as error:  # pylint: disable=broad-except  # Training is worth more than a report.
        detail = ""
        if isinstance(error, urllib.error.HTTPError):
            detail = ": " + error.read(1000).decode(errors="replace")
        _log.warning("The checkpoint was not reported: %s%s; training continues.", error, detail)
        return False


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    sys.exit(0 if written() else 1)
