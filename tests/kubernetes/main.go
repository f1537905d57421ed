// SPDX-License-Identifier: MIT

// tec-test-kube is a real Kubernetes control plane (and kubectl) in one static binary, for the
// end-to-end tests: no container engine, no downloads but Go modules. Each sub-command is the
// upstream main() with its own flags; only etcd is wrapped by hand, because etcd's own main is
// an internal package. One binary instead of four because the four share nearly all their code:
// linking it once is what keeps the build at minutes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

var commands = map[string]func(args []string) int{
	"etcd":               runEtcd,
	"apiserver":          cobraMain(apiserver.NewAPIServerCommand),
	"controller-manager": cobraMain(controllermanager.NewControllerManagerCommand),
	"kubectl":            runKubectl,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr,
			"usage: tec-test-kube etcd|apiserver|controller-manager|kubectl [flags]")
		os.Exit(2)
	}
	name := os.Args[1]
	// Cobra and klog look at os.Args[0] and os.Args[1:] themselves.
	os.Args = append([]string{filepath.Join(filepath.Dir(os.Args[0]), name)}, os.Args[2:]...)
	os.Exit(commands[name](os.Args[1:]))
}

// cobraMain makes the command only when it is asked for: making one registers flags globally.
func cobraMain(newCommand func() *cobra.Command) func([]string) int {
	return func(args []string) int {
		cmd := newCommand()
		cmd.SetArgs(args)
		return cli.Run(cmd)
	}
}

func runKubectl(_ []string) int {
	// Not cli.Run: kubectl prints its errors without a klog header.
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func urls(list string) ([]url.URL, error) {
	var out []url.URL
	for _, s := range strings.Split(list, ",") {
		u, err := url.Parse(s)
		if err != nil {
			return nil, err
		}
		if u.Scheme == "" || u.Host == "" {
			return nil, fmt.Errorf("%q is no URL", s)
		}
		out = append(out, *u)
	}
	return out, nil
}

// runEtcd takes the few flags the harness needs, spelled as etcd spells them, so that a real etcd
// (from $KUBEBUILDER_ASSETS) can take its place with the same command line.
func runEtcd(args []string) int {
	cfg, err := etcdConfig(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 2
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
	defer e.Close()
	select {
	case <-stop:
		return 0
	case err := <-e.Err():
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
}

func etcdConfig(args []string) (*embed.Config, error) {
	cfg := embed.NewConfig()
	fs := flag.NewFlagSet("etcd", flag.ContinueOnError)
	fs.StringVar(&cfg.Dir, "data-dir", "", "where the data lives")
	fs.BoolVar(&cfg.UnsafeNoFsync, "unsafe-no-fsync", false, "do not wait for the disk")
	fs.StringVar(&cfg.LogLevel, "log-level", "warn", "debug, info, warn, error")
	fs.Int64Var(&cfg.QuotaBackendBytes, "quota-backend-bytes", 0, "0: etcd's default, 2 GiB")
	client := fs.String("listen-client-urls", "http://127.0.0.1:2379", "")
	adClient := fs.String("advertise-client-urls", "", "default: what is listened on")
	peer := fs.String("listen-peer-urls", "http://127.0.0.1:2380", "")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if cfg.Dir == "" || fs.NArg() != 0 {
		return nil, errors.New("--data-dir is required and there are no arguments")
	}
	if *adClient == "" {
		*adClient = *client
	}
	var errs [3]error
	cfg.ListenClientUrls, errs[0] = urls(*client)
	cfg.AdvertiseClientUrls, errs[1] = urls(*adClient)
	cfg.ListenPeerUrls, errs[2] = urls(*peer)
	// One member only: its peer address is never dialled, but must agree with the cluster map.
	cfg.AdvertisePeerUrls = cfg.ListenPeerUrls
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.LogOutputs = []string{"stderr"}
	return cfg, errors.Join(errs[:]...)
}
