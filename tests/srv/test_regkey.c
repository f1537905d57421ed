/* SPDX-License-Identifier: MIT */
/* The registration key as Secrets that the leader makes, rotates and deletes. */
#include "config.h"

#include "srv/srv_testing.h"
#include "tec/rats/ticket.h"

TestSuite(srv_regkey, .timeout = SUITE_LIMIT);

#define AT_KEY                                                                                             \
	"{\"publicTrusteeAddr\":\"t.example.org\",\"publicAttestationKeyRegisterAddr\":\"a.example.org\"," \
	"\"registration\":{\"machine\":\"AtKey\"}}"

/* A listener alone. */
struct bare {
	struct loop *loop;
	struct fake_api *api;
	struct fake_transport *ft;
	struct srv_regkey *k;
	struct model_cluster c;
	char hash[2][SHA256_HEX_LEN + 1]; /* announced, of the current one and the previous one */
};

static struct srv_regkey *listener(struct bare *b)
{
	struct srv_regkey *k = srv_regkey_new(b->loop, fake_transport_seam(b->ft), NS);

	srv_regkey_want(k);
	srv_regkey_want(k);
	loop_drain(b->loop);
	return k;
}

static void bare_open(struct bare *b)
{
	memset(b, 0, sizeof(*b));
	clock_fake_start(START_MS, START_S);
	b->loop = loop_new();
	b->api = fake_api_new(b->loop);
	b->ft = fake_transport_new(b->loop);
	fake_transport_set_api(b->ft, b->api);
	b->c = (struct model_cluster){.obj.uid = "c-1",
		.pending_ttl_ms = 3600 * 1000,
		.announced = {{RENDER_REGKEY_CURRENT, b->hash[0]},
			{RENDER_REGKEY_PREVIOUS, b->hash[1]}},
		.n_announced = 2};
	b->k = listener(b);
}

static void bare_close(struct bare *b)
{
	srv_regkey_free(b->k);
	fake_transport_free(b->ft);
	fake_api_free(b->api);
	loop_free(b->loop);
	cr_assert_eq(secret_count(), 0, "key material stayed in memory");
	metric_reset_all();
	clock_fake_stop();
}

static void plant(struct bare *b, const char *name, char fill, size_t len)
{
	cleanup_free char *raw = xcalloc(1, len + 1);
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	struct json_object *o = json_obj();

	memset(raw, fill, len);
	bytes_to_b64(&b64, raw, len);
	json_add(o, "metadata", json_add_str(json_obj(), "name", name));
	json_add(o, "data", json_add_str(json_obj(), "key", strbuf_str(&b64)));
	fake_api_put_json(b->api, &kobj_secret, NS, o);
	loop_drain(b->loop);
}

static void announce(struct bare *b, const char *name)
{
	cr_assert(model_content_sha256(fake_api_get(b->api, &kobj_secret, NS, name),
		b->hash[str_eq(name, RENDER_REGKEY_PREVIOUS)]));
}

static void put(struct bare *b, const char *name, char fill, size_t len)
{
	plant(b, name, fill, len);
	announce(b, name);
}

static void drop(struct bare *b, const char *name)
{
	fake_api_delete(b->api, &kobj_secret, NS, name);
	loop_drain(b->loop);
}

Test(srv_regkey, reads_two_secrets_and_a_configmap_by_their_names_alone)
{
	struct bare b;

	bare_open(&b);
	for (size_t i = 0; i < fake_transport_requests(b.ft); i++) {
		const char *path = fake_transport_request(b.ft, i)->path;

		cr_assert(
			strstr(path,
				strstr(path, "/secrets?")
					? "=metadata.name%3Dtec-registration-key"
					: "configmaps?fieldSelector=metadata.name%3Dtec-deleted-ids"),
			"%s", path);
	}
	cr_assert_eq(fake_transport_count(b.ft, "list", "secrets"), 2);
	cr_assert_eq(fake_transport_count(b.ft, "list", "configmaps"), 1);
	cr_assert(srv_regkey_filled(b.k), "none is there, which is known");
	bare_close(&b);
}

Test(srv_regkey, without_the_key_nothing_is_handed_out_or_taken)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct bare b;

	bare_open(&b);
	cr_assert_not(srv_regkey_make(b.k, &b.c, uuid));
	cr_assert_not(srv_regkey_valid(b.k, &b.c, "00000000-0000-8000-8000-000000000000"));
	cr_assert_not(srv_regkey_settled(b.k, &b.c));
	put(&b, RENDER_REGKEY_CURRENT, 'a', 32);
	cr_assert(srv_regkey_settled(b.k, &b.c));
	cr_assert(srv_regkey_make(b.k, &b.c, uuid));
	cr_assert(srv_regkey_valid(b.k, &b.c, uuid));
	b.c.reg_mode = MODEL_REG_MANUAL;
	cr_assert_not(srv_regkey_valid(b.k, &b.c, uuid), "another mode");
	bare_close(&b);
}

/* The record may come before the id, change, go, and have lines that are none. */
Test(srv_regkey, an_id_whose_machine_was_deleted_is_known)
{
	cleanup_free char *text = NULL;
	char uuid[UUID_TEXT_LEN + 1];
	struct bare b;

	bare_open(&b);
	put(&b, RENDER_REGKEY_CURRENT, 'a', 32);
	cr_assert(srv_regkey_make(b.k, &b.c, uuid));
	cr_assert_not(srv_regkey_is_deleted(b.k, uuid));
	text = xasprintf("{\"metadata\":{\"name\":\"tec-deleted-ids\"},\"data\":{\"deleted\":"
			 "\"x\\n1800000000 id %s\\n1800000000 id -\"}}",
		uuid);
	fake_api_put(b.api, &kobj_configmap, NS, text);
	loop_drain(b.loop);
	cr_assert(srv_regkey_is_deleted(b.k, uuid));
	cr_assert(srv_regkey_valid(b.k, &b.c, uuid), "its MAC is");
	cr_assert_not(srv_regkey_is_deleted(b.k, "00000000-0000-8000-8000-000000000000"));
	fake_api_merge(b.api, &kobj_configmap, NS, "tec-deleted-ids", "{\"data\":null}");
	loop_drain(b.loop);
	cr_assert_not(srv_regkey_is_deleted(b.k, uuid));
	bare_close(&b);
}

Test(srv_regkey, only_32_bytes_are_a_key)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct bare b;

	bare_open(&b);
	put(&b, RENDER_REGKEY_CURRENT, 'a', 31);
	cr_assert_not(srv_regkey_make(b.k, &b.c, uuid));
	put(&b, RENDER_REGKEY_CURRENT, 'a', 33);
	cr_assert_not(srv_regkey_make(b.k, &b.c, uuid));
	put(&b, RENDER_REGKEY_CURRENT, 'a', 32);
	cr_assert(srv_regkey_make(b.k, &b.c, uuid));
	put(&b, RENDER_REGKEY_CURRENT, 'b', 5);
	cr_assert(srv_regkey_valid(b.k, &b.c, uuid), "the last good one stays");
	bare_close(&b);
}

Test(srv_regkey, a_secret_that_is_not_announced_is_no_key)
{
	char uuid[UUID_TEXT_LEN + 1], forged[UUID_TEXT_LEN + 1];
	struct srv_regkey *theirs;
	struct bare b;

	bare_open(&b);
	plant(&b, RENDER_REGKEY_CURRENT, 'x', 32);
	cr_assert_not(srv_regkey_make(b.k, &b.c, uuid));
	cr_assert_not(srv_regkey_settled(b.k, &b.c));
	announce(&b, RENDER_REGKEY_CURRENT);
	theirs = listener(&b);
	cr_assert(srv_regkey_make(theirs, &b.c, forged), "what its maker could sign");
	put(&b, RENDER_REGKEY_CURRENT, 'a', 32);
	cr_assert(srv_regkey_make(b.k, &b.c, uuid));
	drop(&b, RENDER_REGKEY_CURRENT);
	plant(&b, RENDER_REGKEY_CURRENT, 'x', 32);
	plant(&b, RENDER_REGKEY_PREVIOUS, 'x', 32);
	cr_assert_not(srv_regkey_valid(b.k, &b.c, forged));
	cr_assert(srv_regkey_valid(b.k, &b.c, uuid), "the last good one stays");
	cr_assert_not(srv_regkey_settled(b.k, &b.c));
	srv_regkey_free(theirs);
	bare_close(&b);
}

/* The cluster and the Secret come by two watches. */
Test(srv_regkey, the_announcement_may_come_later)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct bare b;

	bare_open(&b);
	plant(&b, RENDER_REGKEY_CURRENT, 'a', 32);
	cr_assert_not(srv_regkey_make(b.k, &b.c, uuid));
	announce(&b, RENDER_REGKEY_CURRENT);
	cr_assert(srv_regkey_make(b.k, &b.c, uuid));
	bare_close(&b);
}

/* Another listener hears of each step a moment later, or earlier. */
Test(srv_regkey, a_rotation_loses_no_node_between_two_listeners)
{
	char uuid[UUID_TEXT_LEN + 1], first[UUID_TEXT_LEN + 1];
	struct srv_regkey *late;
	struct bare b;

	bare_open(&b);
	put(&b, RENDER_REGKEY_CURRENT, 'a', 32);
	late = listener(&b);
	loop_advance(b.loop, 20000);
	cr_assert(srv_regkey_make(b.k, &b.c, first));
	put(&b, RENDER_REGKEY_PREVIOUS, 'a', 32);
	drop(&b, RENDER_REGKEY_CURRENT);
	cr_assert_not(srv_regkey_settled(b.k, &b.c));
	cr_assert(srv_regkey_make(b.k, &b.c, uuid), "while there is none");
	cr_assert(srv_regkey_valid(late, &b.c, uuid));
	put(&b, RENDER_REGKEY_CURRENT, 'b', 32);
	cr_assert(srv_regkey_make(b.k, &b.c, uuid));
	b.hash[0][0] ^= 1;
	cr_assert(srv_regkey_valid(late, &b.c, uuid), "one that has not heard of the new one");
	b.hash[0][0] ^= 1;
	loop_advance(b.loop, 20000);
	cr_assert(srv_regkey_valid(late, &b.c, first), "previous");
	cr_assert(srv_regkey_make(b.k, &b.c, uuid));
	drop(&b, RENDER_REGKEY_PREVIOUS);
	cr_assert(srv_regkey_valid(late, &b.c, uuid), "signed by the new one");
	cr_assert_not(srv_regkey_valid(late, &b.c, first), "its key is gone");
	srv_regkey_free(late);
	bare_close(&b);
}

Test(srv_regkey, ids_end_with_their_lifetime)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct bare b;

	bare_open(&b);
	put(&b, RENDER_REGKEY_CURRENT, 'a', 32);
	cr_assert(srv_regkey_make(b.k, &b.c, uuid));
	clock_fake_set_wall(START_S + 3600);
	cr_assert(srv_regkey_valid(b.k, &b.c, uuid), "one lifetime later");
	clock_fake_set_wall(START_S - 3600);
	cr_assert(srv_regkey_valid(b.k, &b.c, uuid), "a clock that is behind");
	clock_fake_set_wall(START_S + 2 * 3600);
	cr_assert_not(srv_regkey_valid(b.k, &b.c, uuid));
	bare_close(&b);
}

Test(srv_regkey, is_read_once_the_cluster_asks_for_it_and_from_then_on)
{
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	cr_assert_eq(fake_transport_count(r.ft, "list", "secrets"), 0);
	rig_cluster(&r, AT_KEY);
	cr_assert_eq(fake_transport_count(r.ft, "watch", "secrets"), 0, "forgotten by rig_cluster");
	rig_cluster(&r, OPEN_SPEC);
	loop_advance(r.loop, 3600 * 1000);
	cr_assert_geq(fake_transport_count(r.ft, "watch", "secrets"), 2, "still");
	rig_close(&r);
}
