// SPDX-License-Identifier: MIT
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// What the store of tec-operator takes as protobuf, as kubectl sends it: "VERSION/Kind" as in an object.
var bodies = strings.Fields(`v1/ConfigMap v1/Secret v1/ServiceAccount
	v1/DeleteOptions meta.k8s.io/v1/DeleteOptions
	authentication.k8s.io/v1/SelfSubjectReview authentication.k8s.io/v1/TokenRequest
	authorization.k8s.io/v1/SelfSubjectAccessReview authorization.k8s.io/v1/SelfSubjectRulesReview
	rbac.authorization.k8s.io/v1/RoleBinding`)

// Of these it knows the members, and takes JSON only.
var onlyJSON = strings.Fields(`v1/Event events.k8s.io/v1/Event`)

func bodyScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, clientgoscheme.AddToScheme(s)
}

// newBody is an empty object of one of bodies.
func newBody(s *runtime.Scheme, body string) (runtime.Object, schema.GroupVersionKind, error) {
	at := strings.LastIndex(body, "/")
	gvk := schema.FromAPIVersionAndKind(body[:at], body[at+1:])
	if gvk.Kind == "DeleteOptions" {
		return &metav1.DeleteOptions{}, gvk, nil
	}
	o, err := s.New(gvk)
	return o, gvk, err
}

// ---- the table

type table struct {
	out   io.Writer
	names map[reflect.Type]string
	done  []string // definitions, those that are used first
	taken map[string]bool
}

var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():      "TIME",
	reflect.TypeFor[metav1.MicroTime](): "MICROTIME",
	reflect.TypeFor[metav1.FieldsV1]():  "RAW",
}

// field is what the tags of one member say.
type field struct {
	number, name string
	omit         bool
	of           reflect.StructField
}

func fieldsOf(t reflect.Type) ([]field, error) {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "Status" && f.Type.Kind() == reflect.Struct {
			continue // the answer to a question
		}
		wire, js := strings.Split(f.Tag.Get("protobuf"), ","), strings.Split(f.Tag.Get("json"), ",")
		if len(wire) < 2 {
			if f.Type != reflect.TypeFor[metav1.TypeMeta]() && f.IsExported() && js[0] != "-" && js[0] != "" {
				return nil, fmt.Errorf("%s.%s has no number", t, f.Name)
			}
			continue
		}
		number := wire[1]
		if wire[0] != "bytes" && wire[0] != "varint" && wire[0] != "fixed64" {
			return nil, fmt.Errorf("%s.%s: %v", t, f.Name, wire)
		}
		opts := strings.Join(js[1:], ",")
		all = append(all, field{number, js[0], strings.Contains(opts, "omitempty"), f})
	}
	return all, nil
}

// kindOf: the type of a member in the table, and the struct that it is made of.
func kindOf(f field) (string, reflect.Type, error) {
	t, ptr := f.of.Type, ""
	if t.Kind() == reflect.Pointer {
		t, ptr = t.Elem(), "_PTR"
	} else if !f.omit {
		ptr = "_PTR"
	}
	if s, ok := special[t]; ok {
		return s, nil, nil
	}
	switch t.Kind() {
	case reflect.String:
		return "STRING" + ptr, nil, nil
	case reflect.Bool:
		return "BOOL" + ptr, nil, nil
	case reflect.Int32:
		return "INT" + ptr, nil, nil
	case reflect.Int64:
		return "INT64" + ptr, nil, nil
	case reflect.Struct:
		return "OBJECT", t, nil
	case reflect.Slice:
		e := t.Elem()
		switch {
		case special[e] != "":
		case e.Kind() == reflect.String:
			return "STRINGS", nil, nil
		case e.Kind() == reflect.Struct:
			return "OBJECTS", e, nil
		}
	case reflect.Map:
		e := t.Elem()
		switch {
		case special[e] != "":
		case e.Kind() == reflect.String:
			return "TEXT_MAP", nil, nil
		case e.Kind() == reflect.Slice && e.Elem().Kind() == reflect.Uint8:
			return "BYTES_MAP", nil, nil
		}
	}
	return "", nil, fmt.Errorf("%s of type %s is not known to the table", f.name, f.of.Type)
}

func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(rune(name[i-1])) || (i+1 < len(name) && unicode.IsLower(rune(name[i+1])))) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func (t *table) nameOf(of reflect.Type) (string, error) {
	if name, ok := t.names[of]; ok {
		return name, nil
	}
	name := "of_" + snake(of.Name())
	if t.taken[name] {
		group := strings.Split(of.PkgPath(), "/")
		name += "_" + group[len(group)-2]
	}
	t.names[of], t.taken[name] = name, true
	all, err := fieldsOf(of)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("L %s[] = {", name)
	line := len(text)
	for _, f := range all {
		kind, inner, err := kindOf(f)
		if err != nil {
			return "", fmt.Errorf("%s: %w", of, err)
		}
		item := fmt.Sprintf("F(%s, %q, %s),", f.number, f.name, kind)
		if inner != nil {
			n, err := t.nameOf(inner)
			if err != nil {
				return "", err
			}
			item = fmt.Sprintf("M(%s, %q, %s, %s),", f.number, f.name, kind, n)
		}
		if line+1+len(item) > 118 {
			text += "\n\t"
			line = 8
		} else {
			text += " "
			line++
		}
		text += item
		line += len(item)
	}
	t.done = append(t.done, text+" END};\n")
	return name, nil
}

// printFields prints src/schema/fields.c.
func printFields(out io.Writer) error {
	s, err := bodyScheme()
	if err != nil {
		return err
	}
	t := table{out: out, names: map[reflect.Type]string{}, taken: map[string]bool{}}
	roots := ""
	for i, body := range append(append([]string{}, bodies...), onlyJSON...) {
		o, gvk, err := newBody(s, body)
		if err != nil {
			return err
		}
		name, err := t.nameOf(reflect.TypeOf(o).Elem())
		if err != nil {
			return err
		}
		roots += fmt.Sprintf("\t{%q, %q, %s, %t},\n", gvk.GroupVersion(), gvk.Kind, name, i >= len(bodies))
	}
	_, err = fmt.Fprintf(out, `/* SPDX-License-Identifier: MIT */
/*
 * Made by tests/clients (tec-test-clients protobuf-fields) from the types of Kubernetes %s; do not
 * edit. tests/e2e/test_clients.py compares the two.
 */
#include "config.h"

#include <stddef.h>

#include "tec/schema/fields.h"

/* clang-format off */
#define L static const struct schema_field
#define F(number, name, type) {number, name, SCHEMA_FIELD_##type, NULL}
#define M(number, name, type, of) {number, name, SCHEMA_FIELD_##type, of}
#define END {0, NULL, SCHEMA_FIELD_STRING, NULL}

%s
const struct schema_fields schema_fields_table[] = {
%s	{NULL, NULL, NULL, false},
};
/* clang-format on */
`, "1.34", strings.Join(t.done, ""), roots)
	return err
}

// ---- samples

// filler gives every member of an object a value that tells it from the others.
type filler struct {
	n     int
	empty bool // pointers to nothing, lists of one nothing
}

func (f *filler) fill(v reflect.Value, deep int) {
	f.n++
	switch o := v.Addr().Interface().(type) {
	case *metav1.Time:
		if !f.empty {
			*o = metav1.Unix(1767323045+int64(f.n), 0)
		}
		return
	case *metav1.MicroTime:
		if !f.empty {
			*o = metav1.NewMicroTime(metav1.Unix(1767323045, int64(f.n)*1000).Time)
		}
		return
	case *metav1.FieldsV1:
		o.Raw = []byte(`{"f:a":{}}`)
		return
	case *metav1.TypeMeta:
		return
	}
	f.fillKind(v, deep)
}

// many: two of what is near the root; deep down they would only make it large.
func (f *filler) many(deep int) int {
	if deep >= 18 || f.n%7 == 0 {
		return 2
	}
	return 1
}

func (f *filler) fillKind(v reflect.Value, deep int) {
	switch v.Kind() {
	case reflect.String:
		if !f.empty {
			v.SetString(fmt.Sprintf("ü%d", f.n))
		}
	case reflect.Bool:
		v.SetBool(!f.empty)
	case reflect.Int, reflect.Int32, reflect.Int64:
		if !f.empty {
			v.SetInt(int64(f.n - 2*f.n*(f.n%2))) // and some below nothing
		}
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	case reflect.Pointer:
		if deep > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), deep-1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, byte(f.n), 255})
			return
		}
		if deep > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			for range f.many(deep) {
				one := reflect.New(v.Type().Elem()).Elem()
				f.fill(one, deep-1)
				v.Set(reflect.Append(v, one))
			}
		}
	case reflect.Map:
		if deep == 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for i := range f.many(deep) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(fmt.Sprintf("k%d", i))
			f.fill(value, deep-1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), deep)
			}
		}
	}
}

// withoutStatus: the answer to a question is not read.
func withoutStatus(text []byte) ([]byte, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	delete(o, "status")
	return json.Marshal(o)
}

// writeSamples writes, for each body, what it is as protobuf and as JSON: with every member, and with
// every member that is there but empty.
func writeSamples(dir string) error {
	if dir == "" {
		return errors.New("protobuf-samples wants a folder")
	}
	s, err := bodyScheme()
	if err != nil {
		return err
	}
	for _, body := range bodies {
		for _, empty := range []bool{false, true} {
			o, gvk, err := newBody(s, body)
			if err != nil {
				return err
			}
			f := filler{empty: empty}
			f.fill(reflect.ValueOf(o).Elem(), 20)
			o.GetObjectKind().SetGroupVersionKind(gvk)
			var wire bytes.Buffer
			if err := protobuf.NewSerializer(s, s).Encode(o, &wire); err != nil {
				return fmt.Errorf("%s: %w", body, err)
			}
			text, err := json.Marshal(o)
			if err != nil {
				return fmt.Errorf("%s: %w", body, err)
			}
			name := strings.ReplaceAll(body, "/", "_") + map[bool]string{false: "-full", true: "-empty"}[empty]
			if text, err = withoutStatus(text); err != nil {
				return fmt.Errorf("%s: %w", body, err)
			}
			// A time that was never set is null in JSON, and nothing at all otherwise.
			text = regexp.MustCompile(`"[A-Za-z]+":null,|,"[A-Za-z]+":null`).ReplaceAll(text, nil)
			text = regexp.MustCompile(`\{"[A-Za-z]+":null\}`).ReplaceAll(text, []byte("{}"))
			if err := os.WriteFile(filepath.Join(dir, name+".pb"), wire.Bytes(), 0o644); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
