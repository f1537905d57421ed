/* SPDX-License-Identifier: MIT */
/* The API server over loopback and TLS, as clients meet it. */
#include "config.h"

#include "apireq/things.h"
#include "net/net_testing.h"

#include <dirent.h>

#include "tec/apihttp/listener.h"
#include "tec/apireq/inproc.h"
#include "tec/store/watch.h"
#include "tec/base/metric.h"
#include "tec/k8s/kubeconfig.h"
#include "tec/loop/signal.h"

#define CRD                                                                                                            \
	"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","                           \
	"\"metadata\":{\"name\":\"things.example.io\"},\"spec\":{\"group\":\"example.io\","                            \
	"\"scope\":\"Namespaced\",\"names\":{\"plural\":\"things\",\"singular\":\"thing\",\"listKind\":\"ThingList\"," \
	"\"kind\":\"Thing\",\"shortNames\":[\"th\"]},\"versions\":[{\"name\":\"v1\","                                  \
	"\"served\":true,\"storage\":true,\"subresources\":{\"status\":{}},\"schema\":{"                               \
	"\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","                      \
	"\"properties\":{\"n\":{\"type\":\"integer\",\"maximum\":5},\"x\":{\"type\":\"integer\"},\"y\":{\"type\":\"integer\"}}}}}}}]}}"

static char dir[64];
static struct loop *loop;
static struct store_schema schema;
static struct store_objects *objects;
static struct apireq_kinds *kinds;
static struct apihttp_authority *authority;
static struct apihttp_listener *server;
static struct k8s_kubeconfig *admin;

static void put(const char *path, const char *text)
{
	struct apireq_answer a = apireq_inproc_ask(objects, "POST", path, NULL, text, strlen(text));

	cr_assert_eq(a.code, 201, "%s", a.body);
	apireq_answer_fini(&a);
}

static void up(void)
{
	static const char *const names[] = {"localhost", "127.0.0.1", NULL};
	struct apihttp_authority_conf conf = {
		.dir = dir, .names = names, .server = "https://127.0.0.1:1", .ns = "ns"};
	struct store_db *db;
	struct apihttp_listener_conf server_conf = {.version = "1", .max_connections = 100};
	struct err err = ERR_INIT;

	strcpy(dir, "/tmp/test_apiserver.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	loop_ignore_sigpipe();
	loop = loop_new();
	kinds = apireq_kinds_new();
	apireq_kinds_add(kinds, CRD);
	schema = things;
	apireq_kinds_use(kinds, &schema);
	db = store_db_open(&(const struct store_db_conf){0}, &err);
	cr_assert_not_null(db, "%s", err.text);
	objects = store_objects_new(db, &schema, loop);
	authority = apihttp_authority_open(&conf, &err);
	cr_assert_not_null(authority, "%s", err.text);
	cr_assert_geq(apihttp_authority_renew(authority, clock_wall_s(), &err), 0);
	server_conf.objects = objects;
	server_conf.kinds = kinds;
	server_conf.authority = authority;
	server = apihttp_listener_new(loop, &server_conf, &err);
	cr_assert_not_null(server, "%s", err.text);
	cr_assert_eq(httpd_listen(apihttp_listener_httpd(server), "127.0.0.1:0", &err), 0, "%s",
		err.text);
	admin = k8s_kubeconfig_load(apihttp_authority_identity(authority).kubeconfig, NULL, &err);
	cr_assert_not_null(admin, "%s", err.text);
}

static void down(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	k8s_kubeconfig_free(admin);
	apihttp_listener_free(server);
	apihttp_authority_close(authority);
	store_objects_free(objects);
	apireq_kinds_free(kinds);
	loop_free(loop);
	metric_reset_all();
	while (d && (e = readdir(d))) {
		cleanup_free char *path = xasprintf("%s/%s", dir, e->d_name);

		unlink(path);
	}
	closedir(d);
	rmdir(dir);
}

TestSuite(apihttp_listener, .init = up, .fini = down);

static void use(SSL_CTX *ctx, const struct secret *cert, const struct secret *key)
{
	BIO *c = BIO_new_mem_buf(secret_peek(cert), (int)secret_len(cert));
	BIO *k = BIO_new_mem_buf(secret_peek(key), (int)secret_len(key));
	X509 *x = PEM_read_bio_X509(c, NULL, NULL, NULL);
	EVP_PKEY *p = PEM_read_bio_PrivateKey(k, NULL, NULL, NULL);

	cr_assert_eq(SSL_CTX_use_certificate(ctx, x), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey(ctx, p), 1);
	X509_free(x);
	EVP_PKEY_free(p);
	BIO_free(c);
	BIO_free(k);
}

/* With the administrator's certificate, or with none. */
static struct cli connect_as(bool is_admin)
{
	struct cli c = cli_open(loop, httpd_port(apihttp_listener_httpd(server)));
	uint64_t begin = clock_boot_ms();

	c.ctx = SSL_CTX_new(TLS_client_method());
	if (is_admin)
		use(c.ctx, admin->cert_data, admin->key_data);
	SSL_CTX_set_mode(
		c.ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	c.ssl = SSL_new(c.ctx);
	SSL_set_fd(c.ssl, c.fd);
	fcntl(c.fd, F_SETFL, O_NONBLOCK);
	while (SSL_connect(c.ssl) != 1) {
		cr_assert_not(cli_late(begin));
		ERR_clear_error();
		loop_turn(loop, 1);
	}
	return c;
}

/* The status; *answer: the body as JSON, which the caller puts; NULL where it is none. */
static int say(struct cli *c, const char *head, const char *body, struct json_object **answer)
{
	cleanup_free char *text = NULL;
	struct err err = ERR_INIT;
	struct cli_reply r;
	int status;

	text = xasprintf("%sHost: a\r\nContent-Length: %zu\r\n\r\n", head, body ? strlen(body) : 0);
	cli_send(c, text);
	if (body)
		cli_send(c, body);
	cr_assert(cli_reply(c, &r, strncmp(head, "HEAD", 4) == 0), "%s", head);
	status = r.status;
	if (answer)
		*answer =
			r.body_len ? json_parse(r.body, r.body_len, &json_limits_api, &err) : NULL;
	cli_reply_fini(&r);
	return status;
}

static int say_once(bool is_admin, const char *head, const char *body, struct json_object **answer)
{
	struct cli c = connect_as(is_admin);
	int status = say(&c, head, body, answer);

	cli_close(&c);
	return status;
}

Test(apihttp_listener, nobody_is_anonymous_but_for_health_and_version)
{
	static const struct {
		const char *head;
		int status;
	} cases[] = {
		{"GET /healthz HTTP/1.1\r\n", 200},
		{"GET /livez HTTP/1.1\r\n", 200},
		{"HEAD /readyz HTTP/1.1\r\n", 200},
		{"GET /version HTTP/1.1\r\n", 200},
		{"POST /version HTTP/1.1\r\n", 405},
		{"GET /healthz/../api HTTP/1.1\r\n", 401},
		{"GET /healthzz HTTP/1.1\r\n", 401},
		{"GET /version/ HTTP/1.1\r\n", 200},
		{"GET /version/x HTTP/1.1\r\n", 401},
		{"GET / HTTP/1.1\r\n", 401},
		{"GET /api HTTP/1.1\r\n", 401},
		{"GET /metrics HTTP/1.1\r\n", 401},
		{"GET " SECRETS " HTTP/1.1\r\n", 401},
		{"GET /tec/v1/backup HTTP/1.1\r\n", 401},
		{"DELETE /tec/v1/sealing-key HTTP/1.1\r\n", 401},
		{"GET //api/v1 HTTP/1.1\r\n", 401},
		{"OPTIONS /api HTTP/1.1\r\n", 401},
		{"GET /api HTTP/1.1\r\nAuthorization: Bearer a.b.c\r\n", 401},
		{"GET /api HTTP/1.1\r\nAuthorization: Basic YTpi\r\n", 401},
		{"GET /api HTTP/1.1\r\nImpersonate-User: tec-admin\r\n", 401},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = NULL;

		cr_expect_eq(say_once(false, cases[i].head, NULL, &o), cases[i].status, "%s",
			cases[i].head);
		if (cases[i].status == 401) {
			cr_expect_str_eq(json_get_str(o, "kind"), "Status");
			cr_expect_str_eq(json_get_str(o, "message"), "Unauthorized");
			cr_expect_eq(json_get_int(o, "code", 0), 401);
		}
	}
}

Test(apihttp_listener, an_administrator_makes_reads_and_deletes)
{
	struct cli c = connect_as(true);
	struct json_object *o = NULL;

	cr_expect_eq(say(&c, "POST " THINGS " HTTP/1.1\r\nContent-Type: application/json\r\n",
			     "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"x\":1}}", &o),
		201, "kind and apiVersion are the path's");
	cr_expect_str_eq(json_get_str(o, "kind"), "Thing");
	json_object_put(o);
	cr_expect_eq(say(&c, "POST " THINGS " HTTP/1.1\r\nContent-Type: application/yaml\r\n",
			     "metadata:\n  name: b\nspec: {x: 2}\n", &o),
		201);
	json_object_put(o);
	cr_expect_eq(
		say(&c, "PATCH " THINGS "/a?fieldManager=m HTTP/1.1\r\nContent-Type: " APPLY "\r\n",
			"apiVersion: example.io/v1\nkind: Thing\nmetadata: {name: a}\nspec: {y: 3}\n",
			&o),
		200);
	cr_expect_eq(json_get_int(o, "spec/y", 0), 3);
	json_object_put(o);
	cr_expect_eq(say(&c, "GET " THINGS " HTTP/1.1\r\n", NULL, &o), 200);
	cr_expect_str_eq(json_get_str(o, "kind"), "ThingList");
	cr_expect_str_eq(json_get_str(o, "apiVersion"), "example.io/v1");
	cr_expect_eq(json_object_array_length(json_get_arr(o, "items")), 2);
	json_object_put(o);
	cr_expect_eq(say(&c, "DELETE " THINGS "/a HTTP/1.1\r\n", NULL, &o), 200);
	json_object_put(o);
	cr_expect_eq(say(&c, "GET " THINGS "/a HTTP/1.1\r\n", NULL, &o), 404);
	cr_expect_str_eq(json_get_str(o, "message"), "things.example.io \"a\" not found");
	json_object_put(o);
	cli_close(&c);
}

Test(apihttp_listener, hostile_requests_get_their_refusal)
{
	static const struct {
		const char *head, *body;
		int status;
	} cases[] = {
		{"GET /apis/example.io/v1/namespaces/ns/nothings HTTP/1.1\r\n", NULL, 404},
		{"GET /apis/example.io/v2/namespaces/ns/things HTTP/1.1\r\n", NULL, 404},
		{"GET /apis/apps/v1/namespaces/ns/deployments HTTP/1.1\r\n", NULL, 404},
		{"DELETE /api/v1/namespaces/ns HTTP/1.1\r\n", NULL, 405},
		{"POST /api/v1/namespaces HTTP/1.1\r\n", "{}", 405},
		{"GET /api/v1/namespaces/ns//secrets HTTP/1.1\r\n", NULL, 404},
		{"GET /api/v1/namespaces/ns/secrets/..%2f..%2fca.key HTTP/1.1\r\n", NULL, 404},
		{"GET /api/v1/namespaces/ns/secrets/%00 HTTP/1.1\r\n", NULL, 404},
		{"GET /../../etc/passwd HTTP/1.1\r\n", NULL, 404},
		{"GET " SECRETS "?labelSelector=a%20b%20c HTTP/1.1\r\n", NULL, 400},
		{"GET " SECRETS " HTTP/1.1\r\nAccept: application/vnd.kubernetes.protobuf\r\n",
			NULL, 406},
		{"GET /api HTTP/1.1\r\nAccept: image/png\r\n", NULL, 406},
		{"GET " SECRETS
		 " HTTP/1.1\r\nAccept: application/vnd.kubernetes.protobuf,application/json\r\n",
			NULL, 200},
		{"GET " SECRETS " HTTP/1.1\r\nAccept: text/html, */*;q=0.1\r\n", NULL, 200},
		{"POST " SECRETS
		 " HTTP/1.1\r\nContent-Type: application/vnd.kubernetes.protobuf\r\n",
			"k8s\001", 400},
		{"POST " SECRETS " HTTP/1.1\r\n", "{", 400},
		{"POST " SECRETS " HTTP/1.1\r\n", "null", 400},
		{"POST " SECRETS " HTTP/1.1\r\n", "[]", 400},
		{"POST " SECRETS " HTTP/1.1\r\n", "\"x\"", 400},
		{"POST " SECRETS " HTTP/1.1\r\n", NULL, 400},
		{"POST " SECRETS " HTTP/1.1\r\nContent-Type: application/yaml\r\n", "a: &b [*b]",
			400},
		{"POST " SECRETS " HTTP/1.1\r\nContent-Type: application/yaml\r\n", "- a\n- b\n",
			400},
		{"PATCH " SECRETS "/x HTTP/1.1\r\nContent-Type: text/plain\r\n", "{}", 415},
		{"OPTIONS " SECRETS " HTTP/1.1\r\n", NULL, 405},
		{"GET " SECRETS " HTTP/1.1\r\nImpersonate-User: a\r\n", NULL, 403},
		{"GET " SECRETS " HTTP/1.1\r\nImpersonate-Group: a\r\n", NULL, 403},
		{"TRACE " SECRETS " HTTP/1.1\r\n", NULL, 405},
		{"POST " SECRETS "/x HTTP/1.1\r\n", "{}", 405},
		{"POST /tec/v1/backup HTTP/1.1\r\n", "{}", 405},
		{"HEAD /tec/v1/backup HTTP/1.1\r\n", NULL, 405},
		{"GET /tec/v1/sealing-key HTTP/1.1\r\n", NULL, 405},
		{"GET /tec/v1/backup/ HTTP/1.1\r\n", NULL, 404},
		{"GET /tec/v1 HTTP/1.1\r\n", NULL, 404},
		{"GET " SECRETS "?watch=true&resourceVersion=x HTTP/1.1\r\n", NULL, 400},
		{"POST /api/v1/namespaces/ns/serviceaccounts/no/token HTTP/1.1\r\n", "{}", 404},
		{"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\n", "{}",
			422},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(say_once(true, cases[i].head, cases[i].body, NULL), cases[i].status,
			"%s%s", cases[i].head, cases[i].body ? cases[i].body : "");
}

Test(apihttp_listener, discovery_names_the_kinds)
{
	struct cli c = connect_as(true);
	struct json_object *o = NULL;

	cr_expect_eq(say(&c, "GET /api HTTP/1.1\r\n", NULL, &o), 200);
	cr_expect_str_eq(json_get_str(o, "kind"), "APIVersions");
	json_object_put(o);
	cr_expect_eq(say(&c, "GET /apis HTTP/1.1\r\n", NULL, &o), 200);
	cr_expect_str_eq(json_get_str(o, "kind"), "APIGroupList");
	json_object_put(o);
	cr_expect_eq(say(&c, "GET /apis/example.io HTTP/1.1\r\n", NULL, &o), 200);
	cr_expect_str_eq(json_get_str(o, "preferredVersion/groupVersion"), "example.io/v1");
	json_object_put(o);
	cr_expect_eq(say(&c, "GET /apis/example.io/v1 HTTP/1.1\r\n", NULL, &o), 200);
	cr_expect_eq(
		json_object_array_length(json_get_arr(o, "resources")), 2, "things, things/status");
	json_object_put(o);
	cr_expect_eq(say(&c, "GET /apis/example.io/v9 HTTP/1.1\r\n", NULL, NULL), 404);
	cr_expect_eq(say(&c, "GET /apis/none.io HTTP/1.1\r\n", NULL, NULL), 404);
	cli_close(&c);
}

/* ---- ServiceAccounts */

static char *token_of(const char *name)
{
	struct json_object *o = NULL;
	cleanup_free char *head =
		xasprintf("POST /api/v1/namespaces/ns/serviceaccounts/%s/token HTTP/1.1\r\n", name);
	char *token;

	cr_assert_eq(say_once(true, head, "{\"spec\":{\"expirationSeconds\":700}}", &o), 201);
	token = xstrdup(json_get_str(o, "status/token"));
	cr_expect_not_null(json_get_str(o, "status/expirationTimestamp"));
	cr_expect_str_eq(json_get_str(o, "kind"), "TokenRequest");
	cr_expect_eq(json_get_int(o, "spec/expirationSeconds", 0), 700);
	json_object_put(o);
	return token;
}

Test(apihttp_listener, a_token_lasts_for_ten_years_at_most)
{
	static const struct {
		const char *body;
		int64_t want;
	} rows[] = {{"{}", 3600}, {"{\"spec\":{\"expirationSeconds\":315360000}}", 315360000},
		{"{\"spec\":{\"expirationSeconds\":4294967296}}", 315360000}};

	put("/api/v1/namespaces/ns/serviceaccounts",
		"{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"f\"}}");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct json_object *o = NULL;

		cr_assert_eq(
			say_once(true,
				"POST /api/v1/namespaces/ns/serviceaccounts/f/token HTTP/1.1\r\n",
				rows[i].body, &o),
			201);
		cr_expect_eq(
			json_get_int(o, "spec/expirationSeconds", 0), rows[i].want, "row %zu", i);
		json_object_put(o);
	}
}

static int as(const char *token, const char *line, const char *body, struct json_object **answer)
{
	cleanup_free char *head =
		xasprintf("%s HTTP/1.1\r\nAuthorization: Bearer %s\r\n", line, token);

	return say_once(false, head, body, answer);
}

Test(apihttp_listener, a_service_account_has_the_rights_of_its_binding)
{
	cleanup_free char *token = NULL;
	struct json_object *o = NULL;

	put("/api/v1/namespaces/ns/serviceaccounts",
		"{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"f\"}}");
	token = token_of("f");
	cr_expect_eq(as(token, "GET " SECRETS, NULL, &o), 403);
	cr_expect_str_eq(json_get_str(o, "reason"), "Forbidden");
	cr_expect_str_eq(json_get_str(o, "message"),
		"secrets is forbidden: User \"system:serviceaccount:ns:f\" cannot list resource \"secrets\" in API group \"\" in the namespace \"ns\"");
	json_object_put(o);
	put("/apis/rbac.authorization.k8s.io/v1/namespaces/ns/rolebindings",
		"{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"RoleBinding\",\"metadata\":{\"name\":\"b\"},"
		"\"subjects\":[{\"kind\":\"ServiceAccount\",\"namespace\":\"ns\",\"name\":\"f\"}],"
		"\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"tec-follow\"}}");
	cr_expect_eq(as(token, "GET " SECRETS, NULL, NULL), 200);
	cr_expect_eq(as(token, "POST " SECRETS, "{\"metadata\":{\"name\":\"x\"}}", NULL), 403);
	cr_expect_eq(as(token, "DELETE " SECRETS, NULL, NULL), 403);
	cr_expect_eq(as(token, "GET /metrics", NULL, NULL), 403);
	cr_expect_eq(as(token, "GET /tec/v1/backup", NULL, NULL), 403);
	cr_expect_eq(as(token, "DELETE /tec/v1/sealing-key", NULL, NULL), 403);
	cr_expect_eq(as(token, "GET /api/v1/secrets", NULL, NULL), 403);
	cr_expect_eq(
		as(token, "POST /api/v1/namespaces/ns/serviceaccounts/f/token", "{}", NULL), 403);
	cr_expect_eq(
		as(token, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			"{\"spec\":{\"resourceAttributes\":{\"namespace\":\"ns\",\"verb\":\"list\",\"resource\":\"secrets\"}}}",
			&o),
		201);
	cr_expect(json_get_bool(o, "status/allowed", false));
	json_object_put(o);
	cr_expect_eq(
		as(token, "POST /apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", &o), 201);
	cr_expect_str_eq(json_get_str(o, "status/userInfo/username"), "system:serviceaccount:ns:f");
	json_object_put(o);
	cr_expect_eq(say_once(true, "DELETE /api/v1/namespaces/ns/serviceaccounts/f HTTP/1.1\r\n",
			     NULL, NULL),
		200);
	cr_expect_eq(as(token, "GET " SECRETS, NULL, NULL), 401, "its account is gone");
	put("/api/v1/namespaces/ns/serviceaccounts",
		"{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"f\"}}");
	cr_expect_eq(as(token, "GET " SECRETS, NULL, NULL), 401, "another of the same name");
}

/* ---- watches */

static void make_thing(const char *name, size_t size)
{
	cleanup_free char *fill = xcalloc(1, size + 1), *text = NULL;

	memset(fill, 'x', size);
	text = xasprintf("{" THING ",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"fill\":\"%s\"}}",
		name, fill);
	put(THINGS, text);
}

static struct cli watch(const char *query)
{
	struct cli c = connect_as(true);
	cleanup_free char *head =
		xasprintf("GET " THINGS "?watch=true%s HTTP/1.1\r\nHost: a\r\n\r\n", query);
	struct cli_reply r;

	cli_send(&c, head);
	cr_assert(cli_reply(&c, &r, true));
	cr_assert_eq(r.status, 200);
	cr_expect_str_eq(cli_header(&r, "Transfer-Encoding"), "chunked");
	cli_reply_fini(&r);
	return c;
}

/* Turns until text has come, and forgets what came up to its end. */
static bool comes(struct cli *c, const char *text)
{
	uint64_t begin = clock_boot_ms();
	const char *at;

	while (!(at = memmem(strbuf_str(&c->in), c->in.len, text, strlen(text)))) {
		if (c->eof || cli_late(begin))
			return false;
		cli_turn(c);
	}
	strbuf_drop(&c->in, (size_t)(at - c->in.data) + strlen(text));
	return true;
}

Test(apihttp_listener, a_watch_gets_what_is_there_and_then_the_changes)
{
	struct cli c;

	make_thing("a", 1);
	make_thing("b", 1);
	c = watch(
		"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
	cr_expect(comes(&c, "{\"type\":\"ADDED\",\"object\":{"));
	cr_expect(comes(&c, "\"name\":\"b\""));
	cr_expect(comes(&c, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Thing\""));
	cr_expect(comes(&c, "\"k8s.io/initial-events-end\":\"true\""));
	make_thing("c", 1);
	cr_expect(comes(&c, "{\"type\":\"ADDED\""));
	cr_expect(comes(&c, "\"name\":\"c\""));
	apihttp_listener_drain(server);
	cr_expect(comes(&c, "\r\n0\r\n\r\n"), "a whole end");
	cli_close(&c);
}

Test(apihttp_listener, a_watch_from_a_version_gets_what_came_since)
{
	struct cli c;
	cleanup_free char *query = NULL;

	make_thing("a", 1);
	query = xasprintf("&resourceVersion=%llu", (unsigned long long)store_objects_rv(objects));
	make_thing("b", 1);
	c = watch(query);
	cr_expect(comes(&c, "{\"type\":\"ADDED\""));
	cr_expect(comes(&c, "\"name\":\"b\""));
	cr_expect_eq(c.in.len && memmem(c.in.data, c.in.len, "\"name\":\"a\"", 10), 0);
	cli_close(&c);
	loop_drain(loop);
}

Test(apihttp_listener, a_watch_before_the_history_is_told_to_start_again)
{
	struct cli c;
	cleanup_free char *query = NULL;

	make_thing("a", 1);
	query = xasprintf("&resourceVersion=%llu", (unsigned long long)store_objects_rv(objects));
	store_watch_compact(objects);
	c = watch(query);
	cr_expect(comes(&c, "{\"type\":\"ERROR\""));
	cr_expect(comes(&c, "\"code\":410"));
	cr_expect(comes(&c, "\r\n0\r\n\r\n"));
	cli_close(&c);
}

/* Nothing is lost, nothing twice, and little waits: the store's history is the buffer. */
Test(apihttp_listener, a_watch_that_reads_slowly_misses_nothing)
{
	struct cli c = watch("&resourceVersion=1");
	char name[16], want[32];

	loop_drain(loop);
	for (unsigned i = 0; i < 400; i++) { /* 24 MB: more than sockets take */
		snprintf(name, sizeof(name), "t%04u", i);
		make_thing(name, 60000);
		loop_turn(loop, 0);
	}
	for (unsigned i = 0; i < 400; i++) {
		snprintf(want, sizeof(want), "\"name\":\"t%04u\"", i);
		cr_assert(comes(&c, want), "%s", want);
	}
	cr_expect_null(memmem(strbuf_str(&c.in), c.in.len, "\"name\"", 6), "one came twice");
	cli_close(&c);
	loop_drain(loop);
}

Test(apihttp_listener, pages_of_what_is_there_come_one_after_another)
{
	struct cli c;
	char name[16], want[32];

	for (unsigned i = 0; i < 250; i++) {
		snprintf(name, sizeof(name), "t%04u", i);
		make_thing(name, 40000);
	}
	c = watch("");
	for (unsigned i = 0; i < 250; i++) {
		snprintf(want, sizeof(want), "\"name\":\"t%04u\"", i);
		cr_assert(comes(&c, want), "%s", want);
	}
	make_thing("last", 1);
	cr_expect(comes(&c, "\"name\":\"last\""));
	cli_close(&c);
	loop_drain(loop);
}

Test(apihttp_listener, a_change_reaches_every_watch)
{
	struct cli c[64];

	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		c[i] = watch("");
	make_thing("a", 1);
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		cr_assert(comes(&c[i], "\"name\":\"a\""));
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		cli_close(&c[i]);
	loop_drain(loop);
}
