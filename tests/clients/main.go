// SPDX-License-Identifier: MIT

// tec-test-clients meets an API server as programs do: through client-go, unmodified. Every
// claim prints lines of what it saw, without names or versions that a server makes up, so that the
// lines of two servers can be compared word for word. A claim that does not hold prints FAILED; the
// others go on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// patience bounds what a busy machine may take for one step; what never comes is still told.
const patience = 90 * time.Second

var machines = schema.GroupVersionResource{
	Group: "trusted-execution-clusters.io", Version: "v1alpha1", Resource: "machines"}

// world is what a claim works with.
type world struct {
	claim   string
	config  *rest.Config
	ns      string
	typed   *kubernetes.Clientset
	dynamic dynamic.Interface
}

func (w *world) say(format string, args ...any) {
	fmt.Printf("%s: %s\n", w.claim, fmt.Sprintf(format, args...))
}

// told is an error without what differs between two servers: times, ids, versions.
func told(err error) string {
	if err == nil {
		return "no error"
	}
	text := err.Error()
	for _, m := range []struct{ pattern, with string }{
		{`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`, "UID"},
		{`127\.0\.0\.1:\d+`, "SERVER"},
	} {
		text = regexp.MustCompile(m.pattern).ReplaceAllString(text, m.with)
	}
	return text
}

type claim struct {
	name string
	hold func(context.Context, *world) error
}

func newWorld(kubeconfig, ns string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "tec-test-clients"
	config.QPS, config.Burst = 500, 1000 // waiting for one's own limit shows nothing
	w := &world{config: config, ns: ns}
	if w.typed, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	w.dynamic, err = dynamic.NewForConfig(config)
	return w, err
}

// waitFor asks until the answer is yes.
func waitFor(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	end := time.Now().Add(patience)
	for {
		ok, err := done(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s still no %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func run(kubeconfig, ns, only string) error {
	w, err := newWorld(kubeconfig, ns)
	if err != nil {
		return err
	}
	ctx := context.Background()
	lost := 0
	for _, c := range claims {
		if only != "" && !strings.Contains(c.name, only) {
			continue
		}
		w.claim = c.name
		held, cancel := context.WithTimeout(ctx, 2*patience)
		start := time.Now()
		if err := c.hold(held, w); err != nil {
			w.say("FAILED: %s", told(err))
			lost++
		}
		cancel()
		fmt.Fprintf(os.Stderr, "%s: %d ms\n", c.name, time.Since(start).Milliseconds())
	}
	if lost > 0 {
		return fmt.Errorf("%d claims do not hold", lost)
	}
	return nil
}

func main() {
	flags := flag.NewFlagSet("tec-test-clients", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "the server")
	ns := flags.String("namespace", "clients", "is there already")
	only := flags.String("claim", "", "only those whose name contains this")
	verbose := flags.Bool("verbose", false, "what the libraries log, on standard error")
	_ = flags.Parse(os.Args[1:]) // ends the program on an error
	if !*verbose {
		klog.SetLogger(klog.Logger{}) // a cut is meant to make noise
	}
	var err error
	switch flags.Arg(0) {
	case "":
		err = run(*kubeconfig, *ns, *only)
	case "protobuf-fields":
		err = printFields(os.Stdout)
	case "protobuf-samples":
		err = writeSamples(flags.Arg(1))
	default:
		err = errors.New("usage: tec-test-clients [flags] [protobuf-fields | protobuf-samples DIR]")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tec-test-clients: error:", err)
		os.Exit(1)
	}
}

// claims in the order they are looked at.
var claims = []claim{
	{"typed", typedRound},
	{"errors", typedErrors},
	{"conflict", retryOnConflict},
	{"selectors", selectors},
	{"paging", paging},
	{"collection", deleteCollection},
	{"informer", informer},
	{"informer-cut", informerCut},
	{"watch-list", watchList},
	{"watch-initial", watchInitial},
	{"watch-bookmark", watchBookmark},
	{"watch-end", watchEnd},
	{"retry-watch", retryWatch},
	{"metadata", metadataOnly},
}
