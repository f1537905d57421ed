// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// lacks tells the first member of what was sent that did not come back.
func lacks(sent, got any, path string) string {
	switch s := sent.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return path
		}
		for k, v := range s {
			if v == nil || reflect.DeepEqual(v, map[string]any{}) {
				continue
			}
			if l := lacks(v, g[k], path+"."+k); l != "" {
				return l
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(s) {
			return path
		}
		for i := range s {
			if l := lacks(s[i], g[i], fmt.Sprintf("%s[%d]", path, i)); l != "" {
				return l
			}
		}
	default:
		if !reflect.DeepEqual(sent, got) {
			return fmt.Sprintf("%s: %v became %v", path, sent, got)
		}
	}
	return ""
}

func tree(o any) any {
	text, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	var t any
	if err := json.Unmarshal(text, &t); err != nil {
		return err.Error()
	}
	return t
}

func podSpec() corev1.PodSpec {
	yes, user := true, int64(1000)
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"a": "b"},
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: corev1.NodeSelectorOpExists}}}}}}},
		Volumes: []corev1.Volume{{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s",
				Items: []corev1.KeyToPath{{Key: "a", Path: "b"}}}}}},
		Containers: []corev1.Container{{Name: "c", Image: "quay.io/a/b:1", Command: []string{"sh", "-c"}, Args: []string{"true"},
			Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
			Env:          []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "e", MountPath: "/e"}, {Name: "s", MountPath: "/s", ReadOnly: true}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")},
				Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}},
			LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}}}}
}

// typedKinds: what a typed client sends, as protobuf, comes back whole for each kind.
func typedKinds(ctx context.Context, w *world) error {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"kinds": "yes"}}
	}
	o, c := metav1.CreateOptions{}, w.typed
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "k"}}, Spec: podSpec()}
	always := template
	always.Spec.RestartPolicy = corev1.RestartPolicyAlways
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "k"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"k", "l"}}}}
	prefix, class, half, two, mode := networkingv1.PathTypePrefix, "nginx", intstr.FromString("50%"), int32(2), corev1.PersistentVolumeFilesystem
	tcp, port := corev1.ProtocolTCP, intstr.FromInt32(80)
	var told []string
	look := func(kind string, sent, got any, err error) {
		if err != nil {
			told = append(told, fmt.Sprintf("%s: %v", kind, err))
			return
		}
		if l := lacks(tree(sent), tree(got), ""); l != "" {
			told = append(told, fmt.Sprintf("%s: lost %s", kind, l))
			return
		}
		w.say("%s comes back whole", kind)
	}
	pod := &corev1.Pod{ObjectMeta: meta("k"), Spec: podSpec()}
	gotPod, err := c.CoreV1().Pods(w.ns).Create(ctx, pod, o)
	look("Pod", pod, gotPod, err)
	dep := deployment("k")
	dep.Spec.Selector, dep.Spec.Template, dep.Spec.Replicas = selector, always, new(int32)
	gotDep, err := c.AppsV1().Deployments(w.ns).Create(ctx, dep, o)
	look("Deployment", dep, gotDep, err)
	job := &batchv1.Job{ObjectMeta: meta("k"), Spec: batchv1.JobSpec{Parallelism: new(int32), BackoffLimit: &two, Template: template}}
	gotJob, err := c.BatchV1().Jobs(w.ns).Create(ctx, job, o)
	look("Job", job, gotJob, err)
	svc := &corev1.Service{ObjectMeta: meta("k"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "k"},
		Ports: []corev1.ServicePort{{Name: "a", Port: 80, TargetPort: intstr.FromString("http")}, {Name: "b", Port: 81, Protocol: tcp, TargetPort: port}}}}
	gotSvc, err := c.CoreV1().Services(w.ns).Create(ctx, svc, o)
	look("Service", svc, gotSvc, err)
	ing := &networkingv1.Ingress{ObjectMeta: meta("k"), Spec: networkingv1.IngressSpec{IngressClassName: &class,
		TLS: []networkingv1.IngressTLS{{Hosts: []string{"a.example"}, SecretName: "s"}},
		Rules: []networkingv1.IngressRule{{Host: "a.example", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "k", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}}
	gotIng, err := c.NetworkingV1().Ingresses(w.ns).Create(ctx, ing, o)
	look("Ingress", ing, gotIng, err)
	np := &networkingv1.NetworkPolicy{ObjectMeta: meta("k"), Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector,
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}},
			From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}, {IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}}}}}
	gotNP, err := c.NetworkingV1().NetworkPolicies(w.ns).Create(ctx, np, o)
	look("NetworkPolicy", np, gotNP, err)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: meta("k"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &half, Selector: selector}}
	gotPDB, err := c.PolicyV1().PodDisruptionBudgets(w.ns).Create(ctx, pdb, o)
	look("PodDisruptionBudget", pdb, gotPDB, err)
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: meta("k"), Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: &mode,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}}}
	gotPVC, err := c.CoreV1().PersistentVolumeClaims(w.ns).Create(ctx, pvc, o)
	look("PersistentVolumeClaim", pvc, gotPVC, err)
	role := &rbacv1.Role{ObjectMeta: meta("k"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "deployments"},
		ResourceNames: []string{"x"}, Verbs: []string{"get", "*"}}}}
	gotRole, err := c.RbacV1().Roles(w.ns).Create(ctx, role, o)
	look("Role", role, gotRole, err)
	sa := &corev1.ServiceAccount{ObjectMeta: meta("k"), AutomountServiceAccountToken: new(bool), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}}}
	gotSA, err := c.CoreV1().ServiceAccounts(w.ns).Create(ctx, sa, o)
	look("ServiceAccount", sa, gotSA, err)
	if len(told) > 0 {
		return fmt.Errorf("%s", strings.Join(told, "; "))
	}
	svc.Spec.Selector["app"] = "l"
	gotSvc.Spec.Selector = svc.Spec.Selector
	gotSvc, err = c.CoreV1().Services(w.ns).Update(ctx, gotSvc, metav1.UpdateOptions{})
	look("changed Service", svc, gotSvc, err)
	gotDep, err = c.AppsV1().Deployments(w.ns).Get(ctx, "k", metav1.GetOptions{})
	if err != nil {
		return err
	}
	gotDep.Spec.Template.Spec.Containers[0].Image = "quay.io/a/b:2"
	gotDep.ResourceVersion = ""
	dep.Spec.Template.Spec.Containers = append([]corev1.Container{}, dep.Spec.Template.Spec.Containers...)
	dep.Spec.Template.Spec.Containers[0].Image = "quay.io/a/b:2"
	gotDep, err = c.AppsV1().Deployments(w.ns).Update(ctx, gotDep, metav1.UpdateOptions{})
	look("changed Deployment", dep, gotDep, err)
	if len(told) > 0 {
		return fmt.Errorf("%s", strings.Join(told, "; "))
	}
	return nil
}
