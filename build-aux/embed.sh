#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: embed.sh TABLE FILE...
# Prints C source with the given files as one table of this name, so that the programs contain the files of etc/ and crd/. A policy
# with the line `pcr7_required := false` is included twice: BASE.rego unchanged, and BASE-pcr7.rego with the line set to true.
set -eu
switch='^pcr7_required := false$'
name=$1
shift
n=0
table=

# Print standard input as one array.
embed() {
	printf 'static const char file_%d[] = {\n' $n
	od -An -v -tx1 | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	printf '0x00};\n'
}

echo '/* Made by build-aux/embed.sh; do not edit. */'
echo '#include "tec/render/etc.h"'
for f in "$@"; do
	embed <"$f"
	table="$table$(printf '\n\t{"%s", file_%d},' "${f##*/}" $n)"
	n=$((n + 1))
	grep -q "$switch" "$f" || continue
	sed 's/'"$switch"'/pcr7_required := true/' "$f" | embed
	base=${f##*/}
	table="$table$(printf '\n\t{"%s-pcr7.rego", file_%d},' "${base%.rego}" $n)"
	n=$((n + 1))
done
printf 'extern const struct render_etc_file %s[];\nconst struct render_etc_file %s[] = {%s\n\t{0, 0},\n};\n' "$name" "$name" "$table"
