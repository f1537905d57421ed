// SPDX-License-Identifier: MIT

// tec-test-ignition says whether the Ignition config on standard input is a valid spec 3.6.0 one,
// as the node's own Ignition would: same parser, same verdict. Debian's ignition stops at 3.3, and
// what the register server answers by default is 3.6.0.
package main

import (
	"fmt"
	"io"
	"os"

	v3_6 "github.com/coreos/ignition/v2/config/v3_6"
)

func main() {
	raw, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stdin:", err)
		os.Exit(2)
	}
	// ParseCompatibleVersion takes any 3.x up to 3.6.0: what a node with a 3.6 Ignition does.
	_, report, err := v3_6.ParseCompatibleVersion(raw)
	fmt.Print(report.String())
	if err != nil {
		fmt.Fprintln(os.Stderr, "invalid:", err)
		os.Exit(1)
	}
	if report.IsFatal() {
		fmt.Fprintln(os.Stderr, "invalid: the report above has a fatal entry")
		os.Exit(1)
	}
}
