#!/bin/sh
# SPDX-License-Identifier: MIT
# The checks checked: each must name the faults planted for it. Exit 77 = nothing to run one of them with.
set -eu

tree=${TOP_SRCDIR:-$(dirname "$0")/..}
sh "$tree/tests/check-floors.sh" --selftest "$tree"
command -v python3 >/dev/null || { echo "SKIP: no python3 for count.py --selftest"; exit 77; }
python3 -B "$tree/tests/count.py" --selftest 2>/dev/null
python3 -B "$tree/tests/asserts.py" --selftest
command -v git >/dev/null || { echo "SKIP: no git for tier.py --selftest"; exit 77; }
python3 -B "$tree/tests/tier.py" --selftest
