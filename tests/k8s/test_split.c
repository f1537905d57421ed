/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/k8s/split.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"

struct taken {
	struct strbuf text; /* items, one a line */
	size_t n, stop_at;
};

static int take(void *arg, const char *item, size_t len, struct err *err)
{
	struct taken *t = arg;

	strbuf_add(&t->text, item, len);
	strbuf_addc(&t->text, '\n');
	if (++t->n == t->stop_at)
		return err_set(err, ERR_TRANSIENT, "enough");
	return 0;
}

/* Every piece in its own allocation, so that ASan sees a read beyond it. */
static int feed(struct k8s_split *s, const char *text, size_t len, size_t piece, struct err *err)
{
	for (size_t off = 0; off < len; off += piece) {
		size_t n = piece < len - off ? piece : len - off;
		cleanup_free char *copy = xmalloc(n);

		memcpy(copy, text + off, n);
		if (k8s_split_feed(s, copy, n, err) < 0)
			return -1;
	}
	return 0;
}

static const size_t pieces[] = {1, 2, 3, 7, 64, 100000};

static void expect_items(
	const char *text, bool watch, const char *items, const char *rv, const char *cont)
{
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct taken t = {.text = STRBUF_INIT};
		struct k8s_split *s = k8s_split_new(
			watch ? K8S_SPLIT_WATCH : K8S_SPLIT_LIST, NULL, i & 1, take, &t);
		struct err err = ERR_INIT;

		cr_expect_eq(feed(s, text, strlen(text), pieces[i], &err), 0, "%zu: %s", pieces[i],
			err.text);
		cr_expect_eq(k8s_split_end(s, &err), 0, "%zu: %s", pieces[i], err.text);
		cr_expect_str_eq(strbuf_str(&t.text), items, "pieces of %zu", pieces[i]);
		if (!watch) {
			cr_expect_str_eq(k8s_split_rv(s), rv);
			cr_expect_str_eq(k8s_split_continue(s), cont);
		}
		k8s_split_free(s);
		strbuf_fini(&t.text);
	}
}

Test(k8s_split, items_of_a_list_are_cut_out)
{
	expect_items(
		"{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"12\",\"continue\":\"tok/en=\"},"
		"\"items\":[{\"a\":[1,{\"items\":[{}]}]} , {\"b\":\"]}{[\\\"\\\\\"}\n,{}]}",
		false, "{\"a\":[1,{\"items\":[{}]}]}\n{\"b\":\"]}{[\\\"\\\\\"}\n{}\n", "12",
		"tok/en=");
	expect_items(" { \"items\" : [ ] , \"metadata\" : { \"resourceVersion\" : \"7\" } } \n",
		false, "", "7", "");
	expect_items(
		"{\"items\":null,\"metadata\":{\"resourceVersion\":\"7\"}}", false, "", "7", "");
	/* metadata behind items, and a metadata that is not the list's */
	expect_items(
		"{\"x\":{\"metadata\":{\"resourceVersion\":\"1\"}},\"items\":[{\"metadata\":{\"resourceVersion\":\"2\"}}],"
		"\"metadata\":{\"selfLink\":\"\",\"resourceVersion\":\"3\"}}",
		false, "{\"metadata\":{\"resourceVersion\":\"2\"}}\n", "3", "");
}

Test(k8s_split, managed_fields_become_null)
{
	static const char meta[] = "\"metadata\":{\"resourceVersion\":\"1\"}";
	static const struct {
		const char *in, *out;
	} table[] = {
		{"{\"metadata\":{\"managedFields\":[{\"f:a\":{\"]\":\"}\\\"\"}}],\"name\":\"x\"}}",
			"{\"metadata\":{\"managedFields\":null,\"name\":\"x\"}}"},
		{"{\"metadata\":{\"name\":\"x\",\"managedFields\":[]}}",
			"{\"metadata\":{\"name\":\"x\",\"managedFields\":null}}"},
		{"{\"metadata\":{\"managedFields\" : null , \"a\":1}}",
			"{\"metadata\":{\"managedFields\" :null, \"a\":1}}"},
		{"{\"metadata\":{\"managedFields\":\"x,}\",\"a\":1}}",
			"{\"metadata\":{\"managedFields\":null,\"a\":1}}"},
		{"{\"metadata\":{\"managedFields\":17}}",
			"{\"metadata\":{\"managedFields\":null}}"},
		/* elsewhere it stays */
		{"{\"spec\":{\"managedFields\":[1]}}", "{\"spec\":{\"managedFields\":[1]}}"},
		{"{\"spec\":{\"metadata\":{\"managedFields\":[1]}}}",
			"{\"spec\":{\"metadata\":{\"managedFields\":[1]}}}"},
		{"{\"metadata\":{\"x\":{\"managedFields\":[1]}}}",
			"{\"metadata\":{\"x\":{\"managedFields\":[1]}}}"},
		{"{\"metadata\":{\"a\":\"managedFields\",\"b\":[\"managedFields\"]}}",
			"{\"metadata\":{\"a\":\"managedFields\",\"b\":[\"managedFields\"]}}"},
		{"{\"metadata\":{\"managedFields2\":[1]}}",
			"{\"metadata\":{\"managedFields2\":[1]}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		cleanup_free char *list =
			xasprintf("{%s,\"items\":[%s,%s]}", meta, table[i].in, table[i].in);
		cleanup_free char *items = xasprintf("%s\n%s\n", table[i].out, table[i].out);
		cleanup_free char *lines =
			xasprintf("{\"type\":\"ADDED\",\"object\":%s}\n{\"object\":%s}\n",
				table[i].in, table[i].in);
		cleanup_free char *events =
			xasprintf("{\"type\":\"ADDED\",\"object\":%s}\n{\"object\":%s}\n",
				table[i].out, table[i].out);

		expect_items(list, false, items, "1", "");
		expect_items(lines, true, events, NULL, NULL);
	}
}

Test(k8s_split, watch_events_need_no_newline_to_be_complete)
{
	struct taken t = {.text = STRBUF_INIT};
	struct k8s_split *s = k8s_split_new(K8S_SPLIT_WATCH, NULL, false, take, &t);
	struct err err = ERR_INIT;

	cr_assert_eq(k8s_split_feed(s, "{\"type\":\"BOOKMARK\"}", 19, &err), 0);
	cr_expect_eq(t.n, 1);
	cr_assert_eq(k8s_split_feed(s, "\r\n\n{\"half\":", 11, &err), 0);
	cr_expect_eq(k8s_split_end(s, &err), -1);
	cr_expect_eq(err.kind, ERR_TRANSIENT);
	k8s_split_free(s);
	strbuf_fini(&t.text);
}

Test(k8s_split, malformed_text_is_refused_at_every_read_boundary)
{
	static const struct {
		const char *text;
		bool watch;
		enum err_kind kind;
	} table[] = {
		{"", false, ERR_TRANSIENT},
		{"{", false, ERR_TRANSIENT},
		{"{\"items\":[{}", false, ERR_TRANSIENT},
		{"{\"items\":[{\"a\":\"", false, ERR_TRANSIENT},
		{"{}", false, ERR_INVALID},
		{"{\"metadata\":{\"resourceVersion\":\"1\"}}", false, ERR_INVALID},
		{"{\"items\":[]}", false, ERR_INVALID},
		{"{\"items\":[],\"metadata\":{\"resourceVersion\":\"\"}}", false, ERR_INVALID},
		{"{\"items\":[],\"metadata\":{\"resourceVersion\":5}}", false, ERR_INVALID},
		{"{\"items\":[],\"metadata\":{\"resourceVersion\":\"a\\\"b\"}}", false,
			ERR_INVALID},
		{"{\"items\":[],\"metadata\":{\"resourceVersion\":\"1 2\"}}", false, ERR_INVALID},
		{"{\"items\":{},\"metadata\":{\"resourceVersion\":\"1\"}}", false, ERR_INVALID},
		{"{\"items\":\"x\",\"metadata\":{\"resourceVersion\":\"1\"}}", false, ERR_INVALID},
		{"{\"items\":7,\"metadata\":{\"resourceVersion\":\"1\"}}", false, ERR_INVALID},
		{"{\"items\":[1],\"metadata\":{\"resourceVersion\":\"1\"}}", false, ERR_INVALID},
		{"{\"items\":[\"x\"],\"metadata\":{\"resourceVersion\":\"1\"}}", false,
			ERR_INVALID},
		{"{\"items\":[[]],\"metadata\":{\"resourceVersion\":\"1\"}}", false, ERR_INVALID},
		{"{\"items\":[],\"items\":[],\"metadata\":{\"resourceVersion\":\"1\"}}", false,
			ERR_INVALID},
		{"{\"items\":[{]}", false, ERR_INVALID},
		{"[]", false, ERR_INVALID},
		{"\"x\"", false, ERR_INVALID},
		{"null", false, ERR_INVALID},
		{"<html>", false, ERR_INVALID},
		{"}", false, ERR_INVALID},
		{",", false, ERR_INVALID},
		{"{\"items\":[],\"metadata\":{\"resourceVersion\":\"1\"}}{}", false, ERR_INVALID},
		{"[1]", true, ERR_INVALID},
		{"x", true, ERR_INVALID},
		{"{\"a\":1}]", true, ERR_INVALID},
		{"{\"a\":[}", true, ERR_INVALID},
		{"{\"a\":\"", true, ERR_TRANSIENT},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
			struct taken t = {.text = STRBUF_INIT};
			struct k8s_split *s =
				k8s_split_new(table[i].watch ? K8S_SPLIT_WATCH : K8S_SPLIT_LIST,
					NULL, false, take, &t);
			struct err err = ERR_INIT;
			int rc = feed(s, table[i].text, strlen(table[i].text), pieces[p], &err);

			if (rc == 0)
				rc = k8s_split_end(s, &err);
			cr_expect_eq(rc, -1, "%s", table[i].text);
			cr_expect_eq(err.kind, table[i].kind, "%s: %s", table[i].text, err.text);
			k8s_split_free(s);
			strbuf_fini(&t.text);
		}
	}
}

Test(k8s_split, depth_and_size_are_bounded)
{
	struct taken t = {.text = STRBUF_INIT};
	struct k8s_split *s = k8s_split_new(K8S_SPLIT_WATCH, NULL, false, take, &t);
	struct err err = ERR_INIT;
	cleanup_free char *mib = xmalloc(1 << 20);
	size_t fed = 0;

	memset(mib, '[', 1 << 20);
	cr_assert_eq(k8s_split_feed(s, "{\"a\":", 5, &err), 0);
	cr_expect_eq(k8s_split_feed(s, mib, 1 << 20, &err), -1);
	cr_expect_eq(err.kind, ERR_INVALID);
	err_clear(&err);
	cr_expect_eq(k8s_split_feed(s, "{", 1, &err), -1, "an error stays");
	k8s_split_free(s);

	memset(mib, 'a', 1 << 20);
	for (int cut_out = 0; cut_out < 2; cut_out++) {
		err_clear(&err);
		s = k8s_split_new(K8S_SPLIT_LIST, NULL, false, take, &t);
		fed = 0;
		cr_assert_eq(feed(s,
				     cut_out ? "{\"items\":[{\"metadata\":{\"managedFields\":\""
					     : "{\"items\":[{\"a\":\"",
				     cut_out ? 40 : 16, 100, &err),
			0);
		while (fed < 100 && k8s_split_feed(s, mib, 1 << 20, &err) == 0)
			fed++;
		cr_expect_leq(fed, 65, "%zu MiB taken", fed);
		cr_expect_eq(err.kind, ERR_INVALID);
		k8s_split_free(s);
	}
	strbuf_fini(&t.text);
}

/* ---- what nobody reads is cut out */

static const char *const keep_labels[] = {"app", NULL};
static const char *const keep_ours[] = {"ours/*", "app", NULL};
static const char *const keep_data[] = {"root", NULL};
static const char *const keep_owner[] = {"uid", "controller", NULL};
static const char *const keep_spec[] = {"replicas", NULL};
static const char *const keep_status[] = {"ready", NULL};
static const struct kobj_keep keep = {
	keep_labels, keep_ours, keep_data, keep_owner, keep_spec, keep_status, true};
#define U64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

Test(k8s_split, members_that_nobody_reads_are_cut_out)
{
	static const struct {
		const char *in, *out;
	} table[] = {
		{"{\"data\":{\"root\":\"x\"}}", "{\"data\":{\"root\":\"x\"}}"},
		/* the first stays without its value: one can see that there is one */
		{"{\"data\":{\"a\":\"x\",\"b\":\"y\",\"root\":\"x\",\"c\":\"z\"}}",
			"{\"data\":{\"a\":null,\"root\":\"x\"}}"},
		{"{\"data\":{\"root\":\"x\",\"c\":\"z\"}}",
			"{\"data\":{\"root\":\"x\",\"c\":null}}"},
		{"{\"data\":{ \"a\" : \"x\" , \"b\" : \"y\" , \"root\" : \"x\" } }",
			"{\"data\":{ \"a\" :null, \"root\" : \"x\" } }"},
		{"{\"binaryData\":{\"a\":\"\\u0001\"},\"stringData\":{\"b\":\"}{\",\"d\":{\"e\":[{},1]},\"f\":1}}",
			"{\"binaryData\":{\"a\":null},\"stringData\":{\"b\":null}}"},
		{"{\"metadata\":{\"labels\":{\"x\":\"y\",\"app\":\"kbs\",\"z\":\"y\"},\"annotations\":"
		 "{\"ours/a\":\"1\",\"other/a\":\"2\",\"other/b\":\"3\",\"app\":\"4\",\"ours\":\"5\"},\"name\":\"n\"}}",
			"{\"metadata\":{\"labels\":{\"x\":null,\"app\":\"kbs\"},\"annotations\":"
			"{\"ours/a\":\"1\",\"other/a\":null,\"app\":\"4\"},\"name\":\"n\"}}"},
		/* a name written with escapes is none that we know */
		{"{\"data\":{\"r\\u006fot\":\"x\",\"b\":1}}", "{\"data\":{\"r\\u006fot\":null}}"},
		{"{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v\",\"kind\":\"k\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true},"
		 "{\"uid\" : \"\",\"kind\":\"k\"},{\"uid\":\"" U64 U64
		 "\"},{\"uid\":\"\\u0001\"},{\"uid\":{\"uid\":\"x\"}},{\"uid\":7},[\"uid\"]]}}",
			"{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":null,\"uid\":\"u\",\"controller\":true},"
			"{\"uid\" :null,\"kind\":null},{\"uid\":null},{\"uid\":null},{\"uid\":null},{\"uid\":null},[\"uid\"]]}}"},
		/* elsewhere they stay */
		{"{\"more\":{\"data\":{\"a\":1},\"metadata\":{\"labels\":{\"x\":\"y\"}}}}",
			"{\"more\":{\"data\":{\"a\":1},\"metadata\":{\"labels\":{\"x\":\"y\"}}}}"},
		{"{\"spec\":{\"replicas\":2,\"template\":{\"spec\":{\"replicas\":3}},\"a\":[1]},"
		 "\"status\":{\"conditions\":[{\"type\":\"x\"}],\"ready\":1,\"b\":2}}",
			"{\"spec\":{\"replicas\":2,\"template\":null},"
			"\"status\":{\"conditions\":null,\"ready\":1}}"},
		{"{\"metadata\":{\"spec\":{\"a\":1}},\"data\":{\"root\":{\"status\":{\"a\":1}}}}",
			"{\"metadata\":{\"spec\":{\"a\":1}},\"data\":{\"root\":{\"status\":{\"a\":1}}}}"},
		{"{\"spec\":[{\"a\":1}],\"status\":null}",
			"{\"spec\":[{\"a\":1}],\"status\":null}"},
		{"{\"data\":{\"root\":{\"a\":1,\"b\":2}},\"labels\":{\"x\":1}}",
			"{\"data\":{\"root\":{\"a\":1,\"b\":2}},\"labels\":{\"x\":1}}"},
		{"{\"metadata\":{\"managedFields\":[{\"f:a\":{}}],\"name\":\"x\"}}",
			"{\"metadata\":{\"managedFields\":[{\"f:a\":{}}],\"name\":\"x\"}}"},
		{"{\"data\":[\"a\",\"b\"],\"metadata\":{\"labels\":null,\"annotations\":{}}}",
			"{\"data\":[\"a\",\"b\"],\"metadata\":{\"labels\":null,\"annotations\":{}}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		cleanup_free char *line = xasprintf("{\"object\":%s}\n", table[i].out);
		cleanup_free char *wrapped = xasprintf("{\"object\":%s}", table[i].in);

		for (size_t k = 0; k < 2 * ARRAY_LEN(pieces); k++) {
			bool watch = k & 1;
			const char *in = watch ? wrapped : table[i].in;
			struct taken t = {.text = STRBUF_INIT};
			struct k8s_split *s = k8s_split_new(
				watch ? K8S_SPLIT_WATCH : K8S_SPLIT_OBJECT, &keep, false, take, &t);
			struct err err = ERR_INIT;

			cr_assert_eq(feed(s, in, strlen(in), pieces[k / 2], &err), 0);
			cr_assert_eq(k8s_split_end(s, &err), 0);
			if (!watch)
				strbuf_addc(&t.text, '\n');
			cr_expect(watch ? str_eq(strbuf_str(&t.text), line)
					: strncmp(strbuf_str(&t.text), table[i].out,
						  strlen(table[i].out)) == 0,
				"%zu: %s", i, strbuf_str(&t.text));
			k8s_split_free(s);
			strbuf_fini(&t.text);
		}
	}
}

/* ---- what is too large */

struct told {
	struct k8s_split *s;
	struct strbuf text; /* "type name uid rv deleting" of what is too large, a line each */
	size_t n_items;
};

static int tell(void *arg, const char *item, size_t len, struct err *err)
{
	struct told *t = arg;
	struct k8s_split_item seen = k8s_split_item(t->s);

	t->n_items += item != NULL;
	if (!item)
		strbuf_addf(&t->text, "%s %s %s %s %d\n", seen.type, seen.name, seen.uid, seen.rv,
			seen.deleting);
	return 0;
}

#define META(more) "\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"7\"" more "}"

Test(k8s_split, an_item_too_large_is_read_to_its_end)
{
	static const struct {
		const char *head, *tail, *says;
		bool watch;
	} table[] = {
		{"{\"items\":[{\"s\":\"",
			"\"," META("") "},{}],\"metadata\":{\"resourceVersion\":\"9\"}}",
			" a u 7 0\n", false},
		{"{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{" META(
			 ",\"x\":{\"name\":\"b\"}") ",\"s\":[{\"uid\":\"",
			"\"}]},{}]}", " a u 7 0\n", false},
		{"{\"type\":\"MODIFIED\",\"object\":{\"data\":{\"root\":\"",
			"\"}," META(",\"deletionTimestamp\":\"now\"") "}}\n{}",
			"MODIFIED a u 7 1\n", true},
		{"{\"object\":{" META("") ",\"s\":\"", "\"},\"type\":\"DELETED\"}\n{}",
			"DELETED a u 7 0\n", true},
		{"{\"object\":{\"s\":\"", "\"},\"type\":\"ADDED\"}{}", "ADDED    0\n", true},
	};
	static const char *const filling[] = {"x", "\\u0001", "\\\"", "}]"};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(table) * ARRAY_LEN(filling); i++) {
		const char *fill = filling[i / ARRAY_LEN(table)];
		struct told t = {.text = STRBUF_INIT};
		cleanup_strbuf struct strbuf text = STRBUF_INIT;
		size_t k = i % ARRAY_LEN(table);

		t.s = k8s_split_new(
			table[k].watch ? K8S_SPLIT_WATCH : K8S_SPLIT_LIST, &keep, true, tell, &t);
		strbuf_adds(&text, table[k].head);
		while (text.len < (3u << 20))
			strbuf_adds(&text, fill);
		strbuf_adds(&text, table[k].tail);
		cr_assert_eq(feed(t.s, text.data, text.len, 60000 + i, &err), 0, "%s", err.text);
		cr_assert_eq(k8s_split_end(t.s, &err), 0, "%zu: %s", i, err.text);
		cr_expect_str_eq(strbuf_str(&t.text), table[k].says, "%zu", i);
		cr_expect_eq(t.n_items, 1, "what follows is read again");
		k8s_split_free(t.s);
		strbuf_fini(&t.text);
	}
}

Test(k8s_split, what_is_cut_out_does_not_count)
{
	struct err err = ERR_INIT;
	struct told t = {.text = STRBUF_INIT};
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_adds(&text, "{\"data\":{\"root\":\"x\"");
	for (int i = 0; i < 20; i++) {
		strbuf_addf(&text, ",\"m%d\":\"", i);
		for (int n = 0; n < 50000; n++)
			strbuf_adds(&text, "\\u0001");
		strbuf_adds(&text, "\"");
	}
	strbuf_adds(&text, "}," META("") "}");
	t.s = k8s_split_new(K8S_SPLIT_OBJECT, &keep, false, tell, &t);
	cr_assert_eq(feed(t.s, text.data, text.len, 4096, &err), 0, "%s", err.text);
	cr_assert_eq(k8s_split_end(t.s, &err), 0);
	cr_expect_eq(t.n_items, 1);
	k8s_split_free(t.s);
	strbuf_fini(&t.text);
}

/* Cut short at every byte: an error, never an item. */
Test(k8s_split, a_truncated_text_is_never_whole)
{
	static const char text[] =
		"{\"type\":\"ADDED\",\"object\":{\"data\":{\"a\":\"\\u0001\",\"b\":\"y\",\"root\":"
		"\"x\"},\"metadata\":{\"labels\":{\"c\":\"d\",\"app\":\"e\"},\"name\":\"n\"}}}";

	for (size_t len = 1; len < strlen(text); len++) {
		struct told t = {.text = STRBUF_INIT};
		struct err err = ERR_INIT;

		t.s = k8s_split_new(K8S_SPLIT_WATCH, &keep, false, tell, &t);
		cr_assert_eq(feed(t.s, text, len, 5, &err), 0);
		cr_expect_eq(k8s_split_end(t.s, &err), -1, "%zu", len);
		cr_expect_eq(t.n_items, 0);
		k8s_split_free(t.s);
		strbuf_fini(&t.text);
	}
}

Test(k8s_split, an_item_may_be_large)
{
	struct taken t = {.text = STRBUF_INIT};
	struct k8s_split *s = k8s_split_new(K8S_SPLIT_LIST, NULL, false, take, &t);
	struct err err = ERR_INIT;
	struct strbuf list = STRBUF_INIT;

	strbuf_adds(&list, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"a\":\"");
	for (int i = 0; i < 150; i++)
		strbuf_addf(&list, "%010000d", i);
	strbuf_adds(&list, "\"}]}");
	cr_expect_eq(feed(s, list.data, list.len, 16384, &err), 0, "%s", err.text);
	cr_expect_eq(k8s_split_end(s, &err), 0);
	cr_expect_eq(t.text.len, 1500000 + 9);
	k8s_split_free(s);
	strbuf_fini(&list);
	strbuf_fini(&t.text);
}

Test(k8s_split, the_callback_can_stop_it)
{
	struct taken t = {.text = STRBUF_INIT, .stop_at = 2};
	struct k8s_split *s = k8s_split_new(K8S_SPLIT_LIST, NULL, false, take, &t);
	struct err err = ERR_INIT;

	cr_expect_eq(k8s_split_feed(s, "{\"items\":[{},{},{},{}]", 22, &err), -1);
	cr_expect_eq(t.n, 2);
	cr_expect_str_eq(err.text, "enough");
	k8s_split_free(s);
	strbuf_fini(&t.text);
}
