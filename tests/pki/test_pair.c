/* SPDX-License-Identifier: MIT */
/* What is wrong with a TLS Secret: one hostile case a line. */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/pki/cert.h"
#include "tec/pki/pair.h"

#define NOW  INT64_C(1790000000)
#define DAY  INT64_C(86400)
#define DAYS 365

/* Two CAs of the same name, a server of the first one, and one that is its own CA. */
static struct pki_key *root_key, *key, *other_key;
static struct strbuf root, other_root, leaf, alone;
static char *locked;

static void make(enum pki_issue_use use, const char *cn, const char *const *names,
	const struct pki_key *of, const struct pki_key *by, const char *ca, struct strbuf *out)
{
	struct pki_issue what = {use, cn, NULL, names, NOW, use == PKI_ISSUE_CA ? 400 : DAYS};
	struct err err = ERR_INIT;

	cr_assert_eq(pki_issue(&what, of, by, ca, out, &err), 0, "%s", err.text);
}

/* The key as PKCS #8 with a pass phrase. */
static char *lock(const struct pki_key *k, bool old_form)
{
	BIO *bio = BIO_new(BIO_s_mem());
	EVP_PKEY *evp = pki_key_evp(k);
	char *data, *text;
	long len;

	if (old_form)
		cr_assert_eq(PEM_write_bio_PrivateKey_traditional(bio, evp, EVP_aes_128_cbc(),
				     (unsigned char *)"pw", 2, NULL, NULL),
			1);
	else
		cr_assert_eq(PEM_write_bio_PKCS8PrivateKey(
				     bio, evp, EVP_aes_128_cbc(), (char *)"pw", 2, NULL, NULL),
			1);
	len = BIO_get_mem_data(bio, &data);
	text = xstrndup(data, (size_t)len);
	BIO_free(bio);
	return text;
}

static void up(void)
{
	static const char *const names[] = {"a.example.org", "10.0.0.1", "::1", NULL};
	cleanup_pki_key struct pki_key *other = pki_key_new_p256();
	struct err err = ERR_INIT;

	root_key = pki_key_new_p256();
	key = pki_key_new_p256();
	other_key = pki_key_new_p256();
	make(PKI_ISSUE_CA, "root", NULL, root_key, root_key, NULL, &root);
	make(PKI_ISSUE_CA, "root", NULL, other, other, NULL, &other_root);
	make(PKI_ISSUE_SERVER, "a", names, key, root_key, root.data, &leaf);
	cr_assert_eq(pki_cert_self_signed(key, "a.example.org", NOW, DAYS, &alone, &err), 0);
	locked = lock(key, false);
}

static void down(void)
{
	pki_key_free(root_key);
	pki_key_free(key);
	pki_key_free(other_key);
	strbuf_fini(&root);
	strbuf_fini(&other_root);
	strbuf_fini(&leaf);
	strbuf_fini(&alone);
	free(locked);
}

TestSuite(pki_pair, .init = up, .fini = down);

static const struct {
	const char *what;
	/* l leaf, r root, o another root, s self-signed, g garbage, h half a leaf, t text */
	const char *crt;
	char key; /* k the key, w another, e encrypted, E in the old form, g garbage, 0 none */
	const char *ca;
	const char *name;
	int64_t now_s;
	enum pki_pair_fault fault;
	const char *says;
} cases[] = {
	{"a leaf and its CA", "l", 'k', "r", "a.example.org", NOW, PKI_PAIR_OK, NULL},
	{"an address", "l", 'k', "r", "10.0.0.1", NOW, PKI_PAIR_OK, NULL},
	{"an IPv6 address", "l", 'k', "r", "::1", NOW, PKI_PAIR_OK, NULL},
	{"with its root", "lr", 'k', "r", NULL, NOW, PKI_PAIR_OK, NULL},
	{"18 CAs", "l", 'k', "ooooooooooooooooor", NULL, NOW, PKI_PAIR_OK, NULL},
	{"two CAs", "l", 'k', "or", NULL, NOW, PKI_PAIR_OK, NULL},
	{"no CA is asked for", "l", 'k', NULL, NULL, NOW, PKI_PAIR_OK, NULL},
	{"text in between", "tltr", 'k', "tr", NULL, NOW, PKI_PAIR_OK, NULL},
	{"its own CA", "s", 'k', "s", "a.example.org", NOW, PKI_PAIR_OK, NULL},
	{"time is not asked for", "l", 'k', "r", NULL, 0, PKI_PAIR_OK, NULL},
	{"a CA alone", NULL, 0, "r", NULL, NOW, PKI_PAIR_OK, NULL},

	{"no certificate", "", 'k', "r", NULL, NOW, PKI_PAIR_BAD_CERT, "tls.crt is missing"},
	{"garbage", "g", 'k', "r", NULL, NOW, PKI_PAIR_BAD_CERT, "tls.crt is not"},
	{"half a certificate", "h", 'k', "r", NULL, NOW, PKI_PAIR_BAD_CERT, "tls.crt is not"},
	{"half a second", "lh", 'k', "r", NULL, NOW, PKI_PAIR_BAD_CERT, "tls.crt is not"},
	{"18 certificates", "lrrrrrrrrrrrrrrrrr", 'k', "r", NULL, NOW, PKI_PAIR_BAD_CERT, "17"},
	{"no key", "l", '0', "r", NULL, NOW, PKI_PAIR_BAD_KEY, "tls.key is missing"},
	{"a garbage key", "l", 'g', "r", NULL, NOW, PKI_PAIR_BAD_KEY, "tls.key is not"},
	{"a certificate as key", "l", 'c', "r", NULL, NOW, PKI_PAIR_BAD_KEY, "tls.key is not"},
	{"an encrypted key", "l", 'e', "r", NULL, NOW, PKI_PAIR_ENCRYPTED, "tls.key is encrypted"},
	{"an old encrypted key", "l", 'E', "r", NULL, NOW, PKI_PAIR_ENCRYPTED, "tls.key is encr"},
	{"another key", "l", 'w', "r", NULL, NOW, PKI_PAIR_MISMATCH, "tls.key does not match"},
	{"the CA alone", "r", 'k', "r", NULL, NOW, PKI_PAIR_MISMATCH, "tls.key does not match"},
	{"expired", "l", 'k', "r", NULL, NOW + DAYS *DAY, PKI_PAIR_EXPIRED,
		"tls.crt expired at 2027-09-2"},
	{"an expired CA", "l", 'k', "r", NULL, NOW + 401 * DAY, PKI_PAIR_EXPIRED, "expired"},
	{"early", "l", 'k', "r", NULL, NOW - DAY - 1, PKI_PAIR_EARLY,
		"tls.crt is not valid before"},
	{"an empty CA", "l", 'k', "", NULL, NOW, PKI_PAIR_NO_CA, "ca.crt has no usable"},
	{"a garbage CA", "l", 'k', "g", NULL, NOW, PKI_PAIR_NO_CA, "ca.crt has no usable"},
	{"an empty CA alone", NULL, 0, "", NULL, NOW, PKI_PAIR_NO_CA, "ca.crt has no usable"},
	{"another CA", "l", 'k', "o", NULL, NOW, PKI_PAIR_OTHER_CA, "cannot verify tls.crt"},
	{"self-signed under a CA", "s", 'k', "r", NULL, NOW, PKI_PAIR_OTHER_CA, "cannot verify"},
	{"another name", "l", 'k', "r", "b.example.org", NOW, PKI_PAIR_NAME, "b.example.org"},
	{"another address", "l", 'k', "r", "10.0.0.2", NOW, PKI_PAIR_NAME, "10.0.0.2"},
	{"reversed", "rl", 'k', "r", "a.example.org", NOW, PKI_PAIR_ORDER, "order"},
	{"a stranger first", "ol", 'k', "r", NULL, NOW, PKI_PAIR_ORDER, "order"},
	{"a stranger in between", "lor", 'k', "r", NULL, NOW, PKI_PAIR_ORDER, "order"},
	{"reversed, and another name", "rl", 'k', "r", "b", NOW, PKI_PAIR_NAME, "b, the public"},
	{"reversed, and another key", "rl", 'w', "r", NULL, NOW, PKI_PAIR_MISMATCH, "tls.key"},
};

static void compose(const char *recipe, struct strbuf *out)
{
	for (; *recipe; recipe++)
		switch (*recipe) {
		case 'l':
			strbuf_add(out, leaf.data, leaf.len);
			break;
		case 'r':
			strbuf_add(out, root.data, root.len);
			break;
		case 'o':
			strbuf_add(out, other_root.data, other_root.len);
			break;
		case 's':
			strbuf_add(out, alone.data, alone.len);
			break;
		case 'h':
			strbuf_add(out, leaf.data, leaf.len / 2);
			break;
		case 't':
			strbuf_adds(out, "# text\n");
			break;
		default:
			strbuf_adds(out, "garbage");
		}
}

static char *key_text(char which)
{
	cleanup_secret struct secret *mine = pki_key_private_pem(key),
				     *other = pki_key_private_pem(other_key);

	switch (which) {
	case 'k':
		return xstrndup((const char *)secret_peek(mine), secret_len(mine));
	case 'w':
		return xstrndup((const char *)secret_peek(other), secret_len(other));
	case 'e':
		return xstrdup(locked);
	case 'E':
		return lock(key, true);
	case 'c':
		return xstrndup(leaf.data, leaf.len);
	default:
		return xstrdup(which == 'g' ? "garbage" : "");
	}
}

Test(pki_pair, each_fault_is_named_and_nothing_else_is_one)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_strbuf struct strbuf crt = STRBUF_INIT, ca = STRBUF_INIT,
					     chain = STRBUF_INIT;
		cleanup_free char *pem = key_text(cases[i].key);
		struct pki_pair p = {.key = pem,
			.key_len = strlen(pem),
			.name = cases[i].name,
			.now_s = cases[i].now_s};
		struct err why = ERR_INIT;
		enum pki_pair_fault got;

		if (cases[i].crt) {
			compose(cases[i].crt, &crt);
			p.cert = strbuf_str(&crt);
			p.cert_len = crt.len;
		}
		if (cases[i].ca) {
			compose(cases[i].ca, &ca);
			p.ca = strbuf_str(&ca);
		}
		got = pki_pair_judge(&p, &chain, &why);
		cr_expect_eq(got, cases[i].fault, "%s: %d, %s", cases[i].what, got, why.text);
		cr_expect_eq(err_is_set(&why), cases[i].fault != PKI_PAIR_OK, "%s", cases[i].what);
		if (cases[i].says)
			cr_expect(
				strstr(why.text, cases[i].says), "%s: %s", cases[i].what, why.text);
		cr_expect_null(strstr(why.text, "BEGIN"), "%s", why.text);
		cr_expect_eq(ERR_peek_error(), 0, "%s", cases[i].what);
		if (chain.len)
			cr_expect(pki_issue_fits(chain.data, chain.len, key), "%s: not first",
				cases[i].what);
	}
}

/* The order of a chain, whatever came in: the server's, its issuer, then the rest. */
Test(pki_pair, a_chain_is_put_in_order)
{
	static const char *const texts[][2] = {
		{"lr", "lr"}, {"rl", "lr"}, {"orl", "lro"}, {"otlr", "lro"}, {"lor", "lro"}};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		cleanup_strbuf struct strbuf in = STRBUF_INIT, want = STRBUF_INIT,
					     got = STRBUF_INIT;
		cleanup_free char *pem = key_text('k');
		struct err why = ERR_INIT;

		compose(texts[i][0], &in);
		compose(texts[i][1], &want);
		cr_expect_eq(pki_pair_judge(&(struct pki_pair){.cert = in.data,
						    .cert_len = in.len,
						    .key = pem,
						    .key_len = strlen(pem)},
				     &got, &why),
			i == 0 ? PKI_PAIR_OK : PKI_PAIR_ORDER, "%s", texts[i][0]);
		cr_expect_str_eq(strbuf_str(&got), strbuf_str(&want), "%s", texts[i][0]);
	}
}

/* The same without the key: the first one is the server's. */
Test(pki_pair, without_a_key_the_first_certificate_is_the_servers)
{
	struct pki_pair p = {.cert = leaf.data, .cert_len = leaf.len, .name = "a.example.org"};
	struct err why = ERR_INIT;

	cr_expect_eq(pki_pair_judge(&p, NULL, &why), PKI_PAIR_OK);
	p.cert = root.data;
	p.cert_len = root.len;
	cr_expect_eq(pki_pair_judge(&p, NULL, &why), PKI_PAIR_NAME);
}
