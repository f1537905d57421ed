#!/bin/sh
# SPDX-License-Identifier: MIT
# Every unit test asserts something, and the API server calls nothing of json-c that asserts on a request. Usage: check-asserts.sh [TREE]. Exit 0 = all do, 1 = one does not, 77 = no python3.
set -eu

tree=${1:-${TOP_SRCDIR:-$(dirname "$0")/..}}
command -v python3 >/dev/null || { echo "SKIP: no python3 for tests/asserts.py"; exit 77; }
exec python3 -B "$tree/tests/asserts.py" "$tree"
