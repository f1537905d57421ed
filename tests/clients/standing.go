// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolsevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// leaderElection: one of two leads; when it lets go the other does.
func leaderElection(ctx context.Context, w *world) error {
	var told seen
	lead := func(ctx context.Context, who string) (context.CancelFunc, chan struct{}) {
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "led"},
					Client: w.typed.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: who}},
				LeaseDuration: 60 * time.Second, RenewDeadline: 50 * time.Second, RetryPeriod: 200 * time.Millisecond,
				ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { told.add("%s leads", who) },
					OnStoppedLeading: func() { told.add("%s ends", who) },
					OnNewLeader: func(id string) {
						if id != who {
							told.add("%s sees %s", who, id)
						}
					}}})
		}()
		return stop, ended
	}
	stopA, endedA := lead(ctx, "a")
	if _, err := told.until(ctx, "a leads"); err != nil {
		return err
	}
	stopB, endedB := lead(ctx, "b")
	if _, err := told.until(ctx, "b sees a"); err != nil {
		return err
	}
	stopA()
	<-endedA
	lines, err := told.until(ctx, "b leads")
	if err != nil {
		return err
	}
	for _, line := range lines {
		w.say("%s", line)
	}
	l, err := w.typed.CoordinationV1().Leases(w.ns).Get(ctx, "led", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("held by %s for %d s, %d changes, renewed in microseconds %v", *l.Spec.HolderIdentity, *l.Spec.LeaseDurationSeconds,
		*l.Spec.LeaseTransitions, l.Spec.RenewTime.Nanosecond()%1000 == 0)
	stopB()
	<-endedB
	l, err = w.typed.CoordinationV1().Leases(w.ns).Get(ctx, "led", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("and then by %q", *l.Spec.HolderIdentity)
	return nil
}

// events: the library counts what happens again instead of writing it again.
func events(ctx context.Context, w *world) error {
	about, err := w.typed.CoreV1().ConfigMaps(w.ns).Create(ctx, configMap("about", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	about.APIVersion, about.Kind = "v1", "ConfigMap"
	old := record.NewBroadcaster()
	defer old.Shutdown()
	old.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: w.typed.CoreV1().Events(w.ns)})
	recorder := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tec-test"})
	for range 3 {
		recorder.Eventf(about, corev1.EventTypeWarning, "Again", "it is %s", "so")
	}
	recorder.Event(about, corev1.EventTypeNormal, "Once", "and this")
	var list *corev1.EventList
	err = waitFor(ctx, "events", func(ctx context.Context) (bool, error) {
		list, err = w.typed.CoreV1().Events(w.ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=about,source=tec-test"})
		if err != nil {
			return false, err
		}
		total := 0
		for _, e := range list.Items {
			total += int(e.Count)
		}
		return total == 4, nil
	})
	if err != nil {
		return err
	}
	sort.Slice(list.Items, func(i, j int) bool { return list.Items[i].Reason < list.Items[j].Reason })
	for _, e := range list.Items {
		w.say("%s %s %q %d times by %s about %s", e.Type, e.Reason, e.Message, e.Count, e.Source.Component, e.InvolvedObject.Kind)
	}
	return nil
}

// eventsGroup: what is written in the newer group is seen in the older one.
func eventsGroup(ctx context.Context, w *world) error {
	about, err := w.typed.CoreV1().ConfigMaps(w.ns).Create(ctx, configMap("about-group", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	about.APIVersion, about.Kind = "v1", "ConfigMap"
	b := toolsevents.NewBroadcaster(&toolsevents.EventSinkImpl{Interface: w.typed.EventsV1()})
	defer b.Shutdown()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	r := b.NewRecorder(scheme.Scheme, "example.org/tec-test")
	r.Eventf(about, nil, corev1.EventTypeNormal, "Series", "Testing", "note")
	found := func(ctx context.Context, times int32) error {
		return waitFor(ctx, fmt.Sprintf("series of %d", times), func(ctx context.Context) (bool, error) {
			list, err := w.typed.EventsV1().Events(w.ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=Series"})
			if err != nil || len(list.Items) != 1 {
				return false, err
			}
			e := list.Items[0]
			if (times == 1) == (e.Series != nil) {
				return false, nil
			}
			core, err := w.typed.CoreV1().Events(w.ns).Get(ctx, e.Name, metav1.GetOptions{})
			w.say("%s %s %q by %s about %s, a series %v", e.Type, e.Action, e.Note, e.ReportingController, e.Regarding.Kind, e.Series != nil)
			w.say("seen in the core group: %v %q", err == nil, core.Message)
			return true, nil
		})
	}
	if err := found(ctx, 1); err != nil {
		return err
	}
	r.Eventf(about, nil, corev1.EventTypeNormal, "Series", "Testing", "note")
	return found(ctx, 2)
}

// tokens: an account that may read ConfigMaps and nothing else.
func tokens(ctx context.Context, w *world) error {
	_, err := w.typed.CoreV1().ServiceAccounts(w.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = w.typed.RbacV1().Roles(w.ns).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "read"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = w.typed.RbacV1().RoleBindings(w.ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "read"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: w.ns}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	hour := int64(3600)
	t, err := w.typed.CoreV1().ServiceAccounts(w.ns).CreateToken(ctx, "reader",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	left := time.Until(t.Status.ExpirationTimestamp.Time)
	w.say("a token for %d s, of an hour: %v", *t.Spec.ExpirationSeconds, left > 50*time.Minute && left < 61*time.Minute)
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = t.Status.Token
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	me, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	sort.Strings(me.Status.UserInfo.Groups)
	w.say("it is %s of %v", me.Status.UserInfo.Username, me.Status.UserInfo.Groups)
	// A role that was made a moment ago is seen a moment later.
	err = waitFor(ctx, "right to read", func(ctx context.Context) (bool, error) {
		_, err := c.CoreV1().ConfigMaps(w.ns).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	_, write := c.CoreV1().ConfigMaps(w.ns).Create(ctx, configMap("no", nil), metav1.CreateOptions{})
	_, secret := c.CoreV1().Secrets(w.ns).Get(ctx, "s", metav1.GetOptions{})
	_, elsewhere := c.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	_, watching := c.CoreV1().Secrets(w.ns).Watch(ctx, metav1.ListOptions{})
	_, spaces := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	for _, err := range []error{write, secret, elsewhere, watching, spaces} {
		w.say("%v: %s", apierrors.IsForbidden(err), told(err))
	}
	for _, a := range []authorizationv1.ResourceAttributes{{Namespace: w.ns, Verb: "list", Resource: "configmaps"},
		{Namespace: w.ns, Verb: "create", Resource: "configmaps"}, {Namespace: w.ns, Verb: "get", Resource: "secrets", Name: "s"}} {
		r, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		w.say("may %s %s: %v", a.Verb, a.Resource, r.Status.Allowed)
	}
	r, err := c.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: w.ns}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, rule := range r.Status.ResourceRules {
		for _, resource := range rule.Resources {
			if resource == "configmaps" {
				w.say("its rule: %v %v", rule.Verbs, rule.Resources)
			}
		}
	}
	if err := w.typed.CoreV1().ServiceAccounts(w.ns).Delete(ctx, "reader", metav1.DeleteOptions{}); err != nil {
		return err
	}
	err = waitFor(ctx, "end of the token", func(ctx context.Context) (bool, error) {
		_, err := c.CoreV1().ConfigMaps(w.ns).List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err), nil
	})
	w.say("without its account it is nobody: %s", told(err))
	return nil
}
