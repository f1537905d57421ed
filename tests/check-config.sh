#!/bin/sh
# SPDX-License-Identifier: MIT
# The program, its manual and its sample configuration say the same: options, defaults, endpoints, environment.
# Usage: check-config.sh [BINARY [TREE]]; make check sets TEC_OPERATOR, TECCTL and TOP_SRCDIR instead.
# Exit 0 = they agree, 1 = they do not, and each difference has a line.
set -eu

binary=${1:-${TEC_OPERATOR:-./tec-operator}}
tree=${2:-${TOP_SRCDIR:-$(dirname "$0")/..}}
man=$tree/man/tec-operator.8
sample=$tree/etc/tec-operator.conf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
LC_ALL=C
export LC_ALL

faults=0
checks=0
fault() { echo "check-config: $*"; faults=$((faults + 1)); }
differ() {	# A B TEXT: lines only in A
	checks=$((checks + $(wc -l <"$1")))
	comm -23 "$1" "$2" >"$work/only"
	while read -r line; do
		fault "$line $3"
	done <"$work/only"
}

# HELP MAN NAME: its options, "  --name" in a line of --help and ".It Fl -name" in the manual.
same_options() {
	sed -n 's/^  --\([a-z-]*\).*/\1/p' "$1" | sort >"$work/in-help"
	sed -n 's/^\.It Fl -\([a-z-]*\).*/\1/p' "$2" | sort >"$work/in-man"
	[ -s "$work/in-help" ] || fault "$3 --help names no option"
	differ "$work/in-help" "$work/in-man" "is in $3 --help but not in $2"
	differ "$work/in-man" "$work/in-help" "is in $2 but not in $3 --help"
}

# HELP MAN: "Default: X" behind an option in --help stands behind the same option in the manual.
same_defaults() {
	awk '/^  --/ { sub(/^  --/, ""); sub(/[^a-z-].*/, ""); name = $0 }
		/^ +Default: [^ ]+$/ { print name, $2 }' "$1" >"$work/defaults"
	while read -r name value; do
		checks=$((checks + 1))
		awk -v name="$name" -v value="$value" '
			/^\.(It|El|S[hs])/ { on = $0 ~ ("^\\.It Fl -" name "( |$)") }
			on && /^Default: / && $2 == value { found = 1 }
			END { exit !found }' "$2" || fault "--$name: $2 does not say \"Default: $value\""
	done <"$work/defaults"
}

# The names that sources ask the environment for; net/httpc_proxy.c has either(LOWER, UPPER).
env_of() {
	grep -rhoE '(getenv|env_or)\("[A-Z0-9_]+"|either\("[a-z_]+", "[A-Za-z_]+"' "$@" | grep -oE '"[^"]+"' | tr -d '"' | sort -u
}
same_env() {	# READ NAMED MAN
	differ "$1" "$2" "is read from the environment but not in $3"
	differ "$2" "$1" "is in $3 but not read from the environment"
}
named_in() { sed -n 's/^\.It Ev //p' "$1" | sed 's/ , Ev /\n/g' | sort -u; }

# NAME PROGRAM ARGUMENTS...: what is wrong is named, on standard error, with exit 2.
refuses() {
	who=$1
	shift
	checks=$((checks + 1))
	rc=0
	"$@" --no-such-option >/dev/null 2>"$work/err" || rc=$?
	if [ $rc -ne 2 ] || ! grep -q -e --no-such-option "$work/err"; then
		fault "$who: an unknown option ends with $rc: $(cat "$work/err")"
	fi
}

"$binary" --help >"$work/help" 2>"$work/err" || fault "$binary --help: exit $? $(cat "$work/err")"
"$binary" --print-config >"$work/print" 2>"$work/err" || fault "$binary --print-config: exit $? $(cat "$work/err")"

# Options.
same_options "$work/help" "$man" tec-operator
sed -n 's/^#\([a-z-]*\) = .*/\1/p' "$sample" | sort >"$work/in-sample"
differ "$work/in-sample" "$work/in-help" "is in $sample but not in --help"

# The sample is what the program prints, so every option that may stand in a file is in it, with its default.
checks=$((checks + 1))
cmp -s "$work/print" "$sample" || fault "$sample is not what --print-config prints; next step: tec-operator --print-config >etc/tec-operator.conf"

same_defaults "$work/help" "$man"

# Endpoints, from the route tables; environment, from getenv.
sed -n 's/.*\.path = "\([^"]*\)".*/\1/p' "$tree"/src/srv/*.c | sort -u >"$work/routes"
[ -s "$work/routes" ] || fault "no route found in src/srv"
tr ' ' '\n' <"$man" | sed -n 's/^\(\/[a-z][a-z-]*\)$/\1/p' | sort -u >"$work/man-routes"
differ "$work/routes" "$work/man-routes" "is served but not in $man"
differ "$work/man-routes" "$work/routes" "is in $man but not served"
env_of --exclude='pcrs*' --exclude='node*' --exclude='tool*' "$tree/src" >"$work/env"
named_in "$man" >"$work/man-env"
same_env "$work/env" "$work/man-env" "$man"
pcrs_man=$tree/man/tec-compute-pcrs.1
env_of "$tree"/src/cmd/pcrs*.c >"$work/pcrs-env"
sed -n 's/^\.Ev \([A-Z0-9_]*\).*/\1/p' "$pcrs_man" | sort -u >"$work/pcrs-man-env"
same_env "$work/pcrs-env" "$work/pcrs-man-env" "$pcrs_man"

refuses tec-operator "$binary"

# tec-compute-pcrs: options of --help and its manual, and the same refusal.
pcrs=${TEC_COMPUTE_PCRS:-$(dirname "$binary")/tec-compute-pcrs}
pcrs_man=$tree/man/tec-compute-pcrs.1
"$pcrs" --help >"$work/pcrs-help" 2>"$work/err" || fault "$pcrs --help: exit $? $(cat "$work/err")"
sed -n 's/^  --\([a-z-]*\).*/\1/p' "$work/pcrs-help" | sort >"$work/in-help"
sed -n 's/^\.It Fl -/-/p' "$pcrs_man" | grep -o -- '-[a-z-]\{2,\}' | sed 's/^-//' | sort >"$work/in-man"
[ -s "$work/in-help" ] || fault "$pcrs --help names no option"
differ "$work/in-help" "$work/in-man" "is in tec-compute-pcrs --help but not in $pcrs_man"
differ "$work/in-man" "$work/in-help" "is in $pcrs_man but not in tec-compute-pcrs --help"
refuses tec-compute-pcrs "$pcrs" all

# tec-node, where it is built: options, defaults, environment.
node=${TEC_NODE:-$(dirname "$binary")/tec-node}
node_man=$tree/man/tec-node.1
if [ -x "$node" ]; then
	"$node" --help >"$work/node-help" 2>"$work/err" || fault "$node --help: exit $? $(cat "$work/err")"
	same_options "$work/node-help" "$node_man" tec-node
	sed -n 's/^ *Default: \([^ ]*\)$/Default: \1/p' "$work/node-help" | sort -u >"$work/in-help"
	sed -n 's/^Default: \([^ ]*\)$/Default: \1/p' "$node_man" | sort -u >"$work/in-man"
	differ "$work/in-help" "$work/in-man" "is in tec-node --help but not in $node_man"
	env_of "$tree"/src/cmd/node*.c >"$work/in-help"
	# TSS2_LOG is tpm2-tss's.
	sed -n 's/^\.It Ev //p' "$node_man" | tr ' ,' '\n\n' | grep _ | grep -v '^TSS2_' | sort -u >"$work/in-man"
	same_env "$work/in-help" "$work/in-man" "$node_man"
fi

# tecctl: commands, options and environment, in the program and its manual, and the same refusal.
tecctl=${TECCTL:-$(dirname "$binary")/tecctl}
tecctl_man=$tree/man/tecctl.1
"$tecctl" --help >"$work/tool-help" 2>"$work/err" || fault "$tecctl --help: exit $? $(cat "$work/err")"
same_options "$work/tool-help" "$tecctl_man" tecctl
sed -n 's/^  \([a-z][a-z ]*[a-z]\).*/\1/p' "$work/tool-help" | sort >"$work/in-help"
sed -n 's/^\.It Cm \([a-z ]*[a-z]\).*/\1/p' "$tecctl_man" | sort >"$work/in-man"
differ "$work/in-help" "$work/in-man" "is a command of tecctl but not in $tecctl_man"
differ "$work/in-man" "$work/in-help" "is a command in $tecctl_man but not of tecctl"
same_defaults "$work/tool-help" "$tecctl_man"
env_of "$tree"/src/cmd/tool*.c "$tree/src/net/httpc_proxy.c" >"$work/tool-env"
named_in "$tecctl_man" >"$work/tool-man-env"
same_env "$work/tool-env" "$work/tool-man-env" "$tecctl_man"
refuses tecctl "$tecctl" status

# The manuals format without a complaint. Left out: pages that only name another one.
pages=$(grep -L '^\.so ' "$tree"/man/*.[1-8])
if command -v mandoc >/dev/null; then
	checks=$((checks + 1))
	# shellcheck disable=SC2086
	mandoc -Tlint -W warning $pages >"$work/lint" || { cat "$work/lint"; fault "man: see above"; }
elif command -v groff >/dev/null; then
	checks=$((checks + 1))
	# shellcheck disable=SC2086
	groff -mandoc -ww -z -Tascii $pages >"$work/lint" 2>&1 || echo "groff: exit $?" >>"$work/lint"
	! [ -s "$work/lint" ] || { cat "$work/lint"; fault "man: see above"; }
fi

echo "check-config: $checks comparisons, $faults faults"
[ $faults -eq 0 ]
