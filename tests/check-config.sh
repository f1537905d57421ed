#!/bin/sh
# SPDX-License-Identifier: MIT
# The program, its manual and its sample configuration say the same: options, defaults, endpoints, environment.
# Usage: check-config.sh [BINARY [TREE]]; make check sets TEC_OPERATOR and TOP_SRCDIR instead.
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

"$binary" --help >"$work/help" 2>"$work/err" || fault "$binary --help: exit $? $(cat "$work/err")"
"$binary" --print-config >"$work/print" 2>"$work/err" || fault "$binary --print-config: exit $? $(cat "$work/err")"

# Options.
sed -n 's/^  --\([a-z-]*\).*/\1/p' "$work/help" | sort >"$work/in-help"
sed -n 's/^\.It Fl -\([a-z-]*\).*/\1/p' "$man" | sort >"$work/in-man"
sed -n 's/^#\([a-z-]*\) = .*/\1/p' "$sample" | sort >"$work/in-sample"
[ -s "$work/in-help" ] || fault "--help names no option"
differ "$work/in-help" "$work/in-man" "is in --help but not in $man"
differ "$work/in-man" "$work/in-help" "is in $man but not in --help"
differ "$work/in-sample" "$work/in-help" "is in $sample but not in --help"

# The sample is what the program prints, so every option that may stand in a file is in it, with its default.
checks=$((checks + 1))
cmp -s "$work/print" "$sample" || fault "$sample is not what --print-config prints; next step: tec-operator --print-config >etc/tec-operator.conf"

# Defaults: "Default: X" behind an option in --help stands behind the same option in the manual.
awk '/^  --/ { sub(/^  --/, ""); sub(/[^a-z-].*/, ""); name = $0 }
	/^ +Default: [^ ]+$/ { print name, $2 }' "$work/help" >"$work/defaults"
while read -r name value; do
	checks=$((checks + 1))
	awk -v name="$name" -v value="$value" '
		/^\.(It|El|S[hs])/ { on = $0 ~ ("^\\.It Fl -" name "( |$)") }
		on && /^Default: / && $2 == value { found = 1 }
		END { exit !found }' "$man" || fault "--$name: $man does not say \"Default: $value\""
done <"$work/defaults"

# Endpoints, from the route tables; environment, from getenv.
sed -n 's/.*\.path = "\([^"]*\)".*/\1/p' "$tree"/src/srv/*.c | sort -u >"$work/routes"
[ -s "$work/routes" ] || fault "no route found in src/srv"
tr ' ' '\n' <"$man" | sed -n 's/^\(\/[a-z][a-z-]*\)$/\1/p' | sort -u >"$work/man-routes"
differ "$work/routes" "$work/man-routes" "is served but not in $man"
differ "$work/man-routes" "$work/routes" "is in $man but not served"
env_of() { grep -rhoE '(getenv|env_or)\("[A-Z0-9_]+"' "$@" | sed 's/.*("//; s/"//' | sort -u; }
env_of --exclude='pcrs*' "$tree/src" >"$work/env"
sed -n 's/^\.It Ev //p' "$man" | sed 's/ , Ev /\n/g' | sort -u >"$work/man-env"
differ "$work/env" "$work/man-env" "is read from the environment but not in $man"
differ "$work/man-env" "$work/env" "is in $man but not read from the environment"
pcrs_man=$tree/man/tec-compute-pcrs.1
env_of "$tree"/src/cmd/pcrs*.c >"$work/pcrs-env"
sed -n 's/^\.Ev \([A-Z0-9_]*\).*/\1/p' "$pcrs_man" | sort -u >"$work/pcrs-man-env"
differ "$work/pcrs-env" "$work/pcrs-man-env" "is read from the environment but not in $pcrs_man"
differ "$work/pcrs-man-env" "$work/pcrs-env" "is in $pcrs_man but not read from the environment"

# What is wrong is named, on standard error, with exit 2.
checks=$((checks + 1))
rc=0
"$binary" --no-such-option >/dev/null 2>"$work/err" || rc=$?
if [ $rc -ne 2 ] || ! grep -q -e --no-such-option "$work/err"; then
	fault "an unknown option ends with $rc: $(cat "$work/err")"
fi

# tec-compute-pcrs: options of --help and its manual, and the same refusal.
pcrs=${TEC_COMPUTE_PCRS:-$(dirname "$binary")/tec-compute-pcrs}
pcrs_man=$tree/man/tec-compute-pcrs.1
"$pcrs" --help >"$work/pcrs-help" 2>"$work/err" || fault "$pcrs --help: exit $? $(cat "$work/err")"
sed -n 's/^  --\([a-z-]*\).*/\1/p' "$work/pcrs-help" | sort >"$work/in-help"
sed -n 's/^\.It Fl -/-/p' "$pcrs_man" | grep -o -- '-[a-z-]\{2,\}' | sed 's/^-//' | sort >"$work/in-man"
[ -s "$work/in-help" ] || fault "$pcrs --help names no option"
differ "$work/in-help" "$work/in-man" "is in tec-compute-pcrs --help but not in $pcrs_man"
differ "$work/in-man" "$work/in-help" "is in $pcrs_man but not in tec-compute-pcrs --help"
checks=$((checks + 1))
rc=0
"$pcrs" all --no-such-option >/dev/null 2>"$work/err" || rc=$?
if [ $rc -ne 2 ] || ! grep -q -e --no-such-option "$work/err"; then
	fault "tec-compute-pcrs: an unknown option ends with $rc: $(cat "$work/err")"
fi

# The manuals format without a complaint.
if command -v mandoc >/dev/null; then
	checks=$((checks + 1))
	mandoc -Tlint -W warning "$man" "$pcrs_man" >"$work/lint" || { cat "$work/lint"; fault "$man: see above"; }
elif command -v groff >/dev/null; then
	checks=$((checks + 1))
	groff -mandoc -ww -z -Tascii "$man" "$pcrs_man" >"$work/lint" 2>&1 || echo "groff: exit $?" >>"$work/lint"
	! [ -s "$work/lint" ] || { cat "$work/lint"; fault "$man: see above"; }
fi

echo "check-config: $checks comparisons, $faults faults"
[ $faults -eq 0 ]
