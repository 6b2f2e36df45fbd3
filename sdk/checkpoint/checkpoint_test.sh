#!/usr/bin/env bash
# Tests of the module and of its shell form, with a fake API server.
# Usage: checkpoint_test.sh
set -euo pipefail
cd "$(dirname "$0")"
PYTHONDONTWRITEBYTECODE=1 python3 -m unittest outboard_checkpoint_test
