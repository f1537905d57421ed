/* SPDX-License-Identifier: MIT */
/*
 * Review kinds and TokenRequest: nothing is stored, and the object is returned with the answer in
 * its status. The caller has authorized the request.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tec/apistore/inproc.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "apiserver_internal.h"

#define LIFE_MIN_S 600
#define LIFE_MAX_S 315360000 /* 10 years: a following operator keeps one token */
#define LIFE_S     3600

/* Answer 201 with the spec that was sent and the given status. */
static void answer(const struct apiserver_call *c, const char *version, const char *kind,
	struct json_object *body, struct json_object *take_status)
{
	struct json_object *o = json_obj(), *spec = json_get(body, "spec");

	json_add_str(json_add_str(o, "kind", kind), "apiVersion", version);
	json_add(o, "metadata", json_obj());
	if (spec)
		json_add(o, "spec", json_object_get(spec));
	json_add(o, "status", take_status);
	apiserver_answer_json(c->req, 201, o);
}

static const char *text(struct json_object *o, const char *path)
{
	const char *s = json_get_str(o, path);

	return s ? s : "";
}

/* Answer a SelfSubjectAccessReview ("kubectl auth can-i") from the rules that authorize
 * requests. */
static void access_review(const struct apiserver_call *c, struct json_object *body)
{
	struct json_object *res = json_get_obj(body, "spec/resourceAttributes");
	struct json_object *non = json_get_obj(body, "spec/nonResourceAttributes");
	struct apistore_act act = {text(res, "verb"), text(res, "group"), text(res, "resource"),
		text(res, "subresource"), text(res, "namespace"), text(res, "name"), ""};
	struct json_object *status;

	if (non)
		act = (struct apistore_act){
			text(non, "verb"), "", "", "", "", "", text(non, "path")};
	/* Both or neither was given. */
	if (!res == !non) {
		apiserver_answer_refuse(c->req, 422, "Invalid",
			"exactly one of spec.resourceAttributes and spec.nonResourceAttributes must be specified");
		return;
	}
	status = json_obj();
	json_add_bool(
		status, "allowed", apistore_rights_allow(c->shared->conf.objects, &c->user, &act));
	answer(c, "authorization.k8s.io/v1", "SelfSubjectAccessReview", body, status);
}

/* Answer a SelfSubjectReview ("kubectl auth whoami"). */
static void self_review(const struct apiserver_call *c, struct json_object *body)
{
	struct json_object *info = json_obj(), *groups = json_arr();

	for (size_t i = 0; i < c->user.n_groups; i++)
		json_push_str(groups, c->user.groups[i]);
	json_add_str(info, "username", c->user.name);
	if (c->user.uid[0])
		json_add_str(info, "uid", c->user.uid);
	json_add(info, "groups", groups);
	answer(c, "authentication.k8s.io/v1", "SelfSubjectReview", body,
		json_add(json_obj(), "userInfo", info));
}

/* Answer a SelfSubjectRulesReview ("kubectl auth can-i --list"). */
static void rules_review(const struct apiserver_call *c, struct json_object *body)
{
	const char *ns = json_get_str(body, "spec/namespace");

	if (!ns || !*ns) {
		apiserver_answer_refuse(c->req, 400, "BadRequest", "no namespace on request");
		return;
	}
	answer(c, "authorization.k8s.io/v1", "SelfSubjectRulesReview", body,
		apistore_rights_rules(c->shared->conf.objects, &c->user, ns));
}

/* ---- TokenRequest, a subresource of a ServiceAccount */

/* Read the audiences requested, at most 8; without any, the token is for the API itself. out ends
 * with NULL and borrows from body. */
static size_t audiences(struct json_object *body, const char *out[9])
{
	struct json_object *a = json_get_arr(body, "spec/audiences");
	size_t n = 0;

	for (size_t i = 0; i < json_len(a) && n < 8; i++) {
		struct json_object *s = json_at(a, i);

		if (json_object_is_type(s, json_type_string))
			out[n++] = json_object_get_string(s);
	}
	if (n == 0)
		out[n++] = APISTORE_ISSUER;
	out[n] = NULL;
	return n;
}

/* Issue a token for a ServiceAccount. The lifetime is capped, not refused, when it is too long, and
 * the actual one is returned in spec.expirationSeconds. */
static void token_request(const struct apiserver_call *c, struct json_object *body)
{
	int64_t life = json_get_int(body, "spec/expirationSeconds", LIFE_S);
	const struct apistore_key key = {"serviceaccounts", c->t->ns, c->t->name};
	cleanup_json struct json_object *account =
		apistore_inproc_object(c->shared->conf.objects, &key);
	cleanup_json struct json_object *aud = json_arr();
	cleanup_secret struct secret *token = NULL;
	const char *for_whom[9];
	struct apistore_token t = {.ns = c->t->ns,
		.account = c->t->name,
		.uid = text(account, "metadata/uid"),
		.audiences = for_whom,
		.now_s = clock_wall_s()};
	struct json_object *status, *spec;
	char end[CLOCK_RFC3339_LEN];
	struct err err = ERR_INIT;

	if (!account) {
		apiserver_answer(c->req, apistore_status_absent(c->t));
		return;
	}
	if (life < LIFE_MIN_S) {
		apiserver_answer_refuse(c->req, 422, "Invalid",
			"TokenRequest.authentication.k8s.io \"%s\" is invalid: spec.expirationSeconds: Invalid value: %lld: may not specify a duration less than 10 minutes",
			c->t->name, (long long)life);
		return;
	}
	t.life_s = life > LIFE_MAX_S ? LIFE_MAX_S : life;
	for (size_t i = 0, n = audiences(body, for_whom); i < n; i++)
		json_push_str(aud, for_whom[i]);
	token = apistore_token_sign(
		apistore_authority_token_key(c->shared->conf.authority), &t, &err);
	if (!token) {
		apiserver_answer_refuse(c->req, 500, "InternalError", "%s", err.text);
		return;
	}
	clock_format(t.now_s + t.life_s, end);
	status = json_add_str(json_obj(), "token", (const char *)secret_peek(token));
	json_add_str(status, "expirationTimestamp", end);
	spec = json_get_obj(body, "spec");
	if (!spec)
		json_add(body, "spec", spec = json_obj());
	json_add(spec, "audiences", json_object_get(aud));
	json_add_int(spec, "expirationSeconds", t.life_s);
	answer(c, "authentication.k8s.io/v1", "TokenRequest", body, status);
}

static const struct question {
	const char *group, *resource, *sub;
	void (*fn)(const struct apiserver_call *c, struct json_object *body);
} questions[] = {
	{"authorization.k8s.io", "selfsubjectaccessreviews", "", access_review},
	{"authorization.k8s.io", "selfsubjectrulesreviews", "", rules_review},
	{"authentication.k8s.io", "selfsubjectreviews", "", self_review},
	{"", "serviceaccounts", "token", token_request},
};

static const struct question *question_of(const struct apistore_target *t)
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		if (str_eq(t->group, questions[i].group) &&
			str_eq(t->resource, questions[i].resource) &&
			str_eq(t->sub, questions[i].sub))
			return &questions[i];
	return NULL;
}

bool apiserver_review_knows(const struct apistore_target *t)
{
	return question_of(t) != NULL;
}

void apiserver_review(const struct apiserver_call *c, struct json_object *body)
{
	question_of(c->t)->fn(c, body);
}
