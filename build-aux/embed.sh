#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints C source that holds the given files as one table: the only copy of what etc/ ships.
set -eu
echo '/* Made by build-aux/embed.sh from etc/; do not edit. */'
echo '#include "tec/render/etc.h"'
n=0
for f in "$@"; do
	printf 'static const char file_%d[] = {\n' $n
	od -An -v -tx1 "$f" | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	printf '0x00};\n'
	n=$((n + 1))
done
echo 'const struct render_etc_file render_etc_files[] = {'
n=0
for f in "$@"; do
	printf '\t{"%s", file_%d},\n' "${f##*/}" $n
	n=$((n + 1))
done
printf '\t{0, 0},\n};\n'
