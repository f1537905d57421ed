// SPDX-License-Identifier: MIT

// tec-test-rego evaluates an attestation and a resource policy as Trustee does, on Open Policy
// Agent instead of regorus: query_reference_value is a builtin, and every function that regorus
// lacks with Trustee's features, or is not known to have, is unknown here too.
//
// Standard input: {"attestation": TEXT, "resource": TEXT, "cases": [{"values": {NAME: ANY},
// "evidence": [INPUT, ...], "gets": ["resource/default/ID/root?a=b", ...]}]}. Evidence 0 is the
// primary one, "submods": OBJECT instead of evidence is a finished token, and a get that starts
// with a slash names no plugin; "text:" before a get is a Trustee that gives the path as text. Standard output, one line per case: {"error": TEXT} when the
// attestation fails, else {"claims": [OBJECT], "extensions": [LIST], "status": [TEXT],
// "allow": [BOOL or TEXT of an error]}.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/types"
)

// What regorus 0.10 and 0.11 were seen to have with the features regex, base64, time and std. The
// infix operators have no name that a policy can call.
var functions = strings.Fields(`concat replace substring indexof split sprintf trim trim_prefix
	lower startswith count to_number object.get object.union object.union_n object.keys json.marshal
	json.unmarshal array.concat base64.encode regex.match is_string is_object is_number is_array
	assign eq internal.member_2 internal.member_3`)

// Of an EAR; Trustee panics at any other name.
var claimNames = strings.Fields(`instance-identity configuration executables file-system hardware
	runtime-opaque storage-opaque sourced-data`)

var tiers = []string{"none", "affirming", "warning", "contraindicated"}

type object = map[string]any

type testCase struct {
	Values   object   `json:"values"`
	Evidence []object `json:"evidence"`
	Submods  object   `json:"submods"`
	Gets     []string `json:"gets"`
}

type answer struct {
	Error      string   `json:"error,omitempty"`
	Claims     []object `json:"claims,omitempty"`
	Extensions []any    `json:"extensions,omitempty"`
	Status     []string `json:"status,omitempty"`
	Allow      []any    `json:"allow,omitempty"`
}

var errUndefined = errors.New("undefined")

func capabilities() *ast.Capabilities {
	all := ast.CapabilitiesForThisVersion()
	known := map[string]bool{}
	for _, name := range functions {
		known[name] = true
	}
	var builtins []*ast.Builtin
	for _, b := range all.Builtins {
		if known[b.Name] || b.Infix != "" {
			builtins = append(builtins, b)
		}
	}
	all.Builtins = builtins
	return all
}

// evaluate answers the value of a rule, or errUndefined.
func evaluate(query, policy string, input any, more ...func(*rego.Rego)) (any, error) {
	options := append(more, rego.Query(query), rego.Module("policy.rego", policy),
		rego.Input(input), rego.Capabilities(capabilities()), rego.StrictBuiltinErrors(true))
	results, err := rego.New(options...).Eval(context.Background())
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return nil, errUndefined
	}
	return results[0].Expressions[0].Value, nil
}

func lookup(values object) func(*rego.Rego) {
	return rego.Function1(&rego.Function{
		Name: "query_reference_value",
		Decl: types.NewFunction(types.Args(types.S), types.A),
	}, func(_ rego.BuiltinContext, name *ast.Term) (*ast.Term, error) {
		text, ok := name.Value.(ast.String)
		if !ok {
			return nil, errors.New("query_reference_value: the name is no string")
		}
		value, err := ast.InterfaceToValue(values[string(text)])
		return ast.NewTerm(value), err
	})
}

func tier(claim int64) int {
	size := claim
	if size < 0 {
		size = -size - 1 // -1 is none, -2..-32 affirming, -33..-96 warning
	}
	switch {
	case size <= 1 && claim >= -1:
		return 0
	case size <= 31:
		return 1
	case size <= 95:
		return 2
	}
	return 3
}

func appraise(policy string, values, evidence object) (claims object, extensions any, status string,
	err error) {
	v, err := evaluate("data.policy.trust_claims", policy, evidence, lookup(values))
	if err != nil {
		return nil, nil, "", fmt.Errorf("trust_claims: %w", err)
	}
	claims, ok := v.(object)
	if !ok {
		return nil, nil, "", errors.New("trust_claims is no object")
	}
	worst := 0
	for name, claim := range claims {
		number, _ := claim.(json.Number)
		n, err := number.Int64()
		if err != nil || !strings.Contains(" "+strings.Join(claimNames, " ")+" ", " "+name+" ") {
			return nil, nil, "", fmt.Errorf("claim %s is %v", name, claim)
		}
		worst = max(worst, tier(n))
	}
	extensions, err = evaluate("data.policy.extensions", policy, evidence, lookup(values))
	if errors.Is(err, errUndefined) && !strings.Contains(policy, "\nextensions ") {
		extensions, err = []any{}, nil // no such rule, which is not the same as an undefined one
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("extensions: %w", err)
	}
	return claims, extensions, tiers[worst], nil
}

func get(policy, target string, token object) any {
	target, asText := strings.CutPrefix(target, "text:")
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	plugin, path, _ := strings.Cut(u.Path, "/") // already percent-decoded
	query := object{}
	for name, v := range u.Query() {
		query[name] = v[len(v)-1]
	}
	var segments []any
	for _, s := range strings.Split(path, "/") {
		segments = append(segments, s)
	}
	data := object{"resource-path": segments, "query": query}
	if asText {
		data["resource-path"] = "/" + path
	}
	if plugin != "" {
		data["plugin"] = plugin
	}
	allow, err := evaluate("data.policy.allow", policy, token, rego.Store(inmem.NewFromObject(data)))
	if err != nil {
		return err.Error()
	}
	return allow
}

func run(attestation, resource string, c testCase) (a answer) {
	submods := c.Submods
	if submods == nil {
		submods = object{}
	}
	for i, evidence := range c.Evidence {
		claims, extensions, status, err := appraise(attestation, c.Values, evidence)
		if err != nil {
			return answer{Error: err.Error()}
		}
		a.Claims = append(a.Claims, claims)
		a.Extensions = append(a.Extensions, extensions)
		a.Status = append(a.Status, status)
		submod := object{"ear.status": status, "ear.trustworthiness-vector": claims,
			"ear.appraisal-policy-id": "default", "ear.veraison.annotated-evidence": evidence}
		list, ok := extensions.([]any)
		for _, e := range list {
			extension, isObject := e.(object)
			name, isText := extension["name"].(string)
			ok = ok && isObject && isText
			submod[name] = extension["value"]
		}
		if !ok {
			return answer{Error: "extensions are no list of objects with names"}
		}
		submods[fmt.Sprintf("cpu%d", i)] = submod
	}
	token := object{"submods": submods, "iss": "CoCo-Attestation-Service",
		"eat_profile": "tag:github.com,2024:confidential-containers/Trustee"}
	for _, target := range c.Gets {
		a.Allow = append(a.Allow, get(resource, target, token))
	}
	return a
}

func main() {
	var in struct {
		Attestation string     `json:"attestation"`
		Resource    string     `json:"resource"`
		Cases       []testCase `json:"cases"`
	}
	decoder := json.NewDecoder(os.Stdin)
	decoder.UseNumber()
	if err := decoder.Decode(&in); err != nil {
		fmt.Fprintln(os.Stderr, "stdin:", err)
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	for _, c := range in.Cases {
		if err := out.Encode(run(in.Attestation, in.Resource, c)); err != nil {
			fmt.Fprintln(os.Stderr, "stdout:", err)
			os.Exit(2)
		}
	}
}
