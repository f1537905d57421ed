// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

// subresources: a status has its own door, and neither door opens the other's.
func subresources(ctx context.Context, w *world) error {
	c := w.dynamic.Resource(machines).Namespace(w.ns)
	o := machine("sub", machineID(1))
	ready(o, "Ignored")
	made, err := c.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, has, _ := unstructured.NestedMap(made.Object, "status")
	w.say("a status at birth is kept: %v, generation %d", has, made.GetGeneration())
	ready(made, "AllReady")
	_ = unstructured.SetNestedField(made.Object, machineID(2), "spec", "id")
	made, err = c.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	id, _, _ := unstructured.NestedString(made.Object, "spec", "id")
	w.say("by its door: reason %s, id %s, generation %d, by %s", reasonOf(made), id, made.GetGeneration(), managers(made))
	unstructured.RemoveNestedField(made.Object, "status")
	made.SetLabels(map[string]string{"l": "1"})
	made, err = c.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	w.say("the main door leaves it: %s, generation %d", reasonOf(made), made.GetGeneration())
	got, err := c.Get(ctx, "sub", metav1.GetOptions{}, "status")
	if err != nil {
		return err
	}
	w.say("read by its door: %s %s", got.GetKind(), reasonOf(got))
	_, err = c.Get(ctx, "sub", metav1.GetOptions{}, "nothing")
	w.say("another door: %s", told(err))
	pods := w.typed.CoreV1().Pods(w.ns)
	pod, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	w.say("pod: %s %v", pod.Status.Phase, pod.Status.Conditions[0].Status)
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Other","status":"True"}]}}`)
	pod, err = pods.Patch(ctx, "p", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	var all []string
	for _, c := range pod.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	sort.Strings(all)
	w.say("pod's conditions merge by type: %v", all)
	return nil
}

func reasonOf(o *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" {
			return fmt.Sprint(m["reason"])
		}
	}
	return "none"
}

func deployment(name string) *appsv1.Deployment {
	one, labels := int32(1), map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &one,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
}

func scale(ctx context.Context, w *world) error {
	c := w.typed.AppsV1().Deployments(w.ns)
	if _, err := c.Create(ctx, deployment("scaled"), metav1.CreateOptions{}); err != nil {
		return err
	}
	s, err := c.GetScale(ctx, "scaled", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("%s of %d, selector %q", s.Name, s.Spec.Replicas, s.Status.Selector)
	s.Spec.Replicas, s.ResourceVersion = 3, "" // a controller may have written since
	if s, err = c.UpdateScale(ctx, "scaled", s, metav1.UpdateOptions{}); err != nil {
		return err
	}
	o, err := c.Get(ctx, "scaled", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("scaled to %d: %d replicas, generation %d, by %s", s.Spec.Replicas, *o.Spec.Replicas, o.Generation, writersBut(o, "controller-manager"))
	s.ResourceVersion = "1"
	_, err = c.UpdateScale(ctx, "scaled", s, metav1.UpdateOptions{})
	w.say("of an old version: %s", told(err))
	_, err = c.Patch(ctx, "scaled", types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`), metav1.PatchOptions{}, "scale")
	w.say("below nothing: %s", told(err))
	_, err = c.Patch(ctx, "scaled", types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{}, "scale")
	if err != nil {
		return err
	}
	o, err = c.Get(ctx, "scaled", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("patched to %d", *o.Spec.Replicas)
	_, err = c.GetScale(ctx, "absent", metav1.GetOptions{})
	w.say("absent: %s", told(err))
	return nil
}

// writersBut leaves out who only exists on one of the servers.
func writersBut(m metav1.Object, who string) string {
	kept := []metav1.ManagedFieldsEntry{}
	for _, f := range m.GetManagedFields() {
		if !strings.HasSuffix(f.Manager, who) {
			kept = append(kept, f)
		}
	}
	c := metav1.ObjectMeta{ManagedFields: kept}
	return managers(&c)
}

func patches(ctx context.Context, w *world) error {
	c := w.typed.AppsV1().Deployments(w.ns)
	if _, err := c.Create(ctx, deployment("patched"), metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, p := range []struct {
		how  types.PatchType
		body string
	}{
		{types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"j"}]}}}}`},
		{types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"k"},{"$patch":"delete","name":"d"}]}}}}`},
		{types.MergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`},
		{types.JSONPatchType, `[{"op":"test","path":"/metadata/annotations/a","value":"b"},{"op":"remove","path":"/metadata/annotations/a"}]`},
		{types.JSONPatchType, `[{"op":"test","path":"/metadata/annotations/a","value":"c"}]`},
		{types.MergePatchType, `[`},
	} {
		o, err := c.Patch(ctx, "patched", p.how, []byte(p.body), metav1.PatchOptions{FieldManager: "patcher"})
		if err != nil {
			w.say("%s: %s", p.how, told(err))
			continue
		}
		var images []string
		for _, i := range o.Spec.Template.Spec.Containers {
			images = append(images, i.Name+"="+i.Image)
		}
		w.say("%s: %v, a=%q", p.how, images, o.Annotations["a"])
	}
	return nil
}

// applyTyped: two owners of one object, what they quarrel about, and what goes when one lets it go.
func applyTyped(ctx context.Context, w *world) error {
	c := w.typed.CoreV1().ConfigMaps(w.ns)
	by := func(who string, force bool, data map[string]string) error {
		o, err := c.Apply(ctx, coreapply.ConfigMap("applied", w.ns).WithData(data), metav1.ApplyOptions{FieldManager: who, Force: force})
		if err != nil {
			w.say("%s %v: %s %v", who, data, told(err), causes(err))
			return nil
		}
		w.say("%s %v: now %v, by %s", who, data, o.Data, managers(o))
		mine, err := coreapply.ExtractConfigMap(o, who)
		if err != nil {
			return err
		}
		w.say("%s owns %v", who, mine.Data)
		return nil
	}
	for _, step := range []struct {
		who   string
		force bool
		data  map[string]string
	}{
		{"one", false, map[string]string{"a": "1", "b": "2"}}, {"two", false, map[string]string{"b": "2", "c": "3"}},
		{"two", false, map[string]string{"b": "9"}}, {"two", true, map[string]string{"b": "9"}},
		{"one", false, map[string]string{"a": "1"}}, {"one", false, map[string]string{"a": "1"}},
	} {
		if err := by(step.who, step.force, step.data); err != nil {
			return err
		}
	}
	_, err := c.Apply(ctx, coreapply.ConfigMap("applied", w.ns), metav1.ApplyOptions{})
	w.say("nobody: %s", told(err))
	labels := map[string]string{"app": "ssa"}
	d := appsapply.Deployment("applied", w.ns).WithSpec(appsapply.DeploymentSpec().WithReplicas(1).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().
			WithContainers(coreapply.Container().WithName("c").WithImage("i").WithEnv(coreapply.EnvVar().WithName("A").WithValue("1"))))))
	if _, err := w.typed.AppsV1().Deployments(w.ns).Apply(ctx, d, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	side := appsapply.Deployment("applied", w.ns).WithSpec(appsapply.DeploymentSpec().WithTemplate(coreapply.PodTemplateSpec().
		WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("side").WithImage("s"),
			coreapply.Container().WithName("c").WithEnv(coreapply.EnvVar().WithName("B").WithValue("2"))))))
	o, err := w.typed.AppsV1().Deployments(w.ns).Apply(ctx, side, metav1.ApplyOptions{FieldManager: "two"})
	if err != nil {
		return err
	}
	for _, c := range o.Spec.Template.Spec.Containers {
		w.say("container %s of %s, env %v", c.Name, c.Image, c.Env)
	}
	mine, err := appsapply.ExtractDeployment(o, "two")
	if err != nil {
		return err
	}
	w.say("two owns %d containers, the second with %d variable", len(mine.Spec.Template.Spec.Containers), len(mine.Spec.Template.Spec.Containers[1].Env))
	return nil
}

func applyDynamic(ctx context.Context, w *world) error {
	c := w.dynamic.Resource(machines).Namespace(w.ns)
	o, err := c.Apply(ctx, "ssa", machine("ssa", machineID(3)), metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	w.say("made by %s", managers(o))
	status := machine("ssa", machineID(3))
	unstructured.RemoveNestedField(status.Object, "spec")
	ready(status, "Applied")
	if o, err = c.ApplyStatus(ctx, "ssa", status, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	w.say("status %s, by %s", reasonOf(o), managers(o))
	_, err = c.Apply(ctx, "ssa", machine("ssa", machineID(4)), metav1.ApplyOptions{FieldManager: "two"})
	w.say("another id by another: %s %v", told(err), causes(err))
	wrong := machine("ssa", machineID(3))
	wrong.Object["wrong"] = "x"
	_, err = c.Apply(ctx, "ssa", wrong, metav1.ApplyOptions{FieldManager: "one"})
	w.say("a field that is not there: %s", told(err))
	return nil
}
