/* SPDX-License-Identifier: MIT */
/*
 * Each piece is a new scan after the last object given. The end of a page is found first, with a
 * scan that reads no bodies: its token is wanted before its objects.
 */
#include "config.h"

#include "tec/store/list.h"

#include <inttypes.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#include "store_internal.h"

void store_list_free(struct store_list_cursor *c)
{
	if (!c)
		return;
	free(c->after_ns);
	free(c->after_name);
	free(c->next);
	free(c);
}

/* ---- continue tokens: {"v":"meta.k8s.io/v1","rv":1,"start":"ns/name\0"} in base64url */

/* Encode a continue token. consistent false: version -1, which continues in the current version. */
static char *token_of(uint64_t rv, bool consistent, const char *ns, const char *name)
{
	cleanup_strbuf struct strbuf json = STRBUF_INIT;
	struct strbuf out = STRBUF_INIT;

	if (consistent)
		strbuf_addf(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%" PRIu64, rv);
	else
		strbuf_adds(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":-1");
	/* The start key ends with a NUL, which makes it the first key after this object, as in
	 * kube-apiserver. */
	strbuf_addf(&json, ",\"start\":\"%s%s%s\\u0000\"}", ns, ns[0] ? "/" : "", name);
	bytes_to_b64url(&out, json.data, json.len);
	return strbuf_steal(&out);
}

/* Decode a continue token and start after its object. False: it is malformed or of another
 * namespace. */
static bool read_token(struct store_list_cursor *c, const char *token, int64_t *rv)
{
	static const struct json_limits limits = {4096, 4, 16, true};
	cleanup_free uint8_t *text = NULL;
	cleanup_json struct json_object *o = NULL;
	struct err ignored = ERR_INIT;
	struct json_object *start;
	const char *s, *slash;
	size_t len = 0;

	if (bytes_from_b64url(token, strlen(token), &text, &len) < 0)
		return false;
	o = json_parse((char *)text, len, &limits, &ignored);
	start = o ? json_get(o, "start") : NULL;
	if (!str_eq(json_get_str(o, "v"), "meta.k8s.io/v1") ||
		!json_object_is_type(start, json_type_string) ||
		!json_object_is_type(json_get(o, "rv"), json_type_int))
		return false;
	*rv = json_get_int(o, "rv", 0);
	s = json_object_get_string(start); /* up to the NUL byte */
	slash = strchr(s, '/');
	c->after_ns = slash ? xstrndup(s, (size_t)(slash - s)) : xstrdup("");
	c->after_name = xstrdup(slash ? slash + 1 : s);
	if (!*c->after_name || strchr(c->after_name, '/') || *rv == 0 || *rv < -1)
		return false;
	return !c->of.ns || str_eq(c->of.ns, c->after_ns);
}

/* Choose the version. Unless an exact one is asked for, it is the current one, which is never older
 * than the version that the client gave. */
static enum store_list_state choose_version(struct store_list_cursor *c)
{
	uint64_t now = store_db_rv(c->s->db);
	int64_t token_rv = 0;

	if (c->of.token && !read_token(c, c->of.token, &token_rv))
		return STORE_LIST_BAD_TOKEN;
	c->at = token_rv > 0 ? (uint64_t)token_rv : c->of.exact ? c->of.rv : now;
	if (c->of.rv > now || c->at > now) {
		c->at = c->of.rv > now ? c->of.rv : c->at;
		return STORE_LIST_FUTURE;
	}
	if (c->at >= store_db_oldest(c->s->db))
		return STORE_LIST_OK;
	if (c->of.token) /* as in kube-apiserver */
		c->next = token_of(0, false, c->after_ns, c->after_name);
	return STORE_LIST_EXPIRED;
}

/* ---- pages */

struct page {
	struct store_list_cursor *c;
	uint64_t n;      /* objects counted */
	char *ns, *name; /* owned: the last object of the page */
};

/* Count one object. The first one beyond the limit shows that there is a next page. */
static bool count_item(void *arg, const struct store_version *v)
{
	struct page *p = arg;

	if (!store_selector_matches(p->c->of.select, v->key.ns, v->key.name, v->meta))
		return true;
	if (p->n++ < p->c->of.limit) {
		free(p->ns);
		free(p->name);
		p->ns = xstrdup(v->key.ns);
		p->name = xstrdup(v->key.name);
		return true;
	}
	p->c->more = true;
	/* remainingItemCount is left out with a selector; for the current version, which table
	 * object holds, SQLite counts. */
	return p->c->of.select == NULL && p->c->at != store_db_rv(p->c->s->db);
}

static struct store_scan scan_of(const struct store_list_cursor *c, bool no_body)
{
	return (struct store_scan){.resource = c->of.resource,
		.ns = c->of.ns,
		.after_ns = c->after_ns,
		.after_name = c->after_name,
		.at = c->at,
		.no_body = no_body};
}

/* Find out whether there is a next page, where it begins and how many objects are left. */
static int find_page(struct store_list_cursor *c, struct err *err)
{
	struct store_scan scan = scan_of(c, true);
	struct page p = {.c = c};
	int rc;

	/* Without a selector the keys are enough to count; with one, the stored labels are needed
	 * too. */
	scan.only_keys = c->of.select == NULL;
	rc = store_db_scan(c->s->db, &scan, count_item, &p, err);

	if (rc >= 0 && c->more && !c->of.select && c->at == store_db_rv(c->s->db)) {
		const struct store_key last = {c->of.resource, p.ns, p.name};

		rc = store_db_count_after(c->s->db, &last, c->of.ns, &p.n, err);
		p.n += c->of.limit;
	}
	if (rc >= 0 && c->more) {
		c->next = token_of(c->at, true, p.ns, p.name);
		c->left = p.n - c->of.limit;
	}
	free(p.ns);
	free(p.name);
	return rc < 0 ? -1 : 0;
}

/* A list without a limit needs no look at its end. */
enum store_list_state store_list_start(struct store_objects *s, const struct store_list_options *of,
	struct store_list_cursor **out, struct err *err)
{
	struct store_list_cursor *c = *out = xcalloc(1, sizeof(*c));
	enum store_list_state state;

	c->s = s;
	c->of = *of;
	state = choose_version(c);
	c->of.token = NULL; /* only the start needs it */
	if (state == STORE_LIST_OK && c->of.limit > 0 && find_page(c, err) < 0) {
		(void)store_objects_failed(s, err);
		return STORE_LIST_FAILED;
	}
	return state;
}

/* ---- objects */

struct take {
	struct store_list_cursor *c;
	store_version_fn fn;
	void *arg;
	bool enough; /* fn wants no more */
	bool full;   /* it ended before the list or page did */
};

static bool ends_page(const struct store_list_cursor *c)
{
	return c->of.limit > 0 && c->given == c->of.limit;
}

/* The next object then ends the scan. */
static bool has_enough(const struct take *t)
{
	return t->enough || ends_page(t->c);
}

/* Filter the scan by the selector. With enough, anything is wanted, so that the scan ends at the
 * next object instead of searching for one that matches. */
static bool is_wanted(void *arg, const struct store_version *v)
{
	const struct take *t = arg;

	return has_enough(t) ||
	       store_selector_matches(t->c->of.select, v->key.ns, v->key.name, v->meta);
}

/* Give one object, and remember it as the place to continue after. */
static bool give(void *arg, const struct store_version *v)
{
	struct take *t = arg;
	struct store_list_cursor *c = t->c;

	if (has_enough(t)) {
		t->full = !ends_page(c);
		return false;
	}
	free(c->after_ns);
	free(c->after_name);
	c->after_ns = xstrdup(v->key.ns);
	c->after_name = xstrdup(v->key.name);
	t->enough = !t->fn(t->arg, v);
	c->given++;
	return true;
}

/* Between two pieces the version may be compacted, which ends the list with an error in the
 * middle. */
int store_list_take(struct store_list_cursor *c, store_version_fn fn, void *arg, struct err *err)
{
	struct take t = {c, fn, arg, false, false};
	struct store_scan scan;
	cleanup_free char *after_ns = NULL, *after_name = NULL;

	if (c->ended)
		return 0;
	if (c->begun && c->at < store_db_oldest(c->s->db))
		return err_set_http(err, ERR_GONE, 410, "the version of the list was compacted");
	/* Commit first: if the open transaction were rolled back later, objects that it deleted
	 * would be missing from this piece. If it fails, it is rolled back now, and the list goes
	 * on. */
	if (c->begun && c->s->open && store_objects_commit(c->s, err) < 0)
		*err = (struct err)ERR_INIT;
	c->begun = true;
	scan = scan_of(c, false);
	scan.wants = c->of.select ? is_wanted : NULL;
	scan.after_ns = after_ns = xstrdup(c->after_ns); /* give() replaces c->after_* */
	scan.after_name = after_name = xstrdup(c->after_name);
	if (store_db_scan(c->s->db, &scan, give, &t, err) < 0)
		return -1;
	c->ended = !t.full;
	return t.full;
}
