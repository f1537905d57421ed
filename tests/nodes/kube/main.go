// SPDX-License-Identifier: MIT

// tec-test-node is what a node and its scheduler run, in one static binary: kubelet, kube-proxy and
// kube-scheduler of the same Kubernetes as tests/kubernetes, and kustomize for who installs something. A binary of its own, so that the demo and the usual
// tests, which have no nodes, do not pay for its build.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	kustomize "sigs.k8s.io/kustomize/kustomize/v5/commands"
)

var commands = map[string]func() *cobra.Command{
	"kubelet":   func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"proxy":     proxy.NewProxyCommand,
	"scheduler": func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	// kubectl has kustomize's build, but not its edit.
	"kustomize": kustomize.NewDefaultCommand,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: tec-test-node kubelet|proxy|scheduler|kustomize [flags]")
		os.Exit(2)
	}
	name := os.Args[1]
	// Cobra and klog look at os.Args[0] and os.Args[1:] themselves.
	os.Args = append([]string{filepath.Join(filepath.Dir(os.Args[0]), name)}, os.Args[2:]...)
	command := commands[name]()
	command.SetArgs(os.Args[1:])
	os.Exit(cli.Run(command))
}
