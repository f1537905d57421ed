/* SPDX-License-Identifier: MIT */
/*
 * Private to tests/fake/transport.c, which includes it once: the objects of the in-memory API. They
 * are replaced, never changed, so the history that watches read shares them.
 */
#ifndef TEC_TESTS_FAKE_STORE_H
#define TEC_TESTS_FAKE_STORE_H

struct stored {
	struct stored *next; /* sorted by collection, then name */
	char *collection, *name;
	struct json_object *o;
	struct json_object *applied[2]; /* by our manager: the object, its status */
};

struct change {
	uint64_t rv;
	const char *type;
	char *collection;
	struct json_object *o; /* shared with the store */
};

struct fake_api {
	struct loop *loop;
	struct stored *objects;
	struct change *history;
	size_t n_history;
	uint64_t rv, oldest_rv;
	bool held;
	const struct kobj_gvk *hidden[8];
	size_t n_hidden;
	struct call **watches;
	size_t n_watches;
};

/* A request's path, cut up. */
struct target {
	char *collection, *name, *sub, *query; /* name "" for the collection */
};

static void target_fini(struct target *t)
{
	free(t->collection);
	free(t->name);
	free(t->sub);
	free(t->query);
}

static char *percent_decode(const char *s, size_t len)
{
	char *out = xmalloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char hex[3] = {0};

		if (s[i] == '%' && i + 2 < len) {
			memcpy(hex, s + i + 1, 2);
			out[n++] = (char)strtol(hex, NULL, 16);
			i += 2;
		} else {
			out[n++] = s[i] == '+' ? ' ' : s[i];
		}
	}
	out[n] = '\0';
	return out;
}

static struct target target_parse(const char *path)
{
	size_t len = strcspn(path, "?");
	int want = strncmp(path, "/api/", 5) == 0 ? 5 : 6; /* segments up to the plural */
	size_t cut[2] = {len, len}, at = 0;

	for (int i = 0; i < want + 2 && at < len; i++) {
		at += 1 + strcspn(path + at + 1, "/?");
		if (i >= want - 1 && i < want + 1)
			cut[i - want + 1] = at;
	}
	return (struct target){
		.collection = xstrndup(path, cut[0]),
		.name = cut[0] < len ? percent_decode(path + cut[0] + 1, cut[1] - cut[0] - 1)
				     : xstrdup(""),
		.sub = xstrdup(cut[1] < len ? "status" : ""),
		.query = xstrdup(path[len] ? path + len + 1 : ""),
	};
}

/* The caller frees; NULL: absent. */
static char *query_get(const char *query, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = query; *p; p += strcspn(p, "&"), p += *p == '&')
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			return percent_decode(p + n + 1, strcspn(p + n + 1, "&"));
	return NULL;
}

static struct stored **api_slot(struct fake_api *api, const char *collection, const char *name)
{
	struct stored **p = &api->objects;
	int d = -1;

	for (; *p; p = &(*p)->next) {
		d = strcmp((*p)->collection, collection);
		d = d ? d : strcmp((*p)->name, name);
		if (d >= 0)
			break;
	}
	return p;
}

static struct stored *api_find(struct fake_api *api, const char *collection, const char *name)
{
	struct stored *s = *api_slot(api, collection, name);

	return s && str_eq(s->collection, collection) && str_eq(s->name, name) ? s : NULL;
}

static struct json_object *meta_of(struct json_object *o)
{
	struct json_object *m = json_get_obj(o, "metadata");

	if (!m)
		json_add(o, "metadata", m = json_obj());
	return m;
}

static bool member_same(struct json_object *a, struct json_object *b, const char *name)
{
	struct json_object *x = NULL, *y = NULL;

	json_object_object_get_ex(a, name, &x);
	json_object_object_get_ex(b, name, &y);
	return json_object_equal(x, y);
}

/* Equal apart from metadata and status: what generation counts. */
static bool spec_same(struct json_object *a, struct json_object *b)
{
	json_object_object_foreach (a, name, value) {
		(void)value;
		if (strcmp(name, "metadata") != 0 && strcmp(name, "status") != 0 &&
			!member_same(a, b, name))
			return false;
	}
	return json_object_object_length(a) == json_object_object_length(b) ||
	       member_same(a, b, "spec");
}

static void set_status(struct json_object *o, struct json_object *from)
{
	struct json_object *status = from ? json_get(from, "status") : NULL;

	json_object_object_del(o, "status");
	if (status)
		json_add(o, "status", json_copy(status));
}

static bool is_ours(const char *collection)
{
	return strstr(collection, "/apis/trusted-execution-clusters.io/") != NULL;
}

static bool has_generation(const char *collection)
{
	return is_ours(collection) || str_starts(collection, "/apis/apps/") ||
	       str_starts(collection, "/apis/batch/");
}

static void stored_free(struct stored *s)
{
	json_object_put(s->o);
	json_object_put(s->applied[0]);
	json_object_put(s->applied[1]);
	free(s->collection);
	free(s->name);
	free(s);
}

static void api_watch_pump(struct call *c);

static void api_note(
	struct fake_api *api, const char *type, const char *collection, struct json_object *o)
{
	struct change *h;

	api->history = xreallocarray(api->history, api->n_history + 1, sizeof(*h));
	h = &api->history[api->n_history++];
	*h = (struct change){api->rv, type, xstrdup(collection), json_object_get(o)};
	for (size_t i = 0; i < api->n_watches; i++)
		api_watch_pump(api->watches[i]);
}

static void api_stamp(struct fake_api *api, const char *collection, struct json_object *o,
	struct json_object *was)
{
	struct json_object *m = meta_of(o);
	char rv[24];

	snprintf(rv, sizeof(rv), "%" PRIu64, ++api->rv);
	json_add_str(m, "resourceVersion", rv);
	if (has_generation(collection))
		json_add_int(m, "generation",
			json_get_int(was, "metadata/generation", 0) +
				(!was || !spec_same(was, o) ||
					(json_get(m, "deletionTimestamp") &&
						!json_get(was, "metadata/deletionTimestamp"))));
}

/* What the server decides about a new object, whatever the client says. */
static void api_born(const char *collection, const char *name, struct json_object *o)
{
	struct json_object *m = meta_of(o);
	const char *ns = strstr(collection, "/namespaces/");
	char uid[UUID_TEXT_LEN + 1], now[CLOCK_RFC3339_LEN];
	cleanup_free char *ns_name = ns ? percent_decode(ns + 12, strcspn(ns + 12, "/")) : NULL;

	uuid_new_v4(uid);
	clock_format(clock_wall_s(), now);
	json_add_str(m, "name", name);
	json_add_str(m, "namespace", ns_name);
	if (!json_get(m, "uid"))
		json_add_str(m, "uid", uid);
	if (!json_get(m, "creationTimestamp"))
		json_add_str(m, "creationTimestamp", now);
}

/* Stores o, counts and tells; nothing at all when it is what is there. Returns the object as stored
 * or as last seen, borrowed. */
static struct json_object *api_commit(
	struct fake_api *api, const char *collection, const char *name, struct json_object *take_o)
{
	struct stored **p = api_slot(api, collection, name), *s = api_find(api, collection, name);
	struct json_object *finalizers = json_get_arr(take_o, "metadata/finalizers");
	bool added = s == NULL;

	if (added) {
		s = xcalloc(1, sizeof(*s));
		s->collection = xstrdup(collection);
		s->name = xstrdup(name);
		s->next = *p;
		*p = s;
		api_born(collection, name, take_o);
	} else {
		json_add_str(meta_of(take_o), "resourceVersion",
			json_get_str(s->o, "metadata/resourceVersion"));
		if (json_object_equal(s->o, take_o)) {
			json_object_put(take_o);
			return s->o;
		}
	}
	api_stamp(api, collection, take_o, s->o);
	json_object_put(s->o);
	s->o = take_o;
	if (json_get(take_o, "metadata/deletionTimestamp") &&
		(!finalizers || json_object_array_length(finalizers) == 0)) {
		api_note(api, "DELETED", collection, take_o); /* the history keeps it alive */
		*p = s->next;
		stored_free(s);
	} else {
		api_note(api, added ? "ADDED" : "MODIFIED", collection, take_o);
	}
	return take_o;
}

static void api_remove(struct fake_api *api, struct stored *s)
{
	struct json_object *o = json_copy(s->o);
	char now[CLOCK_RFC3339_LEN];

	clock_format(clock_wall_s(), now);
	if (!json_get(o, "metadata/deletionTimestamp"))
		json_add_str(meta_of(o), "deletionTimestamp", now);
	api_commit(api, s->collection, s->name, o);
}

#endif
