/* SPDX-License-Identifier: MIT */
/*
 * Private to tests/fake/transport.c, which includes it once: requests and watches of the in-memory
 * API over fake/store.h, and the test's hand in it.
 */
#ifndef TEC_TESTS_FAKE_API_H
#define TEC_TESTS_FAKE_API_H

/* ---- requests */

static void end_object(struct call *c, int status, struct json_object *o)
{
	cleanup_free char *text = json_text(o);

	end_with(c, status, 0, text);
}

static size_t controllers(struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "metadata/ownerReferences");
	size_t n = 0;

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		n += json_get_bool(json_object_array_get_idx(a, i), "controller", false);
	return n;
}

static bool adds_finalizer(struct json_object *was, struct json_object *o)
{
	struct json_object *a = json_get_arr(was, "metadata/finalizers"),
			   *b = json_get_arr(o, "metadata/finalizers");

	for (size_t i = 0; b && i < json_object_array_length(b); i++)
		if (!a || merge_find(a, json_object_array_get_idx(b, i), NULL) < 0)
			return true;
	return false;
}

/* The write that c asks for: checks it against the object there (or NULL), stores it, answers. */
static void api_write(struct fake_api *api, struct call *c, const struct target *t,
	struct stored *s, struct json_object *take_o)
{
	cleanup_json struct json_object *o = take_o;
	bool created = s == NULL;

	if (is_ours(t->collection) && !str_eq(t->sub, "status"))
		set_status(o, s ? s->o : NULL);
	if (s && !str_eq(json_get_str(o, "metadata/uid"), json_get_str(s->o, "metadata/uid")))
		end_status(c, 409, "Conflict", "Precondition failed: UID in precondition differs");
	else if (controllers(o) > 1)
		end_status(c, 422, "Invalid", "Only one reference can have Controller set to true");
	else if (s && json_get(s->o, "metadata/deletionTimestamp") && adds_finalizer(s->o, o))
		end_status(c, 422, "Invalid",
			"no new finalizers can be added if the object is being deleted");
	else if (s && json_get_bool(s->o, "immutable", false) &&
		 (!member_same(s->o, o, "data") || !json_get_bool(o, "immutable", false)))
		end_status(c, 422, "Invalid", "data: field is immutable when `immutable` is set");
	else
		end_object(c, created ? 201 : 200,
			api_commit(api, t->collection, t->name, steal_ptr(&o)));
}

static bool rv_fits(struct call *c, struct stored *s, struct json_object *body)
{
	const char *rv = json_get_str(body, "metadata/resourceVersion");
	const char *uid = json_get_str(body, "metadata/uid");

	if ((!rv || (s && str_eq(rv, json_get_str(s->o, "metadata/resourceVersion")))) &&
		(!uid || (s && str_eq(uid, json_get_str(s->o, "metadata/uid")))))
		return true;
	end_status(c, 409, "Conflict",
		"the object has been modified; please apply your changes to the latest version");
	return false;
}

static void api_apply(struct fake_api *api, struct call *c, const struct target *t,
	struct stored *s, struct json_object *body)
{
	int part = str_eq(t->sub, "status");
	struct json_object *o = s ? json_copy(s->o) : json_obj(), *m = meta_of(body);

	cleanup_json struct json_object *conf = NULL;

	json_object_object_del(m, "resourceVersion");
	json_object_object_del(m, "uid");
	if (part) /* the status subresource takes nothing else */
		set_status(conf = json_obj(), body);
	else
		conf = json_copy(body);
	merge_apply(o, conf, s ? s->applied[part] : NULL);
	api_write(api, c, t, s, o);
	s = api_find(api, t->collection, t->name);
	if (s && c->end.status / 100 == 2) {
		json_object_put(s->applied[part]);
		s->applied[part] = steal_ptr(&conf);
	}
}

static void api_body_request(struct fake_api *api, struct call *c, struct target *t,
	struct stored *s, struct json_object *body)
{
	const struct fake_request *r = &c->rec->req;
	const char *name = json_get_str(body, "metadata/name");
	bool apply = r->content_type && strstr(r->content_type, "apply-patch");

	if (strcmp(r->method, "POST") == 0) {
		if (!name || !json_get_str(body, "kind") || !json_get_str(body, "apiVersion")) {
			end_status(c, 400, "BadRequest", "name, kind or apiVersion is missing");
			return;
		}
		free(t->name);
		t->name = xstrdup(name);
		json_object_object_del(meta_of(body), "uid");
		if (api_find(api, t->collection, t->name))
			end_status(c, 409, "AlreadyExists", "the object already exists");
		else
			api_write(api, c, t, NULL, json_copy(body));
	} else if (name && strcmp(name, t->name) != 0) {
		end_status(c, 400, "BadRequest",
			"the name of the object does not match the name on the URL");
	} else if (apply && (!json_get_str(body, "kind") || !strstr(t->query, "fieldManager="))) {
		end_status(c, 400, "BadRequest", "apply needs kind and fieldManager");
	} else if (!s && (!apply || t->sub[0])) {
		end_status(c, 404, "NotFound", "not found");
	} else if (rv_fits(c, s, body)) {
		struct json_object *o = s ? json_copy(s->o) : NULL;

		if (apply) {
			api_apply(api, c, t, s, body);
		} else if (strcmp(r->method, "PUT") == 0) {
			if (!json_get(body, "metadata/uid"))
				json_add_str(
					meta_of(body), "uid", json_get_str(s->o, "metadata/uid"));
			json_add_str(meta_of(body), "creationTimestamp",
				json_get_str(s->o, "metadata/creationTimestamp"));
			json_add_str(meta_of(body), "namespace",
				json_get_str(s->o, "metadata/namespace"));
			if (has_generation(t->collection))
				json_add_int(meta_of(body), "generation",
					json_get_int(s->o, "metadata/generation", 1));
			api_write(api, c, t, s, json_copy(body));
		} else if (t->sub[0]) {
			cleanup_json struct json_object *conf = json_obj();

			set_status(conf, body);
			merge_patch(o, conf);
			api_write(api, c, t, s, steal_ptr(&o));
		} else {
			merge_patch(o, body);
			api_write(api, c, t, s, steal_ptr(&o));
		}
		json_object_put(o);
	}
}

static void api_delete(struct fake_api *api, struct call *c, struct stored *s)
{
	struct err err = ERR_INIT;
	const struct fake_request *r = &c->rec->req;
	cleanup_json struct json_object *body =
		r->body_len ? json_parse(r->body, r->body_len, &json_limits_object, &err) : NULL;
	const char *uid = json_get_str(body, "preconditions/uid"),
		   *rv = json_get_str(body, "preconditions/resourceVersion");

	if (!s)
		end_status(c, 404, "NotFound", "not found");
	else if (uid && !str_eq(uid, json_get_str(s->o, "metadata/uid")))
		end_status(c, 409, "Conflict",
			"Precondition failed: UID in precondition: a, UID in object meta: b");
	else if (rv && !str_eq(rv, json_get_str(s->o, "metadata/resourceVersion")))
		end_status(c, 409, "Conflict", "Precondition failed: ResourceVersion differs");
	else {
		api_remove(api, s);
		end_status(c, 200, NULL, "deleted");
	}
}

/* "a=b,c=d" on labels, "metadata.name=x" on fields; anything else matches nothing. */
static bool selected(const struct target *t, struct json_object *o)
{
	cleanup_free char *field = query_get(t->query, "fieldSelector"),
			  *label = query_get(t->query, "labelSelector");
	struct json_object *labels = json_get_obj(o, "metadata/labels"), *v;

	if (field && (!str_starts(field, "metadata.name=") ||
			     !str_eq(field + 14, json_get_str(o, "metadata/name"))))
		return false;
	for (char *save = NULL, *p = label ? strtok_r(label, ",", &save) : NULL; p;
		p = strtok_r(NULL, ",", &save)) {
		char *eq = strchr(p, '=');

		if (!eq)
			return false;
		*eq = '\0';
		if (!labels || !json_object_object_get_ex(labels, p, &v) ||
			!str_eq(json_object_get_string(v), eq + 1))
			return false;
	}
	return true;
}

static void api_list(struct fake_api *api, struct call *c, const struct target *t)
{
	cleanup_free char *limit = query_get(t->query, "limit"),
			  *next = query_get(t->query, "continue"), *text = NULL;
	cleanup_json struct json_object *list = json_obj();
	struct json_object *items = json_arr(), *m = json_obj();
	uint64_t rv = api->rv, max = limit ? strtoull(limit, NULL, 10) : 0, n = 0;
	char buf[64 + KOBJ_NAME_MAX], from[KOBJ_NAME_MAX + 1] = "";

	/* the token needs encoding in a URL: a bare '+' comes back as a blank */
	if (next && (sscanf(next, "v1+%" SCNu64 "+%253s", &rv, from) != 2 || rv < api->oldest_rv)) {
		end_status(c, 410, "Expired", "The provided continue parameter is too old");
		json_object_put(items);
		json_object_put(m);
		return;
	}
	for (struct stored *s = api->objects; s; s = s->next) {
		struct json_object *o;

		if (!str_eq(s->collection, t->collection) || strcmp(s->name, from) <= 0 ||
			!selected(t, s->o))
			continue;
		if (max && n++ == max) {
			snprintf(buf, sizeof(buf), "v1+%" PRIu64 "+%s", rv, from);
			json_add_str(m, "continue", buf);
			break;
		}
		snprintf(from, sizeof(from), "%s", s->name);
		o = json_copy(s->o);
		if (!is_ours(t->collection)) { /* as built-in kinds come */
			json_object_object_del(o, "kind");
			json_object_object_del(o, "apiVersion");
		}
		json_push(items, o);
	}
	snprintf(buf, sizeof(buf), "%" PRIu64, rv);
	json_add_str(m, "resourceVersion", buf);
	json_add_str(list, "kind", "List");
	json_add(json_add(list, "metadata", m), "items", items);
	text = json_text(list);
	end_with(c, 200, 0, text);
}

/* ---- watches */

static void watch_line(struct call *c, const char *type, struct json_object *o)
{
	cleanup_free char *text = json_text(o);

	strbuf_addf(&c->out, "{\"type\":\"%s\",\"object\":%s}\n", type, text);
	wake(c);
}

static void api_watch_pump(struct call *c)
{
	struct target t = target_parse(c->rec->req.path);

	for (; !c->api->held && c->history < c->api->n_history; c->history++) {
		struct change *h = &c->api->history[c->history];

		if (h->rv > c->from_rv && str_eq(h->collection, t.collection) && selected(&t, h->o))
			watch_line(c, h->type, h->o);
	}
	target_fini(&t);
}

static void api_watch_bookmark(struct call *c)
{
	cleanup_json struct json_object *o = json_obj();
	char rv[24];

	if (c->api->held || !strstr(c->rec->req.path, "allowWatchBookmarks=true"))
		return;
	snprintf(rv, sizeof(rv), "%" PRIu64, c->api->rv);
	json_add(o, "metadata", json_add_str(json_obj(), "resourceVersion", rv));
	watch_line(c, "BOOKMARK", o);
}

static void api_tick(void *arg)
{
	struct call *c = arg;

	if (c->end_ms && clock_boot_ms() >= c->end_ms) {
		end_with(c, 200, 0, "");
		return;
	}
	api_watch_bookmark(c);
	timer_set(&c->tick, BOOKMARK_MS);
}

static void api_watch(struct fake_api *api, struct call *c, const struct target *t)
{
	cleanup_free char *rv = query_get(t->query, "resourceVersion"),
			  *seconds = query_get(t->query, "timeoutSeconds");

	c->from_rv = rv ? strtoull(rv, NULL, 10) : 0;
	if (!c->x.to.on_data) {
		end_status(c, 400, "BadRequest", "a watch that is no stream");
		return;
	}
	if (c->from_rv < api->oldest_rv) {
		end_with(c, 200, 0,
			"{\"type\":\"ERROR\",\"object\":"
			"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n");
		return;
	}
	c->api = api;
	c->end_ms = seconds ? clock_boot_ms() + strtoull(seconds, NULL, 10) * 1000 : 0;
	api->watches = xreallocarray(api->watches, api->n_watches + 1, sizeof(*api->watches));
	api->watches[api->n_watches++] = c;
	timer_set(&c->tick, BOOKMARK_MS);
	api_watch_pump(c);
}

static void api_watch_end(struct call *c)
{
	struct fake_api *api = c->api;

	for (size_t i = 0; api && i < api->n_watches; i++)
		if (api->watches[i] == c)
			api->watches[i] = api->watches[--api->n_watches];
	c->api = NULL;
}

static bool is_hidden(const struct fake_api *api, const char *collection)
{
	for (size_t i = 0; i < api->n_hidden; i++) {
		cleanup_strbuf struct strbuf version = STRBUF_INIT, plural = STRBUF_INIT;

		kobj_api_version(api->hidden[i], &version);
		strbuf_addc(&version, '/');
		strbuf_addf(&plural, "/%s", api->hidden[i]->plural);
		if (strstr(collection, strbuf_str(&version)) &&
			str_ends(collection, strbuf_str(&plural)))
			return true;
	}
	return false;
}

static void api_request(struct fake_api *api, struct call *c)
{
	const struct fake_request *r = &c->rec->req;
	struct err err = ERR_INIT;
	struct target t = target_parse(r->path);
	struct stored *s = api_find(api, t.collection, t.name);
	cleanup_json struct json_object *body = NULL;

	if (is_hidden(api, t.collection))
		end_with(c, 404, 0, "404 page not found\n");
	else if (strcmp(r->method, "DELETE") == 0)
		api_delete(api, c, s);
	else if (strcmp(r->method, "GET") != 0 &&
		 !json_object_is_type(body = json_parse(r->body ? r->body : "", r->body_len,
					      &json_limits_object, &err),
			 json_type_object))
		end_status(c, 400, "BadRequest", err.text);
	else if (body)
		api_body_request(api, c, &t, s, body);
	else if (t.name[0] && s)
		end_object(c, 200, s->o);
	else if (t.name[0])
		end_status(c, 404, "NotFound", "not found");
	else if (is_watch(c->rec))
		api_watch(api, c, &t);
	else
		api_list(api, c, &t);
	target_fini(&t);
}

/* ---- the test's hand */

static char *collection_of(const struct kobj_gvk *gvk, const char *ns)
{
	struct strbuf b = STRBUF_INIT;

	kobj_path(gvk, ns, NULL, NULL, &b);
	return strbuf_steal(&b);
}

struct fake_api *fake_api_new(struct loop *l)
{
	struct fake_api *api = xcalloc(1, sizeof(*api));

	api->loop = l;
	api->rv = 1000;
	return api;
}

void fake_api_free(struct fake_api *api)
{
	struct stored *s;

	cr_assert_eq(api->n_watches, 0, "free transports before their API");
	fake_api_forget_history(api);
	while ((s = api->objects)) {
		api->objects = s->next;
		stored_free(s);
	}
	free(api->history);
	free(api->watches);
	free(api);
}

void fake_api_put_json(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	struct json_object *take_o)
{
	cleanup_free char *collection = collection_of(gvk, ns);
	cleanup_free char *name = xstrdup(json_get_str(take_o, "metadata/name"));
	cleanup_strbuf struct strbuf version = STRBUF_INIT;
	struct stored *s;

	cr_assert_not_null(name, "fake_api_put: an object needs metadata.name");
	s = api_find(api, collection, name);
	kobj_api_version(gvk, &version);
	json_add_str(json_add_str(take_o, "apiVersion", strbuf_str(&version)), "kind", gvk->kind);
	if (s) {
		json_add_str(meta_of(take_o), "uid", json_get_str(s->o, "metadata/uid"));
		json_add_str(meta_of(take_o), "creationTimestamp",
			json_get_str(s->o, "metadata/creationTimestamp"));
		json_add_str(
			meta_of(take_o), "namespace", json_get_str(s->o, "metadata/namespace"));
		if (has_generation(collection))
			json_add_int(meta_of(take_o), "generation",
				json_get_int(s->o, "metadata/generation", 1));
	}
	api_commit(api, collection, name, take_o);
}

static struct json_object *parse_or_fail(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert(
		json_object_is_type(o, json_type_object), "no JSON object: %s: %s", err.text, text);
	return o;
}

void fake_api_put(
	struct fake_api *api, const struct kobj_gvk *gvk, const char *ns, const char *text)
{
	fake_api_put_json(api, gvk, ns, parse_or_fail(text));
}

void fake_api_merge(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	const char *name, const char *patch)
{
	cleanup_free char *collection = collection_of(gvk, ns);
	cleanup_json struct json_object *p = parse_or_fail(patch);
	struct stored *s = api_find(api, collection, name);
	struct json_object *o;

	cr_assert_not_null(s, "fake_api_merge: no %s %s", gvk->kind, name);
	o = json_copy(s->o);
	merge_patch(o, p);
	api_commit(api, collection, name, o);
}

void fake_api_delete(
	struct fake_api *api, const struct kobj_gvk *gvk, const char *ns, const char *name)
{
	cleanup_free char *collection = collection_of(gvk, ns);
	struct stored *s = api_find(api, collection, name);

	cr_assert_not_null(s, "fake_api_delete: no %s %s", gvk->kind, name);
	api_remove(api, s);
}

struct json_object *fake_api_get(
	struct fake_api *api, const struct kobj_gvk *gvk, const char *ns, const char *name)
{
	cleanup_free char *collection = collection_of(gvk, ns);
	struct stored *s = api_find(api, collection, name);

	return s ? s->o : NULL;
}

size_t fake_api_count(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns)
{
	cleanup_free char *collection = collection_of(gvk, ns);
	size_t n = 0;

	for (struct stored *s = api->objects; s; s = s->next)
		n += str_eq(s->collection, collection);
	return n;
}

const char *fake_api_condition(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	const char *name, const char *type, const char *member)
{
	struct json_object *o = fake_api_get(api, gvk, ns, name),
			   *a = o ? json_get_arr(o, "status/conditions") : NULL;

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(a, i), "type"), type))
			return json_get_str(json_object_array_get_idx(a, i), member);
	return NULL;
}

uint64_t fake_api_rv(const struct fake_api *api)
{
	return api->rv;
}

static bool uid_lives(struct fake_api *api, const char *uid)
{
	for (struct stored *s = api->objects; s; s = s->next)
		if (str_eq(json_get_str(s->o, "metadata/uid"), uid))
			return true;
	return false;
}

static bool is_orphan(struct fake_api *api, struct stored *s)
{
	struct json_object *a = json_get_arr(s->o, "metadata/ownerReferences");
	size_t n = a ? json_object_array_length(a) : 0;

	for (size_t i = 0; i < n; i++)
		if (uid_lives(api, json_get_str(json_object_array_get_idx(a, i), "uid")))
			return false;
	return n > 0 && !json_get(s->o, "metadata/deletionTimestamp");
}

size_t fake_api_collect(struct fake_api *api)
{
	size_t n = 0;

	for (struct stored *s = api->objects, *next; s; s = next) {
		next = s->next;
		if (is_orphan(api, s)) {
			api_remove(api, s);
			n++;
			next = api->objects; /* its own children may come earlier */
		}
	}
	return n;
}

void fake_api_drop_watches(struct fake_api *api)
{
	for (size_t i = 0; i < api->n_watches; i++)
		end_with(api->watches[i], 200, 0, "");
}

void fake_api_forget_history(struct fake_api *api)
{
	for (size_t i = 0; i < api->n_history; i++) {
		free(api->history[i].collection);
		json_object_put(api->history[i].o);
	}
	for (size_t i = 0; i < api->n_watches; i++)
		api->watches[i]->history = 0;
	api->n_history = 0;
	api->oldest_rv = ++api->rv;
}

void fake_api_bookmark(struct fake_api *api)
{
	for (size_t i = 0; i < api->n_watches; i++)
		api_watch_bookmark(api->watches[i]);
}

void fake_api_hold_watches(struct fake_api *api, bool hold)
{
	api->held = hold;
	for (size_t i = 0; i < api->n_watches; i++)
		api_watch_pump(api->watches[i]);
}

void fake_api_hide(struct fake_api *api, const struct kobj_gvk *gvk, bool hidden)
{
	size_t i = 0;

	while (i < api->n_hidden && api->hidden[i] != gvk)
		i++;
	if (hidden && i == api->n_hidden) {
		cr_assert_lt(i, ARRAY_LEN(api->hidden));
		api->hidden[api->n_hidden++] = gvk;
	} else if (!hidden && i < api->n_hidden) {
		api->hidden[i] = api->hidden[--api->n_hidden];
	}
}

#endif
