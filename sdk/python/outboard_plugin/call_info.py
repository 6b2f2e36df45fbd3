"""The pod and the attempt of the call in progress: for a plugin's log lines, spans and requests to other services."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import logging
import re
from typing import Any, Iterator, Optional

UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def trace_id(pod_uid: str) -> str:
    """The trace id of a pod by the contract's rule (call.proto, CallHeader): the same in the shim and in every host. "" if
    the uid is not a UUID; Kubernetes makes UUIDs."""
    digits = pod_uid.replace("-", "").lower()
    return digits if UUID.fullmatch(pod_uid) and digits.strip("0") else ""


@dataclasses.dataclass(frozen=True)
class CallInfo:
    """What a call is about. `attempt` is 0 before the pod's first attempt: in pre_enqueue."""

    namespace: str
    name: str
    uid: str
    attempt: int = 0

    @property
    def trace_id(self) -> str:
        return trace_id(self.uid)

    @property
    def traceparent(self) -> str:
        """W3C's trace context: the parent of a plugin's spans, and a header for its requests. "" without an attempt."""
        return f"00-{self.trace_id}-{self.attempt:016x}-01" if self.attempt and self.trace_id else ""

    def __str__(self) -> str:
        attempt = f", attempt {self.attempt}" if self.attempt else ""
        return f"pod {self.namespace}/{self.name}, uid {self.uid}{attempt}"


_current: contextvars.ContextVar[Optional[CallInfo]] = contextvars.ContextVar("outboard_call", default=None)


def current_call() -> Optional[CallInfo]:
    """The call that the plugin is in; None outside of calls about a pod. A thread that the plugin starts has none, unless
    it runs in a copy of the context (contextvars.copy_context)."""
    return _current.get()


@contextlib.contextmanager
def scope() -> Iterator[None]:
    """Forgets at its end what `enter` named. gRPC uses a thread for many calls."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def enter(pod: Any, attempt: int = 0) -> None:
    """The call is about this pod (a message of the contract) from now on."""
    _current.set(CallInfo(pod.namespace, pod.name, pod.uid, attempt))


class CallFilter(logging.Filter):
    """Adds the call to each record of a handler, of any logger and library: `pod` ("NAMESPACE/NAME"), `pod_uid`, `attempt`,
    `traceparent`, and `call`, all of them as text for the end of a line. Each is "" outside of calls. `serve` uses it; a
    program with handlers of its own adds it to them: `handler.addFilter(CallFilter())`."""

    def filter(self, record: logging.LogRecord) -> bool:
        info = current_call()
        record.__dict__.update(
            pod=f"{info.namespace}/{info.name}" if info else "",
            pod_uid=info.uid if info else "",
            attempt=str(info.attempt) if info and info.attempt else "",
            traceparent=info.traceparent if info else "",
            call=f" [{info}]" if info else "",
        )
        return True
