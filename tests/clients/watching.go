// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// seen keeps what handlers were told, in order.
type seen struct {
	mu    sync.Mutex
	lines []string
}

func (s *seen) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// until returns all lines once the last one is there.
func (s *seen) until(ctx context.Context, line string) ([]string, error) {
	err := waitFor(ctx, line, func(context.Context) (bool, error) { return slices.Contains(s.all(), line), nil })
	if err != nil {
		err = fmt.Errorf("%w, but %v", err, s.all())
	}
	return s.all(), err
}

func (s *seen) handlers(resyncs *seen) cache.ResourceEventHandlerDetailedFuncs {
	name := func(o any) string {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		m, err := meta.Accessor(o)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s%s", m.GetName(), m.GetAnnotations()["n"])
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) { s.add("add %s initial=%v", name(o), initial) },
		UpdateFunc: func(was, is any) {
			a, _ := meta.Accessor(was)
			b, _ := meta.Accessor(is)
			if a.GetResourceVersion() == b.GetResourceVersion() {
				resyncs.add("%s", name(is))
				return
			}
			s.add("update %s", name(is))
		},
		DeleteFunc: func(o any) { s.add("delete %s", name(o)) },
	}
}

// asked counts the requests that a client made.
type asked struct {
	rt http.RoundTripper
	mu sync.Mutex
	n  map[string]int
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	what := strings.ToLower(r.Method)
	if q := r.URL.Query(); q.Get("watch") == "true" || q.Get("watch") == "1" {
		what = "watch"
		if q.Get("sendInitialEvents") == "true" {
			what = "watch-list"
		}
	}
	a.mu.Lock()
	a.n[what]++
	a.mu.Unlock()
	return a.rt.RoundTrip(r)
}

func (a *asked) count(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n[what]
}

func counted(config *rest.Config) (*rest.Config, *asked) {
	a := &asked{n: map[string]int{}}
	c := rest.CopyConfig(config)
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		a.rt = rt
		return a
	})
	return c, a
}

// road is a way to the server that can be cut.
type road struct {
	l     net.Listener
	to    string
	mu    sync.Mutex
	conns []net.Conn
	shut  bool
}

func newRoad(config *rest.Config) (*road, *rest.Config, error) {
	u, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	r := &road{l: l, to: u.Host}
	go r.serve()
	c := rest.CopyConfig(config)
	c.Host = "https://" + l.Addr().String()
	return r, c, nil
}

func (r *road) serve() {
	for {
		in, err := r.l.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		out, err := net.Dial("tcp", r.to)
		if r.shut || err != nil {
			in.Close()
			if err == nil {
				out.Close()
			}
			r.mu.Unlock()
			continue
		}
		r.conns = append(r.conns, in, out)
		r.mu.Unlock()
		pass := func(a, b net.Conn) {
			_, _ = io.Copy(a, b) // a cut is an error, and meant
			a.Close()
			b.Close()
		}
		go pass(in, out)
		go pass(out, in)
	}
}

func (r *road) cut(shut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut = shut
	if shut {
		for _, c := range r.conns {
			c.Close()
		}
		r.conns = nil
	}
}

func (w *world) makeMap(ctx context.Context, name, label string) error {
	_, err := w.typed.CoreV1().ConfigMaps(w.ns).Create(ctx, configMap(name, map[string]string{"watched": label}), metav1.CreateOptions{})
	return err
}

// change makes, changes and deletes one object.
func (w *world) change(ctx context.Context, name, label string) error {
	if err := w.makeMap(ctx, name, label); err != nil {
		return err
	}
	c := w.typed.CoreV1().ConfigMaps(w.ns)
	o, err := c.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	o.Annotations = map[string]string{"n": "+"}
	if _, err := c.Update(ctx, o, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return c.Delete(ctx, name, metav1.DeleteOptions{})
}

func (w *world) factory(config *rest.Config, label string, resync time.Duration) (informers.SharedInformerFactory, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactoryWithOptions(c, resync, informers.WithNamespace(w.ns),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "watched=" + label })), nil
}

func informer(ctx context.Context, w *world) error {
	for _, name := range []string{"i-a", "i-b"} {
		if err := w.makeMap(ctx, name, "i"); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	config, asked := counted(w.config)
	f, err := w.factory(config, "i", time.Second)
	if err != nil {
		return err
	}
	var told, resyncs seen
	maps := f.Core().V1().ConfigMaps()
	if _, err := maps.Informer().AddEventHandler(told.handlers(&resyncs)); err != nil {
		return err
	}
	f.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), maps.Informer().HasSynced) {
		return errors.New("not in step with the server")
	}
	if err := w.change(ctx, "i-c", "i"); err != nil {
		return err
	}
	// An object that no longer is of the selection is a deletion.
	o, err := w.typed.CoreV1().ConfigMaps(w.ns).Get(ctx, "i-b", metav1.GetOptions{})
	if err != nil {
		return err
	}
	o.Labels["watched"] = "no"
	if _, err := w.typed.CoreV1().ConfigMaps(w.ns).Update(ctx, o, metav1.UpdateOptions{}); err != nil {
		return err
	}
	lines, err := told.until(ctx, "delete i-b")
	if err != nil {
		return err
	}
	slices.Sort(lines[:2])
	for _, line := range lines {
		w.say("%s", line)
	}
	if _, err := resyncs.until(ctx, "i-a"); err != nil {
		return err
	}
	left, err := maps.Lister().ConfigMaps(w.ns).List(labels.Everything())
	if err != nil {
		return err
	}
	w.say("resync shows i-a again; the cache holds %d; requests: %d list, %d watch", len(left), asked.count("get"), asked.count("watch"))
	return nil
}

// informerCut: what happens while the way is cut is not lost, and nothing is listed again for it.
func informerCut(ctx context.Context, w *world) error {
	r, config, err := newRoad(w.config)
	if err != nil {
		return err
	}
	defer r.l.Close()
	config, asked := counted(config)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f, err := w.factory(config, "c", 0)
	if err != nil {
		return err
	}
	if err := w.makeMap(ctx, "c-a", "c"); err != nil {
		return err
	}
	var told, resyncs seen
	maps := f.Core().V1().ConfigMaps().Informer()
	if _, err := maps.AddEventHandler(told.handlers(&resyncs)); err != nil {
		return err
	}
	f.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), maps.HasSynced) {
		return errors.New("not in step with the server")
	}
	r.cut(true)
	if err := w.change(ctx, "c-b", "c"); err != nil {
		return err
	}
	if err := w.makeMap(ctx, "c-c", "c"); err != nil {
		return err
	}
	r.cut(false)
	lines, err := told.until(ctx, "add c-c initial=false")
	if err != nil {
		return err
	}
	for _, line := range lines {
		w.say("%s", line)
	}
	w.say("listed %d times, watched again: %v", asked.count("get"), asked.count("watch") > 1)
	return nil
}

type gates struct {
	clientfeatures.Gates
	on clientfeatures.Feature
}

func (g gates) Enabled(f clientfeatures.Feature) bool { return f == g.on || g.Gates.Enabled(f) }

// watchList: the list that comes as a watch, for a built-in kind and for one of a definition.
func watchList(ctx context.Context, w *world) error {
	before := clientfeatures.FeatureGates()
	clientfeatures.ReplaceFeatureGates(gates{before, clientfeatures.WatchListClient})
	defer clientfeatures.ReplaceFeatureGates(before)
	for i := range 3 {
		if err := w.makeMap(ctx, fmt.Sprintf("wl-%d", i), "wl"); err != nil {
			return err
		}
		_, err := w.dynamic.Resource(machines).Namespace(w.ns).Create(ctx, machine(fmt.Sprintf("wl-%d", i), machineID(20+i)), metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	config, asked := counted(w.config)
	f, err := w.factory(config, "wl", 0)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	df := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dyn, 0, w.ns, nil)
	for _, name := range []string{"configmaps", "machines"} {
		i := f.Core().V1().ConfigMaps().Informer()
		if name == "machines" {
			i = df.ForResource(machines).Informer()
		}
		var told, resyncs seen
		if _, err := i.AddEventHandler(told.handlers(&resyncs)); err != nil {
			return err
		}
		before, lists := asked.count("watch-list"), asked.count("get")
		go i.Run(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			return errors.New("not in step with the server")
		}
		w.say("%s: cached %d and more: %v, %d by a list, %d by a watch", name, 3, len(i.GetStore().ListKeys()) >= 3,
			asked.count("get")-lists, asked.count("watch-list")-before)
	}
	return nil
}

// shown is one event of a watch.
func shown(e watch.Event) string {
	if s, ok := e.Object.(*metav1.Status); ok {
		return fmt.Sprintf("%s %s %s", e.Type, s.Reason, s.Message)
	}
	m, err := meta.Accessor(e.Object)
	if err != nil {
		return err.Error()
	}
	note := ""
	if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		note = " of the initial events' end"
	}
	return fmt.Sprintf("%s %s%s %T version %v", e.Type, m.GetName(), note, e.Object, m.GetResourceVersion() != "")
}

func watchInitial(ctx context.Context, w *world) error {
	yes, no, soon := true, false, int64(30)
	maps := w.typed.CoreV1().ConfigMaps(w.ns)
	o := metav1.ListOptions{LabelSelector: "watched=wl", SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, TimeoutSeconds: &soon}
	watching, err := maps.Watch(ctx, o)
	if err != nil {
		return err
	}
	defer watching.Stop()
	for e := range watching.ResultChan() {
		w.say("%s", shown(e))
		if e.Type == watch.Bookmark {
			if err := w.makeMap(ctx, "wl-9", "wl"); err != nil {
				return err
			}
		} else if strings.Contains(shown(e), "wl-9") {
			break
		}
	}
	for _, o := range []metav1.ListOptions{{SendInitialEvents: &yes}, {SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		{ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, {SendInitialEvents: &no}, {ResourceVersion: "abc"}} {
		_, err := maps.Watch(ctx, o)
		w.say("initial %v match %q version %q: %s", o.SendInitialEvents != nil && *o.SendInitialEvents, o.ResourceVersionMatch, o.ResourceVersion, told(err))
	}
	o = metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	_, err = maps.List(ctx, o)
	w.say("a list with initial events: %s", told(err))
	return nil
}

// watchBookmark: a watch that ends says first where the next one may begin.
func watchBookmark(ctx context.Context, w *world) error {
	soon := int64(4)
	list, err := w.typed.CoreV1().ConfigMaps(w.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	watching, err := w.typed.CoreV1().ConfigMaps(w.ns).Watch(ctx, metav1.ListOptions{LabelSelector: "watched=none",
		ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &soon})
	if err != nil {
		return err
	}
	defer watching.Stop()
	if err := w.makeMap(ctx, "unseen", "unseen"); err != nil {
		return err
	}
	e, open := <-watching.ResultChan()
	if !open {
		return errors.New("it ended without a bookmark")
	}
	at := e.Object.(*corev1.ConfigMap).ResourceVersion
	w.say("%s, further than the list: %v", shown(e), at != list.ResourceVersion)
	next, err := w.typed.CoreV1().ConfigMaps(w.ns).Watch(ctx, metav1.ListOptions{ResourceVersion: at, TimeoutSeconds: &soon})
	if err != nil {
		return err
	}
	defer next.Stop()
	if err := w.makeMap(ctx, "after", "unseen"); err != nil {
		return err
	}
	w.say("from there: %s", shown(<-next.ResultChan()))
	return nil
}

func watchEnd(ctx context.Context, w *world) error {
	second := int64(1)
	watching, err := w.typed.CoreV1().ConfigMaps(w.ns).Watch(ctx, metav1.ListOptions{LabelSelector: "watched=none", TimeoutSeconds: &second})
	if err != nil {
		return err
	}
	for e := range watching.ResultChan() {
		w.say("%s", shown(e))
	}
	w.say("ended after its time")
	one, err := w.typed.CoreV1().ConfigMaps(w.ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=c-a"})
	if err != nil {
		return err
	}
	w.say("of one object: %s", shown(<-one.ResultChan()))
	one.Stop()
	_, err = w.dynamic.Resource(machines).Namespace(w.ns).Watch(ctx, metav1.ListOptions{LabelSelector: "a=b=c"})
	w.say("selector: %s", apierrors.ReasonForError(err))
	return nil
}

// retryWatch: client-go's watcher that goes on after a cut shows each event once.
func retryWatch(ctx context.Context, w *world) error {
	r, config, err := newRoad(w.config)
	if err != nil {
		return err
	}
	defer r.l.Close()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	list, err := c.CoreV1().ConfigMaps(w.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	rw, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = "watched=r"
			return c.CoreV1().ConfigMaps(w.ns).Watch(ctx, o)
		}})
	if err != nil {
		return err
	}
	defer rw.Stop()
	for i := range 4 {
		if i > 0 {
			r.cut(true)
		}
		if err := w.change(ctx, fmt.Sprintf("r-%d", i), "r"); err != nil {
			return err
		}
		r.cut(false)
		for range 3 {
			select {
			case e := <-rw.ResultChan():
				w.say("%s", shown(e))
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// metadataOnly: objects without what they are about, of any kind.
func metadataOnly(ctx context.Context, w *world) error {
	c, err := metadata.NewForConfig(w.config)
	if err != nil {
		return err
	}
	for _, r := range []string{"machines", "configmaps"} {
		gvr := machines
		if r == "configmaps" {
			gvr = corev1.SchemeGroupVersion.WithResource(r)
		}
		list, err := c.Resource(gvr).Namespace(w.ns).List(ctx, metav1.ListOptions{LabelSelector: "!watched"})
		if err != nil {
			return err
		}
		one, err := c.Resource(gvr).Namespace(w.ns).Get(ctx, list.Items[0].Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		w.say("%s: %s, %s %s, the same %v", r, list.Items[0].Name, one.Kind, one.APIVersion, one.UID == list.Items[0].UID)
		ctx, stop := context.WithCancel(ctx)
		f := metadatainformer.NewFilteredSharedInformerFactory(c, 0, w.ns, nil)
		i := f.ForResource(gvr).Informer()
		var told, resyncs seen
		if _, err := i.AddEventHandler(told.handlers(&resyncs)); err != nil {
			stop()
			return err
		}
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		_, err = c.Resource(gvr).Namespace(w.ns).Patch(ctx, one.Name, "application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"n":"!"}}}`), metav1.PatchOptions{})
		if err == nil {
			_, err = told.until(ctx, "update "+one.Name+"!")
		}
		stop()
		if err != nil {
			return err
		}
		w.say("%s: its change is seen", r)
	}
	return nil
}
