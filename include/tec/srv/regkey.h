/* SPDX-License-Identifier: MIT */
/*
 * The key under which machine ids are handed out with registration.machine AtKey (rats/ticket.h):
 * Secret tec-registration-key, and tec-registration-key-previous while its tickets live. The leader
 * makes and rotates them (render/regkey.h); a listener reads both, each watched by its name alone,
 * and uses only what is announced on the cluster: no other Secret becomes the key. Beside them it
 * reads ConfigMap tec-deleted-ids (model/record.h), also by its name alone.
 *
 * Rotation loses no node. While the leader replaces the Secret, the last bytes read stay in use. A
 * new key signs only some seconds after it was seen, when every other listener has seen it too. A
 * previous key that is deleted counts no more at once.
 */
#ifndef TEC_SRV_REGKEY_H
#define TEC_SRV_REGKEY_H

#include <stdbool.h>

#include "tec/base/uuid.h"
#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"
#include "tec/model/cluster.h"

struct srv_regkey;
struct srv_regkey *srv_regkey_new(struct loop *l, struct k8s_transport *t, const char *ns);
void srv_regkey_free(struct srv_regkey *k); /* NULL is fine */
/* Reads them from now on. Called again it does nothing, and there is no way back: after a
 * change to AtRequest, nodes still come with ids that were handed out before. */
void srv_regkey_want(struct srv_regkey *k);
/* Not wanted, or all three were listed once (present or not). */
bool srv_regkey_filled(const struct srv_regkey *k);
/* False: no key was read yet. */
bool srv_regkey_make(
	struct srv_regkey *k, const struct model_cluster *c, char out[UUID_TEXT_LEN + 1]);
/* Whether a listener of this cluster handed this id out, and not too long ago. */
bool srv_regkey_valid(struct srv_regkey *k, const struct model_cluster *c, const char *uuid);
/* Somebody deleted the Machine with this id. */
bool srv_regkey_is_deleted(const struct srv_regkey *k, const char *uuid);
/* All were listed, the current key is in use: what is not valid now will not become it. */
bool srv_regkey_settled(struct srv_regkey *k, const struct model_cluster *c);

#endif
