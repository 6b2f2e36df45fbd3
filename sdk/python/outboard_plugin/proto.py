"""The contract's messages and services, generated when first needed.

`pb` has every message and enum by its name; `services.add` adds a servicer. The .proto files lie in the package (`proto/`),
or, in a checkout of the project, above it.
"""

import importlib
import os
import pathlib
import sys
import tempfile
import types

PACKAGE = "proto/outboard/v1alpha1"


def _root():
    """The folder above the contract's files."""
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here, *here.parents):
        if (folder / PACKAGE).is_dir():
            return folder
    raise ImportError(f"the contract is missing: no {PACKAGE} in or above {here}")


def _generate():
    generated = os.environ.get("OUTBOARD_PLUGIN_GENERATED")
    if generated is None:
        from grpc_tools import protoc

        generated = tempfile.mkdtemp(prefix="outboard-plugin-")
        root = _root()
        files = sorted(str(path.relative_to(root)) for path in (root / PACKAGE).glob("*.proto"))
        if protoc.main(["protoc", f"-I{root}", f"--python_out={generated}", f"--grpc_python_out={generated}", *files]) != 0:
            raise ImportError("the contract could not be compiled")
    sys.path.insert(0, generated)
    # The generated modules import each other as proto.outboard.…; this module must not stand in their way.
    return generated


def _load():
    generated = pathlib.Path(_generate())
    messages, adders = types.SimpleNamespace(), {}
    for path in sorted((generated / PACKAGE).glob("*_pb2*.py")):
        module = importlib.import_module(f"{PACKAGE.replace('/', '.')}.{path.stem}")
        for name, value in vars(module).items():
            if name.startswith("add_") and name.endswith("Servicer_to_server"):
                adders[name[len("add_") : -len("Servicer_to_server")]] = value
            elif path.stem.endswith("_pb2") and not name.startswith("_"):
                setattr(messages, name, value)
    return messages, adders


class _Services:
    def __init__(self, adders):
        self._adders = adders

    def add(self, service, servicer, server):
        self._adders[service](servicer, server)


pb, _adders = _load()
services = _Services(_adders)
