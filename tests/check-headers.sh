#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles each public header alone: who includes one needs to know nothing else.
# Usage: check-headers.sh [TREE], with CC and CHECK_CFLAGS as configure found them (make check sets both).
# Exit 0 = all compile, 1 = one does not, or there is none.
set -eu

tree=${1:-${TOP_SRCDIR:-$(dirname "$0")/..}}
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

(cd "$tree/include" && find tec -name '*.h') | LC_ALL=C sort >"$work/headers"
good=0
bad=0
while read -r header; do
	# Twice: the guard must hold.
	printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$work/one.c"
	# Flags and compiler are lists of words.
	# shellcheck disable=SC2086
	if $cc ${CHECK_CFLAGS-} -I"$tree/include" -fsyntax-only "$work/one.c" >"$work/out" 2>&1 && ! [ -s "$work/out" ]; then
		good=$((good + 1))
	else
		bad=$((bad + 1))
		echo "$header does not compile alone:"
		cat "$work/out"
	fi
done <"$work/headers"
echo "check-headers: $good of $((good + bad)) headers compile alone"
[ "$bad" -eq 0 ] && [ "$good" -gt 0 ]
