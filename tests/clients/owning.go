// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"fmt"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

var everything = labels.Everything()

// discoveryAll: what programs look up before they begin.
func discoveryAll(_ context.Context, w *world) error {
	d := memory.NewMemCacheClient(w.typed.Discovery())
	v, err := w.typed.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	w.say("Kubernetes %s.%s", v.Major, v.Minor)
	list, err := d.ServerResourcesForGroupVersion(machines.GroupVersion().String())
	if err != nil {
		return err
	}
	var all []string
	for _, r := range list.APIResources {
		all = append(all, fmt.Sprintf("%s %s %v %v %v", r.Name, r.Kind, r.Namespaced, r.Verbs, r.ShortNames))
	}
	sort.Strings(all)
	for _, line := range all {
		w.say("%s", line)
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(d), d, nil)
	for _, name := range []string{"mach", "machine", "cm", "deploy", "netpol", "pdb"} {
		gvr, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: name})
		w.say("%s is %s, %s", name, gvr.String(), told(err))
	}
	m, err := mapper.RESTMapping(schema.GroupKind{Group: machines.Group, Kind: "Machine"})
	if err != nil {
		return err
	}
	w.say("a Machine is of %s, in a %s", m.Resource.Resource, m.Scope.Name())
	paths, err := w.typed.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	for _, p := range []string{"api/v1", "apis/apps/v1", "apis/" + machines.GroupVersion().String()} {
		doc, err := paths[p].Schema("application/json")
		w.say("%s: a document %v, %s", p, len(doc) > 0, told(err))
	}
	on, err := discovery.IsResourceEnabled(w.typed.Discovery(), corev1.SchemeGroupVersion.WithResource("events"))
	w.say("events: %v, %s", on, told(err))
	return nil
}

func finalizers(ctx context.Context, w *world) error {
	c := w.dynamic.Resource(machines).Namespace(w.ns)
	o := machine("held", machineID(30))
	o.SetFinalizers([]string{"example.org/held"})
	made, err := c.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	watching, err := c.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=held", ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer watching.Stop()
	if err := c.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
		return err
	}
	w.say("%s", shown(<-watching.ResultChan()))
	held, err := c.Get(ctx, "held", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("being deleted: %v, grace %v, held by %v", held.GetDeletionTimestamp() != nil, *held.GetDeletionGracePeriodSeconds(), held.GetFinalizers())
	held.SetFinalizers([]string{"example.org/held", "example.org/more"})
	_, err = c.Update(ctx, held, metav1.UpdateOptions{})
	w.say("one more: %s", told(err))
	w.say("deleted again: %s", told(c.Delete(ctx, "held", metav1.DeleteOptions{})))
	held.SetFinalizers(nil)
	if _, err := c.Update(ctx, held, metav1.UpdateOptions{}); err != nil {
		return err
	}
	w.say("%s", shown(<-watching.ResultChan()))
	_, err = c.Get(ctx, "held", metav1.GetOptions{})
	w.say("gone: %v", apierrors.IsNotFound(err))
	return nil
}

func owned(name string, owner *corev1.ConfigMap, block bool) *corev1.ConfigMap {
	o := configMap(name, map[string]string{"owned": owner.Name})
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block}}
	return o
}

// garbage: what becomes of what an object owns, in each of the three ways.
func garbage(ctx context.Context, w *world) error {
	c := w.typed.CoreV1().ConfigMaps(w.ns)
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		owner, err := c.Create(ctx, configMap("owner-"+map[metav1.DeletionPropagation]string{"Background": "b", "Foreground": "f", "Orphan": "o"}[how], nil), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		child, err := c.Create(ctx, owned(owner.Name+"-child", owner, true), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		grandchild, err := c.Create(ctx, owned(owner.Name+"-grandchild", child, true), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := c.Delete(ctx, owner.Name, metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
			return err
		}
		err = waitFor(ctx, "end of the owner", func(ctx context.Context) (bool, error) {
			_, err := c.Get(ctx, owner.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return err
		}
		gone := func(name string) func(context.Context) (bool, error) {
			return func(ctx context.Context) (bool, error) {
				_, err := c.Get(ctx, name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			}
		}
		if how == metav1.DeletePropagationOrphan {
			o, err := c.Get(ctx, child.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			w.say("%s: the child stays, owned by %d", how, len(o.OwnerReferences))
			continue
		}
		if how == metav1.DeletePropagationForeground {
			now, err := gone(child.Name)(ctx)
			if err != nil {
				return err
			}
			w.say("%s: the child went first: %v", how, now)
		}
		for _, name := range []string{child.Name, grandchild.Name} {
			if err := waitFor(ctx, "end of "+name, gone(name)); err != nil {
				return err
			}
		}
		w.say("%s: all are gone", how)
	}
	// An owner that never was.
	lost := owned("lost", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "never", UID: "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f"}}, false)
	if _, err := c.Create(ctx, lost, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := waitFor(ctx, "end of what nobody owns", func(ctx context.Context) (bool, error) {
		_, err := c.Get(ctx, "lost", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	w.say("of an owner that never was: %s", told(err))
	return nil
}

func namespaceGoes(ctx context.Context, w *world) error {
	c := w.typed.CoreV1().Namespaces()
	o := configMap("last", nil)
	o.Finalizers = []string{"example.org/held"}
	maps := w.typed.CoreV1().ConfigMaps(w.ns)
	if _, err := maps.Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := c.Delete(ctx, w.ns, metav1.DeleteOptions{}); err != nil {
		return err
	}
	ns, err := c.Get(ctx, w.ns, metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("%s, held by %v", ns.Status.Phase, ns.Spec.Finalizers)
	_, err = maps.Create(ctx, configMap("late", nil), metav1.CreateOptions{})
	w.say("%s %v %v", told(err), apierrors.IsForbidden(err), causes(err))
	err = waitFor(ctx, "deletion of what is in it", func(ctx context.Context) (bool, error) {
		list, err := maps.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].DeletionTimestamp != nil, err
	})
	if err != nil {
		return err
	}
	err = waitFor(ctx, "end of the namespace", func(ctx context.Context) (bool, error) {
		if o, err := maps.Get(ctx, "last", metav1.GetOptions{}); err == nil && slices.Contains(o.Finalizers, "example.org/held") {
			o.Finalizers = nil
			if _, err := maps.Update(ctx, o, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
				return false, err
			}
		}
		_, err := c.Get(ctx, w.ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	w.say("and gone: %s", told(err))
	return nil
}
