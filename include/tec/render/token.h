/* SPDX-License-Identifier: MIT */
/*
 * The token signers of Trustee over the years; their Secrets are only ever created. Each signer is
 * a Secret of its own, trustee-token, then trustee-token-2, -3, ...: key.pem and a self-signed
 * cert.pem that expires after RENDER_TOKEN_LIFE_DAYS. render_token_plan() decides what to do next;
 * it is pure and settles. A change restarts Trustee with the new signer, still trusting tokens of
 * the old one, and a day later without the old one. Names and hashes are borrowed throughout.
 */
#ifndef TEC_RENDER_TOKEN_H
#define TEC_RENDER_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define RENDER_TOKEN_LIFE_DAYS   3650
#define RENDER_TOKEN_RENEW_S     (365 * 86400) /* before the newest one expires */
#define RENDER_TOKEN_RIPE_S      3600  /* age at which a new one may sign: clocks may be behind */
#define RENDER_TOKEN_RETIRE_S    86400 /* age of the new one at which trust in the old one ends */
#define RENDER_TOKEN_SIGNERS_MAX 4

#define RENDER_TOKEN_NAME_SIZE 32 /* with the NUL */

struct render_token_signer {
	const char *name;               /* of the Secret */
	int64_t created_s, not_after_s; /* not_after_s: 0 if the certificate is unreadable */
	const char *hash; /* of cert.pem, for people and the Pod template; NULL: unknown */
	bool mounted;     /* the stored trustee-deployment has its volume */
};

enum render_token_do {
	RENDER_TOKEN_NOTHING,
	RENDER_TOKEN_MAKE, /* create a Secret called `name` */
	RENDER_TOKEN_DROP, /* delete the Secret called `name`: it is no longer used */
};

struct render_token_plan {
	enum render_token_do what;
	char name[RENDER_TOKEN_NAME_SIZE];
	/* The signers to render the configuration and Pod template with: use[0] signs, the
	 * certificates of the others are trusted. Empty only if no signer exists. */
	struct render_token_signer use[RENDER_TOKEN_SIGNERS_MAX];
	unsigned n_use;
	int64_t again_s; /* when time alone changes the plan; INT64_MAX: never */
};

/* The number of a signer's Secret (1, 2, ...); 0: not a signer's name. */
unsigned render_token_number(const char *name);
void render_token_name(unsigned number, char out[RENDER_TOKEN_NAME_SIZE]);
/* signers in any order; Secrets with other names are ignored. */
void render_token_plan(int64_t now_s, const struct render_token_signer *signers, unsigned n_signers,
	struct render_token_plan *out);

#endif
