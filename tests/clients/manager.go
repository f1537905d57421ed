// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Machine as a program of its own would declare it.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              MachineSpec   `json:"spec"`
	Status            MachineStatus `json:"status,omitempty"`
}

type MachineSpec struct {
	ID string `json:"id"`
}

type MachineStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

func (m *Machine) copy() *Machine {
	c := &Machine{TypeMeta: m.TypeMeta, Spec: m.Spec}
	m.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	for _, i := range m.Status.Conditions {
		c.Status.Conditions = append(c.Status.Conditions, *i.DeepCopy())
	}
	return c
}

func (m *Machine) DeepCopyObject() runtime.Object { return m.copy() }

func (l *MachineList) DeepCopyObject() runtime.Object {
	c := &MachineList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].copy())
	}
	return c
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	gv := machines.GroupVersion()
	s.AddKnownTypes(gv, &Machine{}, &MachineList{})
	metav1.AddToGroupVersion(s, gv)
	return s, nil
}

const held = "example.org/reconciled"

// reconciler keeps a ConfigMap for each Machine of a label, as operators do.
type reconciler struct {
	client.Client
	told *seen
	once sync.Map
}

func (r *reconciler) first(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if _, was := r.once.LoadOrStore(line, true); !was {
		r.told.add("%s", line)
	}
}

func (r *reconciler) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	m := &Machine{}
	if err := r.Get(ctx, q.NamespacedName, m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if m.Labels["reconciled"] != "yes" {
		return ctrl.Result{}, nil
	}
	if !m.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(m, held) {
			r.first("%s is being deleted", m.Name)
			return ctrl.Result{}, r.Update(ctx, m)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(m, held) {
		r.first("%s gets its finalizer", m.Name)
		return ctrl.Result{}, r.Update(ctx, m)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-child"}}
	did, err := controllerutil.CreateOrUpdate(ctx, r, child, func() error {
		child.Data = map[string]string{"id": m.Spec.ID}
		return controllerutil.SetControllerReference(m, child, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if did != controllerutil.OperationResultNone {
		r.told.add("%s: its child is %s", m.Name, did)
	}
	was := m.copy()
	if apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: "Reconciled", Status: metav1.ConditionTrue, Reason: "Done", Message: "by a test"}) {
		r.first("%s gets its condition", m.Name)
		return ctrl.Result{}, r.Status().Patch(ctx, m, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
	}
	return ctrl.Result{}, nil
}

// managerReconciles: a manager with its cache and its lease, from the birth of a Machine to its end.
func managerReconciles(ctx context.Context, w *world) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(w.config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "tec-test-manager", LeaderElectionNamespace: w.ns, LeaderElectionReleaseOnCancel: true,
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.ns: {}}}})
	if err != nil {
		return err
	}
	lines := &seen{}
	r := &reconciler{Client: m.GetClient(), told: lines}
	err = ctrl.NewControllerManagedBy(m).Named("machines").For(&Machine{}).Owns(&corev1.ConfigMap{}).Complete(r)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	defer stop()
	o := &Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "led", Labels: map[string]string{"reconciled": "yes"}}, Spec: MachineSpec{ID: machineID(40)}}
	c := m.GetClient()
	if err := c.Create(ctx, o); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(o)
	done := func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, o)
		return err == nil && apimeta.IsStatusConditionTrue(o.Status.Conditions, "Reconciled"), client.IgnoreNotFound(err)
	}
	if err := waitFor(ctx, "condition", done); err != nil {
		return fmt.Errorf("%w: %v", err, lines.all())
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "led-child"}}
	if err := c.Delete(ctx, child); err != nil {
		return err
	}
	again := func(context.Context) (bool, error) {
		n := 0
		for _, line := range lines.all() {
			if line == "led: its child is created" {
				n++
			}
		}
		return n == 2, nil
	}
	if err := waitFor(ctx, "child again", again); err != nil {
		return err
	}
	if err := c.Delete(ctx, o); err != nil {
		return err
	}
	err = waitFor(ctx, "end of the Machine and its child", func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(c.Get(ctx, key, o)) && apierrors.IsNotFound(m.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(child), child)), nil
	})
	if err != nil {
		return err
	}
	for _, line := range lines.all() {
		w.say("%s", line)
	}
	stop()
	w.say("it ends: %s", told(<-ended))
	return nil
}

// managerClient: controller-runtime's client without a cache.
func managerClient(ctx context.Context, w *world) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(w.config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	for i := range 3 {
		o := &Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("cr-%d", i), Labels: map[string]string{"cr": "yes"}}, Spec: MachineSpec{ID: machineID(50 + i)}}
		if err := c.Create(ctx, o, client.FieldOwner("cr")); err != nil {
			return err
		}
	}
	list := &MachineList{}
	if err := c.List(ctx, list, client.InNamespace(w.ns), client.MatchingLabels{"cr": "yes"}, client.Limit(2)); err != nil {
		return err
	}
	w.say("%d on the first page, more %v, an item is a %q", len(list.Items), list.Continue != "", list.Items[0].Kind)
	if err := c.List(ctx, list, client.InNamespace(w.ns), client.MatchingFields{"metadata.name": "cr-1"}); err != nil {
		return err
	}
	o := &list.Items[0]
	w.say("by a field: %d, %s", len(list.Items), o.Name)
	was, stale := o.copy(), o.copy()
	o.Annotations = map[string]string{"a": "b"}
	if err := c.Patch(ctx, o, client.MergeFrom(was)); err != nil {
		return err
	}
	changed := stale.copy()
	changed.Annotations = map[string]string{"a": "c"}
	err = c.Patch(ctx, changed, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{}))
	w.say("patch with a lock, too late: %v %s", apierrors.IsConflict(err), told(err))
	apply := coreapply.ConfigMap("cr-applied", w.ns).WithData(map[string]string{"a": "b"})
	if err := c.Apply(ctx, apply, client.FieldOwner("cr")); err != nil {
		return err
	}
	w.say("applied: %v, a version came back %v", apply.Data, apply.ResourceVersion != nil)
	err = c.DeleteAllOf(ctx, &Machine{}, client.InNamespace(w.ns), client.MatchingLabels{"cr": "yes"})
	if err != nil {
		return err
	}
	if err := c.List(ctx, list, client.InNamespace(w.ns), client.MatchingLabels{"cr": "yes"}); err != nil {
		return err
	}
	w.say("after all of them were deleted: %d", len(list.Items))
	gvk, err := c.GroupVersionKindFor(&Machine{})
	if err != nil {
		return err
	}
	named, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind})
	w.say("its mapper: %s, %s", named.Resource.Resource, told(err))
	return nil
}
