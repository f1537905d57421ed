/* SPDX-License-Identifier: MIT */
/*
 * The token signers of Trustee over the years: its Secrets are only ever created. Each is a Secret
 * of its own, trustee-token and then trustee-token-2, -3, ...: key.pem and a self-signed cert.pem
 * that ends after RENDER_TOKEN_LIFE_DAYS. render_token_plan() says what to do next from what is
 * there; it is pure and settles. The change is one restart of Trustee to the new signer, which
 * still trusts the old one's tokens, and one a day later without the old one. Names and hashes are
 * borrowed throughout.
 */
#ifndef TEC_RENDER_TOKEN_H
#define TEC_RENDER_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define RENDER_TOKEN_LIFE_DAYS   3650
#define RENDER_TOKEN_RENEW_S     (365 * 86400) /* before the end of the newest one */
#define RENDER_TOKEN_RIPE_S      3600  /* a new one signs when every clock is behind its begin */
#define RENDER_TOKEN_RETIRE_S    86400 /* the old one is trusted until the new one is this old */
#define RENDER_TOKEN_SIGNERS_MAX 4

#define RENDER_TOKEN_NAME_SIZE 32 /* with the NUL */

struct render_token_signer {
	const char *name;               /* of the Secret */
	int64_t created_s, not_after_s; /* not_after_s: 0 when its certificate cannot be read */
	const char *hash; /* of cert.pem, for people and the Pod template; NULL: not known */
	bool mounted;     /* trustee-deployment, as it is in the API, has its volume */
};

enum render_token_do {
	RENDER_TOKEN_NOTHING,
	RENDER_TOKEN_MAKE, /* POST a Secret called `name` */
	RENDER_TOKEN_DROP, /* DELETE the Secret called `name`: nothing uses it any more */
};

struct render_token_plan {
	enum render_token_do what;
	char name[RENDER_TOKEN_NAME_SIZE];
	/* What the config and the Pod template are rendered with: use[0] signs, the certificates of
	 * the others are trusted. Empty only when there is no signer. */
	struct render_token_signer use[RENDER_TOKEN_SIGNERS_MAX];
	unsigned n_use;
	int64_t again_s; /* when the plan changes by time alone; INT64_MAX: never */
};

/* The number of a signer's Secret (1, 2, ...), 0 when the name is not one of them. */
unsigned render_token_number(const char *name);
void render_token_name(unsigned number, char out[RENDER_TOKEN_NAME_SIZE]);
/* signers in any order; others than ours are ignored. */
void render_token_plan(int64_t now_s, const struct render_token_signer *signers, unsigned n_signers,
	struct render_token_plan *out);

#endif
