/* SPDX-License-Identifier: MIT */
/*
 * The key that authenticates machine ids handed out with registration.machine AtKey
 * (rats/ticket.h): Secret tec-registration-key, and tec-registration-key-previous while ids from
 * it are valid. The leader creates and rotates them (render/regkey.h). A listener watches both by
 * name alone and uses only keys announced on the cluster, so no other Secret can become the key.
 * It also reads ConfigMap tec-deleted-ids (model/record.h), by name alone.
 *
 * Rotation loses no node. While the leader replaces the Secret, the last bytes read stay in use.
 * A new key signs only some seconds after it was seen, when every other listener has seen it too.
 * A deleted previous key stops counting at once.
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
/* Starts reading the Secrets; further calls do nothing. It cannot be stopped: after a change to
 * AtRequest, nodes still come with ids that were handed out before. */
void srv_regkey_want(struct srv_regkey *k);
/* Whether reading is not wanted, or all three objects were listed once, present or not. */
bool srv_regkey_filled(const struct srv_regkey *k);
/* Makes a new machine id. false: no key has been read yet. */
bool srv_regkey_make(
	struct srv_regkey *k, const struct model_cluster *c, char out[UUID_TEXT_LEN + 1]);
/* Whether a listener of this cluster handed out this id, and the id has not expired. */
bool srv_regkey_valid(struct srv_regkey *k, const struct model_cluster *c, const char *uuid);
/* Whether a Machine with this id was deleted; true also while the record is unreadable. */
bool srv_regkey_is_deleted(const struct srv_regkey *k, const char *uuid);
/* Whether all objects were listed and the current key is usable: an id that is invalid now stays
 * invalid. */
bool srv_regkey_settled(struct srv_regkey *k, const struct model_cluster *c);

#endif
