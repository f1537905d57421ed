// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"n": name}}
}

func managers(m metav1.Object) string {
	var all []string
	for _, f := range m.GetManagedFields() {
		all = append(all, fmt.Sprintf("%s/%s/%s%s", f.Manager, f.Operation, f.APIVersion, f.Subresource))
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

// typedRound: the same through protobuf, which generated clients prefer, and through JSON.
func typedRound(ctx context.Context, w *world) error {
	asJSON := rest.CopyConfig(w.config)
	asJSON.ContentType = runtime.ContentTypeJSON
	plain, err := kubernetes.NewForConfig(asJSON)
	if err != nil {
		return err
	}
	for _, client := range []struct {
		name string
		c    *kubernetes.Clientset
	}{{"protobuf", w.typed}, {"json", plain}} {
		maps := client.c.CoreV1().ConfigMaps(w.ns)
		o := configMap("round-"+client.name, map[string]string{"a": "b"})
		o.BinaryData = map[string][]byte{"k": {0, 1, 255}}
		made, err := maps.Create(ctx, o, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		w.say("%s: %q made with %v %v %v by %s", client.name, made.Name, made.Labels, made.Data, made.BinaryData, managers(made))
		made.Data["more"] = "ü\u0000"[:2]
		made.Immutable = new(bool)
		changed, err := maps.Update(ctx, made, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		w.say("%s: changed to %q, immutable %v, another version %v, the same uid %v", client.name, changed.Data,
			*changed.Immutable, changed.ResourceVersion != made.ResourceVersion, changed.UID == made.UID)
		same, err := maps.Update(ctx, changed, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		w.say("%s: nothing changed, the same version %v", client.name, same.ResourceVersion == changed.ResourceVersion)
		_, err = maps.Create(ctx, configMap("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		w.say("%s: dry run: %s", client.name, told(err))
		_, err = maps.Get(ctx, "dry", metav1.GetOptions{})
		w.say("%s: after it: %s", client.name, told(err))
		named, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		w.say("%s: generated %q and %d letters", client.name, named.Name[:5], len(named.Name)-5)
		uid := types.UID("3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f")
		err = maps.Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		w.say("%s: deletion of another one: %v", client.name, apierrors.IsConflict(err))
		if err := maps.Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}}); err != nil {
			return err
		}
		_, err = maps.Get(ctx, o.Name, metav1.GetOptions{})
		w.say("%s: deleted: %v", client.name, apierrors.IsNotFound(err))
	}
	secret, err := w.typed.CoreV1().Secrets(w.ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Data: map[string][]byte{"a": []byte("x")}, StringData: map[string]string{"b": "y"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	w.say("secret: %s %q %q", secret.Type, secret.Data["a"], secret.Data["b"])
	return nil
}

func causes(err error) []string {
	var s apierrors.APIStatus
	var all []string
	if errors.As(err, &s) && s.Status().Details != nil {
		for _, c := range s.Status().Details.Causes {
			all = append(all, fmt.Sprintf("%s %s %q", c.Type, c.Field, c.Message))
		}
	}
	sort.Strings(all)
	return all
}

func typedErrors(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.ns)
	if _, err := maps.Create(ctx, configMap("errors", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	_, again := maps.Create(ctx, configMap("errors", nil), metav1.CreateOptions{})
	_, absent := maps.Get(ctx, "absent", metav1.GetOptions{})
	_, name := maps.Create(ctx, configMap("Not_A_Name", nil), metav1.CreateOptions{})
	_, nowhere := w.typed.CoreV1().ConfigMaps("nowhere").Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	_, kind := w.dynamic.Resource(machines.GroupVersion().WithResource("nothings")).Namespace(w.ns).List(ctx, metav1.ListOptions{})
	_, invalid := w.dynamic.Resource(machines).Namespace(w.ns).Create(ctx, machine("bad", "NOT"), metav1.CreateOptions{})
	old := configMap("errors", nil)
	old.ResourceVersion = "1"
	_, conflict := maps.Update(ctx, old, metav1.UpdateOptions{})
	big := configMap("big", nil)
	big.Data["x"] = strings.Repeat("x", 1<<20)
	_, large := maps.Create(ctx, big, metav1.CreateOptions{})
	for _, e := range []struct {
		what string
		err  error
	}{{"again", again}, {"absent", absent}, {"name", name}, {"nowhere", nowhere}, {"kind", kind}, {"invalid", invalid},
		{"conflict", conflict}, {"large", large}} {
		w.say("%s: %s: %s %v", e.what, apierrors.ReasonForError(e.err), told(e.err), causes(e.err))
	}
	return nil
}

// retryOnConflict: eight writers of one counter lose nothing.
func retryOnConflict(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.ns)
	if _, err := maps.Create(ctx, configMap("counter", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	const writers, times = 8, 10
	again := retry.DefaultBackoff
	again.Steps = 1000
	var all sync.WaitGroup
	errs := make(chan error, writers)
	for range writers {
		all.Add(1)
		go func() {
			defer all.Done()
			for range times {
				err := retry.RetryOnConflict(again, func() error {
					o, err := maps.Get(ctx, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					var n int
					_, _ = fmt.Sscan(o.Data["count"], &n) // 0 before the first
					o.Data["count"] = fmt.Sprint(n + 1)
					_, err = maps.Update(ctx, o, metav1.UpdateOptions{})
					return err
				})
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	o, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("%d writers, %d times each: %s", writers, times, o.Data["count"])
	return nil
}

func selectors(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.ns)
	for i, l := range []map[string]string{{"tier": "a", "x": "1"}, {"tier": "b"}, {"tier": "a"}} {
		if _, err := maps.Create(ctx, configMap(fmt.Sprintf("sel-%d", i), l), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, o := range []metav1.ListOptions{{LabelSelector: "tier=a"}, {LabelSelector: "tier in (a,b),!x"},
		{LabelSelector: "tier,tier notin (b)"}, {LabelSelector: "tier!=a,tier"}, {FieldSelector: "metadata.name=sel-1"},
		{LabelSelector: "tier", FieldSelector: "metadata.name!=sel-1"}, {LabelSelector: "tier=a=b"}, {FieldSelector: "data.x=1"},
		{FieldSelector: "metadata.namespace=" + w.ns, LabelSelector: "tier"}} {
		list, err := maps.List(ctx, o)
		w.say("labels %q fields %q: %v, %s", o.LabelSelector, o.FieldSelector, names(list), told(err))
	}
	secrets := w.typed.CoreV1().Secrets(w.ns)
	for name, kind := range map[string]corev1.SecretType{"sel-a": "example.org/a", "sel-b": "example.org/b"} {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind}
		if _, err := secrets.Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	list, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=example.org/b"})
	if err != nil {
		return err
	}
	w.say("secrets of a type: %d, %s", len(list.Items), list.Items[0].Name)
	return nil
}

func names(list *corev1.ConfigMapList) []string {
	all := []string{}
	if list != nil {
		for _, o := range list.Items {
			all = append(all, o.Name)
		}
	}
	sort.Strings(all)
	return all
}

func paging(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.ns)
	const total = 25
	label := map[string]string{"paged": "yes"}
	for i := range total {
		if _, err := maps.Create(ctx, configMap(fmt.Sprintf("page-%02d", i), label), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	o := metav1.ListOptions{Limit: 10, FieldSelector: "metadata.name!=counter"}
	first := ""
	for n := 0; n == 0 || o.Continue != ""; n++ {
		list, err := maps.List(ctx, o)
		if err != nil {
			return err
		}
		if n == 0 {
			first = list.ResourceVersion
			// What comes between two pages is not in the second one.
			if _, err := maps.Create(ctx, configMap("page-99", label), metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		w.say("page %d: at most 10: %v, of the first version %v, more %v, a count with a selector %v", n, len(list.Items) <= 10,
			list.ResourceVersion == first, list.Continue != "", list.RemainingItemCount != nil)
		for _, i := range list.Items {
			if i.Name == "page-99" {
				return errors.New("a page shows what came later")
			}
		}
		o.Continue = list.Continue
	}
	list, err := w.typed.CoreV1().Secrets(w.ns).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w.say("one secret, %d more", *list.RemainingItemCount)
	seen := 0
	p := pager.New(pager.SimplePageFunc(func(opts metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, opts)
	}))
	p.PageSize = 4
	err = p.EachListItem(ctx, metav1.ListOptions{LabelSelector: "paged=yes"}, func(runtime.Object) error {
		seen++
		return nil
	})
	w.say("pager of client-go: %d, %s", seen, told(err))
	_, err = maps.List(ctx, metav1.ListOptions{Limit: 10, Continue: "no token"})
	w.say("no token: %s", apierrors.ReasonForError(err))
	_, err = maps.List(ctx, metav1.ListOptions{ResourceVersion: first, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 2})
	w.say("exact: %s", told(err))
	_, err = maps.List(ctx, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	w.say("exact without a version: %s", told(err))
	return nil
}

func deleteCollection(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.ns)
	err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "paged=yes"})
	if err != nil {
		return err
	}
	left, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "paged=yes"})
	if err != nil {
		return err
	}
	others, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "tier"})
	if err != nil {
		return err
	}
	w.say("%d are left, of others %d", len(left.Items), len(others.Items))
	return nil
}

func machine(name, id string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": machines.GroupVersion().String(), "kind": "Machine",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"id": id}}}
}

func machineID(n int) string { return fmt.Sprintf("3f1c2b9a-6d0e-4c53-9a7b-2f8e5d10%04d", n) }

func ready(o *unstructured.Unstructured, reason string) {
	o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True",
		"reason": reason, "message": "It is.", "lastTransitionTime": "2026-01-02T03:04:05Z"}}}
}
