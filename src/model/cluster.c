/* SPDX-License-Identifier: MIT */
/*
 * TrustedExecutionCluster, read strictly: a member of the wrong type or with an unknown value is an
 * error that names it, and never a default (an unknown registration.mode must not become Open). An
 * empty address counts as unset. An empty Secret name does not, because that would silently mean
 * plain HTTP.
 *
 * Members marked (+) are not part of the Rust operator's CRD. An annotation mirrors them, because a
 * visit of that operator prunes them from spec.
 */
#include "config.h"

#include "tec/model/cluster.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"
#include "tec/model/mark.h"

#define ADDR_MAX  260
#define EPOCH_MAX 1000000000

const char *const model_cluster_cond_types[CLUSTER_N_CONDS] = {
	[CLUSTER_INSTALLED] = "Installed",
	[CLUSTER_KNOWN_ADDRESS] = "KnownTrusteeAddress",
	[CLUSTER_TRUSTEE_SYNCED] = "TrusteeSynced",
	[CLUSTER_REGISTRATION_OPEN] = "RegistrationOpen",
	[CLUSTER_KEYS_ISOLATED] = "KeysIsolated",
	[CLUSTER_AUTHORITY] = "Authority",
};

/* Reasons are part of the API: clients and tecctl match them. */
const char *model_cluster_reason(enum model_cluster_reason r)
{
	static const char *const names[CLUSTER_N_REASONS] = {
		[CLUSTER_INSTALLATION_COMPLETED] = "InstallationCompleted",
		[CLUSTER_INSTALLING] = "Installing",
		[CLUSTER_UNINSTALLING] = "Uninstalling",
		[CLUSTER_NON_UNIQUE] = "NonUnique",
		[CLUSTER_CONFLICT] = "Conflict",
		[CLUSTER_ADDRESS_FOUND] = "AddressFound",
		[CLUSTER_NO_ADDRESS_FOUND] = "NoAddressFound",
		[CLUSTER_SYNCED] = "Synced",
		[CLUSTER_NOT_AVAILABLE] = "NotAvailable",
		[CLUSTER_REFUSED] = "Refused",
		[CLUSTER_POPULATING] = "Populating",
		[CLUSTER_OPEN] = "Open",
		[CLUSTER_NOT_SERVED] = "NotServed",
		[CLUSTER_MODE_MANUAL] = "ModeManual",
		[CLUSTER_NO_REGISTRATION_KEY] = "NoRegistrationKey",
		[CLUSTER_MACHINE_LIMIT_REACHED] = "MachineLimitReached",
		[CLUSTER_PENDING_LIMIT_REACHED] = "PendingLimitReached",
		[CLUSTER_PER_MACHINE] = "PerMachine",
		[CLUSTER_SHARED_AMONG_NODES] = "SharedAmongNodes",
		[CLUSTER_SHARED_WITH_STRANGERS] = "SharedWithStrangers",
		[CLUSTER_SELF] = "Self",
		[CLUSTER_FROZEN] = "Frozen",
		[CLUSTER_FOLLOWING] = "Following",
		[CLUSTER_RETIRED] = "Retired",
		[CLUSTER_FREEZING] = "Freezing",
		[CLUSTER_RETIRING] = "Retiring",
		[CLUSTER_FOLLOWING_BEHIND] = "FollowingBehind",
		[CLUSTER_SOURCE_UNREACHABLE] = "SourceUnreachable",
		[CLUSTER_SOURCE_DIFFERS] = "SourceDiffers",
		[CLUSTER_SOURCE_WENT_BACK] = "SourceWentBack",
		[CLUSTER_PEER_UNKNOWN] = "PeerUnknown",
		[CLUSTER_PEER_DECIDES] = "PeerDecides",
	};

	return names[r];
}

/* The state of one extraction: where strings and the first error are stored. */
struct reader {
	struct kobj_pack *pack;
	struct err *err;
	struct json_object *spec;
	struct json_object
		*mirror; /* of the (+) part, from the annotation; NULL: none or unreadable */
	bool lost;       /* spec lacks something that the mirror has */
};

/* Report a member. path is as for json_get(); people read it with dots. */
static int refuse(struct err *err, const char *path, const char *why)
{
	char dotted[64];
	size_t n = 0;

	for (; path[n] && n < sizeof(dotted) - 1; n++)
		dotted[n] = path[n] == '/' ? '.' : path[n];
	dotted[n] = 0;
	return err_set(err, ERR_INVALID, "spec.%s %s", dotted, why);
}

/* Read a string member; NULL with *ok set when it is absent or null. */
static const char *read_string(struct json_object *o, const char *path, struct err *err, bool *ok)
{
	struct json_object *v = json_get(o, path);
	const char *s = json_get_str(o, path);

	*ok = !v || s;
	if (!*ok)
		refuse(err, path, "is not a string");
	return s;
}

/* An empty address counts as unset. Its form is checked where it is used. */
static int read_addr(struct reader *r, struct json_object *o, const char *path, size_t field)
{
	bool ok;
	const char *s = read_string(o, path, r->err, &ok);

	if (!ok)
		return -1;
	if (s && strlen(s) > ADDR_MAX)
		return refuse(r->err, path, "is too long for an address");
	if (s && s[0])
		kobj_pack_str(r->pack, field, s);
	return 0;
}

/* Read the name of a Secret or ConfigMap. An empty name is an error, not "unset". */
static int read_name(struct reader *r, struct json_object *o, const char *path, size_t field)
{
	bool ok;
	const char *s = read_string(o, path, r->err, &ok);

	if (!ok)
		return -1;
	if (s && !kobj_name_valid(s, strlen(s)))
		return refuse(r->err, path, "is not a valid object name");
	kobj_pack_str(r->pack, field, s);
	return 0;
}

/* Numbers are positive and at most max; dflt is used when the member is absent. */
static int read_int(struct reader *r, const char *path, int max, int dflt, int *out)
{
	struct json_object *v = json_get(r->spec, path);
	char range[40];
	int64_t n;

	*out = dflt;
	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_int))
		return refuse(r->err, path, "is not a number");
	n = json_object_get_int64(v);
	if (n < 1 || n > max) {
		snprintf(range, sizeof(range), "is not between 1 and %d", max);
		return refuse(r->err, path, range);
	}
	*out = (int)n;
	return 0;
}

/* Read an enum as an index into names (NULL-terminated); 0 when absent, so the first name is the
 * default. */
static int read_enum(struct reader *r, const char *path, const char *const *names, int *out)
{
	bool ok;
	const char *s = read_string(r->spec, path, r->err, &ok);

	if (!ok)
		return -1;
	*out = 0;
	if (!s)
		return 0;
	for (int i = 0; names[i]; i++) {
		if (str_eq(names[i], s)) {
			*out = i;
			return 0;
		}
	}
	return refuse(r->err, path, "has a value unknown to this version");
}

/* Choose where to read a member of the (+) part: in the mirror, if spec lost something and the
 * mirror has the member, otherwise in spec. */
static struct reader kept(const struct reader *r, struct json_object *in_mirror)
{
	struct reader k = *r;

	if (r->lost && in_mirror)
		k.spec = r->mirror;
	return k;
}

static const char *const reg_modes[] = {"Open", "Token", "Manual", NULL};

/* In the order of the enums; the first value is the default. */
static const char *const authorities[] = {"Self", "Following", "Frozen", "Retired", NULL};

const char *model_authority_name(enum model_authority a)
{
	return authorities[a];
}

const char *model_reg_mode_name(enum model_reg_mode m)
{
	return reg_modes[m];
}

/* guard and authority are kept from the mirror while something is lost: the guard must not vanish,
 * and a second cluster must not start to decide, because of a pruned spec. */
static int read_enums(struct reader *r, struct model_cluster *c)
{
	static const char *const deploy[] = {"Managed", "External", NULL};
	static const char *const delivery[] = {"AdminAPI", "Volumes", NULL};
	static const char *const isolation[] = {"PerMachine", "Shared", NULL};
	static const char *const plaintext[] = {"Allow", "Refuse", NULL};
	static const char *const approval[] = {"Automatic", "Manual", NULL};
	static const char *const endorsement[] = {"None", "Optional", "Required", NULL};
	static const char *const machine[] = {"AtRequest", "AtKey", NULL};
	static const char *const guard[] = {"Enabled", "Disabled", NULL};
	struct reader trustee = kept(r, json_get_obj(r->mirror, "trustee")),
		      deciding = kept(r, json_get(r->mirror, "authority"));
	int v[10];

	if (read_enum(r, "trustee/deploy", deploy, &v[0]) < 0 ||
		read_enum(r, "trustee/delivery", delivery, &v[1]) < 0 ||
		read_enum(r, "trustee/keyIsolation", isolation, &v[2]) < 0 ||
		read_enum(r, "trustee/plaintext", plaintext, &v[3]) < 0 ||
		read_enum(r, "registration/mode", reg_modes, &v[4]) < 0 ||
		read_enum(r, "registration/approval", approval, &v[5]) < 0 ||
		read_enum(r, "registration/endorsement", endorsement, &v[6]) < 0 ||
		read_enum(r, "registration/machine", machine, &v[7]) < 0 ||
		read_enum(&trustee, "trustee/guard", guard, &v[8]) < 0 ||
		read_enum(&deciding, "authority", authorities, &v[9]) < 0)
		return -1;
	c->deploy = (enum model_deploy)v[0];
	c->delivery = (enum model_delivery)v[1];
	c->isolation = (enum model_isolation)v[2];
	c->plaintext = (enum model_plaintext)v[3];
	c->reg_mode = (enum model_reg_mode)v[4];
	c->approval = (enum model_approval)v[5];
	c->endorsement = (enum model_endorsement)v[6];
	c->reg_machine = (enum model_reg_machine)v[7];
	c->guard = (enum model_guard)v[8];
	c->authority = (enum model_authority)v[9];
	return 0;
}

/* The CRD stores no defaults: those that its descriptions name are filled in here. */
static int read_numbers(struct reader *r, struct model_cluster *c)
{
	bool ok;
	const char *ttl = read_string(r->spec, "registration/pendingTTL", r->err, &ok);

	if (!ok)
		return -1;
	if (str_to_duration_ms(ttl ? ttl : "24h", &c->pending_ttl_ms) < 0)
		return err_set(r->err, ERR_INVALID,
			"spec.registration.pendingTTL is not a duration such as 24h");
	if (read_int(r, "trusteeKbsPort", 65535, 8080, &c->trustee_port) < 0 ||
		read_int(r, "trustee/window", 64, 0, &c->window) < 0 ||
		read_int(r, "registerServerPort", 65535, 8000, &c->register_port) < 0 ||
		read_int(r, "attestationKeyRegisterPort", 65535, 8001, &c->ak_port) < 0 ||
		read_int(r, "registration/pendingLimit", INT_MAX, 10000, &c->pending_limit) < 0 ||
		read_int(r, "registration/machineLimit", INT_MAX, 50000, &c->machine_limit) < 0)
		return -1;
	return read_int(r, "registration/waitingKeysPerMachine", INT_MAX, 4, &c->waiting_keys);
}

/* maxStaleness is read even without a cluster to follow, so that a bad value is always reported. */
static int read_follow(struct reader *r, struct model_cluster *c)
{
	struct reader from = kept(r, json_get_obj(r->mirror, "follow"));
	const char *stale;
	bool ok;

#define FIELD(m) offsetof(struct model_cluster, m)
	if (read_name(&from, from.spec, "follow/kubeconfigSecret", FIELD(follow_secret)) < 0 ||
		read_name(&from, from.spec, "follow/namespace", FIELD(follow_namespace)) < 0)
		return -1;
#undef FIELD
	stale = read_string(from.spec, "follow/maxStaleness", r->err, &ok);
	if (!ok)
		return -1;
	if (str_to_duration_ms(stale ? stale : "24h", &c->follow_stale_ms) < 0)
		return err_set(r->err, ERR_INVALID,
			"spec.follow.maxStaleness is not a duration such as 24h");
	return 0;
}

/* The epoch orders handovers between clusters. It must not fall back to 0 when spec was pruned. */
static int read_epoch(struct reader *r, struct model_cluster *c)
{
	struct reader from = kept(r, json_get(r->mirror, "epoch"));
	struct json_object *v = json_get(from.spec, "epoch");

	c->epoch = v ? json_object_get_int64(v) : 0;
	if (v && (!json_object_is_type(v, json_type_int) || c->epoch < 0 || c->epoch > EPOCH_MAX))
		return refuse(r->err, "epoch", "is not a number from 0 to 1000000000");
	return 0;
}

/* Each server needs an address; its CA and admin Secret are optional. */
static int read_servers(struct reader *r, struct model_cluster *c)
{
	struct json_object *v = json_get(r->spec, "trusteeServers");
	size_t n;

	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_array))
		return err_set(r->err, ERR_INVALID, "spec.trusteeServers is not a list");
	n = json_object_array_length(v);
	if (n > MODEL_CLUSTER_SERVERS_MAX)
		return err_set(r->err, ERR_INVALID, "spec.trusteeServers has more than %d entries",
			MODEL_CLUSTER_SERVERS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_object_array_get_idx(v, i);
		size_t at = i * sizeof(c->server_addr[0]);
		const char *addr = json_get_str(e, "address");

		if (!addr || !addr[0])
			return err_set(r->err, ERR_INVALID,
				"spec.trusteeServers contains an entry without an address");
		if (read_addr(r, e, "address", offsetof(struct model_cluster, server_addr) + at) <
				0 ||
			read_name(r, e, "caSecret",
				offsetof(struct model_cluster, server_ca) + at) < 0 ||
			read_name(r, e, "adminSecret",
				offsetof(struct model_cluster, server_admin) + at) < 0)
			return -1;
	}
	c->n_servers = (unsigned)n;
	return 0;
}

/* A listener without a Secret serves plain HTTP, so a name that cannot be read must be an error. */
static int read_texts(struct reader *r)
{
#define FIELD(m) offsetof(struct model_cluster, m)
	if (read_addr(r, r->spec, "publicTrusteeAddr", FIELD(public_trustee_addr)) < 0 ||
		read_addr(r, r->spec, "publicRegisterAddr", FIELD(public_register_addr)) < 0 ||
		read_addr(r, r->spec, "publicAttestationKeyRegisterAddr", FIELD(public_ak_addr)) <
			0 ||
		read_name(r, r->spec, "trusteeSecret", FIELD(trustee_secret)) < 0 ||
		read_name(r, r->spec, "registerServerSecret", FIELD(register_secret)) < 0 ||
		read_name(r, r->spec, "attestationKeyRegisterSecret", FIELD(ak_secret)) < 0 ||
		read_name(r, r->spec, "registration/tokenSecret", FIELD(token_secret)) < 0)
		return -1;
	return read_name(r, r->spec, "registration/endorsementCAConfigMap", FIELD(endorsement_ca));
#undef FIELD
}

/* Find the first member of `was` (in its order, which is sorted) that `now` lacks, and append its
 * path. Lists are compared as a whole. */
static bool lost_member(struct json_object *was, struct json_object *now, struct strbuf *path)
{
	json_object_object_foreach (was, name, value) {
		struct json_object *have = NULL;
		size_t len = path->len;

		if (!value)
			continue;
		strbuf_addf(path, "%s%s", len ? "." : "", name);
		if (!now || !json_object_object_get_ex(now, name, &have) || !have)
			return true;
		if (json_object_is_type(value, json_type_object) &&
			lost_member(value,
				json_object_is_type(have, json_type_object) ? have : NULL, path))
			return true;
		path->len = len;
		path->data[len] = '\0';
	}
	return false;
}

/* Parse the mirror annotation. NULL: absent or unreadable. */
static struct json_object *parse_mirror(struct json_object *o)
{
	struct err err = ERR_INIT;
	const char *text = kobj_annotation(o, MODEL_EXTENDED_ANNOTATION);
	struct json_object *mirror =
		text ? json_parse(text, strlen(text), &json_limits_object, &err) : NULL;

	if (mirror && !json_object_is_type(mirror, json_type_object)) {
		json_object_put(mirror);
		return NULL;
	}
	return mirror;
}

/* Append the path of what the annotation has and spec lacks; nothing when nothing is lost. An
 * unreadable annotation counts as a loss, because it may hide one. */
static void find_lost(struct json_object *mirror, struct json_object *now, struct strbuf *path)
{
	if (mirror)
		lost_member(mirror, now, path);
	else
		strbuf_adds(path, "(the annotation " MODEL_EXTENDED_ANNOTATION " is unreadable)");
}

/* Keep the (+) members of spec as canonical JSON, and record whether the mirror has more. Must run
 * before the members are read, since it sets r->lost. */
static int read_extended(struct reader *r, struct json_object *o)
{
	static const char *const members[] = {"attestation", "follow", "registration", "tls",
		"trustee", "authority", "epoch", "trusteeServers"};
	cleanup_json struct json_object *ext = json_obj();
	cleanup_strbuf struct strbuf text = STRBUF_INIT, lost = STRBUF_INIT;
	const char *mirror;

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct json_object *v = json_get(r->spec, members[i]);

		if (v && i < 5 && !json_object_is_type(v, json_type_object))
			return refuse(r->err, members[i], "is not an object");
		if (v)
			json_add(ext, members[i], json_object_get(v));
	}
	if (json_object_object_length(ext) > 0) {
		json_canonical(&text, ext);
		kobj_pack_str(
			r->pack, offsetof(struct model_cluster, extended_spec), strbuf_str(&text));
	}
	mirror = kobj_annotation(o, MODEL_EXTENDED_ANNOTATION);
	kobj_pack_str(r->pack, offsetof(struct model_cluster, extended_mirror), mirror);
	if (mirror)
		find_lost(r->mirror, ext, &lost);
	r->lost = lost.len > 0;
	if (r->lost)
		kobj_pack_str(
			r->pack, offsetof(struct model_cluster, extended_lost), strbuf_str(&lost));
	return 0;
}

/* Duplicates are refused: each platform has one set of values. */
static int read_platforms(struct reader *r, struct json_object *names, struct model_cluster *c)
{
	size_t n = names ? json_object_array_length(names) : 0;

	if (n > MODEL_PLATFORMS_MAX)
		return err_set(r->err, ERR_INVALID,
			"spec.attestation.platformConfigMaps has more than %d entries",
			MODEL_PLATFORMS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_object_array_get_idx(names, i);
		const char *name =
			json_object_is_type(e, json_type_string) ? json_object_get_string(e) : "";

		if (!kobj_name_valid(name, *name ? (size_t)json_object_get_string_len(e) : 0))
			return err_set(r->err, ERR_INVALID,
				"spec.attestation.platformConfigMaps contains an entry that is not a valid object name");
		for (size_t k = 0; k < i; k++)
			if (json_object_equal(e, json_object_array_get_idx(names, k)))
				return err_set(r->err, ERR_INVALID,
					"spec.attestation.platformConfigMaps lists %s twice", name);
		kobj_pack_str(r->pack,
			offsetof(struct model_cluster, platform) + i * sizeof(c->platform[0]),
			name);
	}
	c->n_platforms = (unsigned)n;
	return 0;
}

/* Both members come from the same place: requirements that were pruned from spec stay in force. */
static int read_attestation(const struct reader *r, struct model_cluster *c)
{
	static const char *const pcr7[] = {"Ignore", "Require", NULL};
	struct reader from = kept(r, json_get_obj(r->mirror, "attestation"));
	struct json_object *names;
	int v;

	names = json_get(from.spec, "attestation/platformConfigMaps");
	if (names && !json_object_is_type(names, json_type_array))
		return err_set(
			r->err, ERR_INVALID, "spec.attestation.platformConfigMaps is not a list");
	if (read_platforms(&from, names, c) < 0 ||
		read_enum(&from, "attestation/pcr7", pcr7, &v) < 0)
		return -1;
	c->pcr7 = (enum model_pcr7)v;
	return 0;
}

/* Upper-case digits are refused, because hashes are compared as text. */
static bool is_sha256(struct json_object *v)
{
	return json_object_is_type(v, json_type_string) &&
	       json_object_get_string_len(v) == SHA256_HEX_LEN &&
	       strspn(json_object_get_string(v), "0123456789abcdef") == SHA256_HEX_LEN;
}

/* The hashes are kept in one string, in the form that pki_cert_read_bundle() writes. */
static int read_tls(const struct reader *r)
{
	struct reader from = kept(r, json_get_obj(r->mirror, "tls"));
	struct json_object *list = json_get(from.spec, "tls/caSHA256");
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	size_t n;

	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array))
		return refuse(r->err, "tls/caSHA256", "is not a list");
	n = json_object_array_length(list);
	if (n < 1 || n > MODEL_CLUSTER_CA_MAX)
		return err_set(r->err, ERR_INVALID, "spec.tls.caSHA256 must have 1 to %d entries",
			MODEL_CLUSTER_CA_MAX);
	for (size_t i = 0; i < n; i++) {
		struct json_object *v = json_object_array_get_idx(list, i);

		if (!is_sha256(v))
			return refuse(r->err, "tls/caSHA256",
				"contains an entry that is not a lower-case hexadecimal SHA-256 digest");
		strbuf_addf(&text, "%s%s", i ? " " : "", json_object_get_string(v));
	}
	kobj_pack_str(r->pack, offsetof(struct model_cluster, ca_sha256), strbuf_str(&text));
	return 0;
}

/* memmem() is exact enough: both texts are hashes of one length with single spaces between them. */
const char *model_cluster_unlisted_ca(const char *listed, const char *found)
{
	if (!listed || !found)
		return NULL;
	for (const char *p = found;; p++) {
		size_t len = strcspn(p, " ");

		if (len != SHA256_HEX_LEN || !memmem(listed, strlen(listed), p, len))
			return p;
		p += len;
		if (!*p)
			return NULL;
	}
}

/* Announcements beyond MODEL_ANNOUNCED_MAX are ignored, so their Secrets do not count as ours. */
static void read_announced(struct reader *r, struct json_object *o, struct model_cluster *c)
{
	struct json_object *all = json_get_obj(o, "metadata/annotations");
	size_t field = offsetof(struct model_cluster, announced);

	if (!all)
		return;
	json_object_object_foreach (all, name, value) {
		const char *secret = name + sizeof(MODEL_ANNOUNCED_PREFIX) - 1;

		(void)value;
		if (!str_starts(name, MODEL_ANNOUNCED_PREFIX) ||
			!kobj_name_valid(secret, strlen(secret)) ||
			c->n_announced == MODEL_ANNOUNCED_MAX)
			continue;
		kobj_pack_str(r->pack, field, secret);
		kobj_pack_str(r->pack, field + sizeof(const char *), model_mark(o, name));
		field += sizeof(c->announced[0]);
		c->n_announced++;
	}
}

const char *model_cluster_announced(const struct model_cluster *c, const char *secret)
{
	for (unsigned i = 0; i < c->n_announced; i++)
		if (str_eq(c->announced[i].secret, secret))
			return c->announced[i].hashes;
	return NULL;
}

bool model_cluster_announces(const struct model_cluster *c, const char *secret, const char *hex)
{
	return model_mark_announces(model_cluster_announced(c, secret), hex);
}

/* A time in the future is for the controllers to refuse: the model has no clock. */
static void read_adopt_before(struct json_object *o, struct model_cluster *c)
{
	const char *text = kobj_annotation(o, MODEL_ADOPT_BEFORE_ANNOTATION);
	int64_t us = 0;

	c->adopt_before_bad = text && clock_parse(text, &us) < 0;
	c->adopt_before_s = text && !c->adopt_before_bad ? us / 1000000 : INT64_MIN;
}

/* Write the members that are present as "name=value ", so that two statuses can be compared as
 * texts. */
static char *texts_of(struct json_object *o, const char *const *members)
{
	struct strbuf text = STRBUF_INIT;

	for (; *members; members++) {
		struct json_object *v = json_get(o, *members);

		if (v)
			strbuf_addf(&text, "%s=%s ", *members, json_object_get_string(v));
	}
	return text.data ? strbuf_steal(&text) : xstrdup("");
}

/* Facts are written when they change. Counters change all the time, so the controller decides how
 * often to write those. */
void model_cluster_authority_texts(struct json_object *authority, char **facts, char **counts)
{
	static const char *const of_facts[] = {"digest", "machines", "attestationKeys", "images",
		"peer", "peerUID", "peerEpoch", NULL};
	static const char *const of_counts[] = {"behind", "seen", NULL};

	*facts = texts_of(authority, of_facts);
	*counts = texts_of(authority, of_counts);
}

/* Only what is compared with the next status, and what must survive a restart: the peer's epoch and
 * when it was last seen. */
static void read_authority(struct reader *r, struct json_object *o, struct model_cluster *c)
{
	struct json_object *authority = json_get_obj(o, "status/authority");
	const char *seen = json_get_str(authority, "seen");
	cleanup_free char *facts = NULL, *counts = NULL;
	int64_t us = 0;

	c->peer_epoch = json_get_int(authority, "peerEpoch", -1);
	c->peer_seen_s = seen && clock_parse(seen, &us) == 0 && us > 0 ? us / 1000000 : 0;

	model_cluster_authority_texts(authority, &facts, &counts);
	kobj_pack_str(r->pack, offsetof(struct model_cluster, authority_facts), facts);
	kobj_pack_str(r->pack, offsetof(struct model_cluster, authority_counts), counts);
	kobj_pack_str(r->pack, offsetof(struct model_cluster, authority_peer),
		json_get_str(authority, "peer"));
}

/* read_extended() comes first, because the others read from the mirror while something is lost. An
 * error makes the object refused as a whole. */
struct kobj *model_cluster_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	cleanup_json struct json_object *none = json_obj(), *mirror = parse_mirror(o);
	struct json_object *spec = json_get(o, "spec");
	struct reader r = {&pack, err, spec ? spec : none, mirror, false};
	struct model_cluster c = {0};

	if (kobj_meta_read(&pack, o, &c.obj, err) < 0)
		return NULL;
	if (!json_object_is_type(r.spec, json_type_object)) {
		err_set(err, ERR_INVALID, "spec is not an object");
		return NULL;
	}
	if (read_extended(&r, o) < 0 || read_texts(&r) < 0 || read_servers(&r, &c) < 0 ||
		read_enums(&r, &c) < 0 || read_numbers(&r, &c) < 0 ||
		read_attestation(&r, &c) < 0 || read_tls(&r) < 0 || read_follow(&r, &c) < 0 ||
		read_epoch(&r, &c) < 0)
		return NULL;
	read_announced(&r, o, &c);
	read_adopt_before(o, &c);
	read_authority(&r, o, &c);
	kobj_pack_str(&pack, offsetof(struct model_cluster, values_sha256),
		model_mark(o, MODEL_CLUSTER_VALUES_MARK));
	kobj_pack_str(&pack, offsetof(struct model_cluster, followed_uid),
		model_mark(o, MODEL_CLUSTER_FOLLOWED_MARK));
	kobj_pack_str(&pack, offsetof(struct model_cluster, retired_uid),
		model_mark(o, MODEL_CLUSTER_RETIRED_MARK));
	kobj_cond_read(&pack, o, model_cluster_cond_types, CLUSTER_N_CONDS, c.cond,
		offsetof(struct model_cluster, cond));
	return kobj_pack_finish(&pack, &c, sizeof(c));
}

/* Fields accepted for compatibility: the operator reports them instead of pretending that they
 * protect something. */
void model_cluster_unused_fields(const struct model_cluster *c, struct strbuf *out)
{
	const struct {
		bool set;
		const char *name;
	} fields[] = {
		{c->reg_mode == MODEL_REG_TOKEN, "registration.mode Token"},
		{c->token_secret != NULL, "registration.tokenSecret"},
		{c->endorsement != MODEL_ENDORSEMENT_NONE, "registration.endorsement"},
		{c->endorsement_ca != NULL, "registration.endorsementCAConfigMap"},
	};

	for (size_t i = 0, n = 0; i < ARRAY_LEN(fields); i++) {
		if (fields[i].set)
			strbuf_addf(out, "%s%s", n++ ? ", " : "", fields[i].name);
	}
}

/* All clusters are one group, which the cache sorts by age: its first member is the cluster
 * served. */
const char *model_cluster_index(const struct kobj *o, unsigned i)
{
	return i == 0 && !o->deleting ? "" : NULL;
}

/* Controllers of other kinds are woken only when this is false, so it must compare everything that
 * they read. */
bool model_cluster_means_the_same(const struct kobj *was, const struct kobj *now)
{
	return was && now && str_eq(was->uid, now->uid) && was->generation == now->generation &&
	       was->deleting == now->deleting &&
	       model_cluster(was)->adopt_before_s == model_cluster(now)->adopt_before_s &&
	       str_eq(model_cluster_peer(model_cluster(was)),
		       model_cluster_peer(model_cluster(now))) &&
	       str_eq(model_cluster(was)->extended_mirror, model_cluster(now)->extended_mirror);
}

/* The higher epoch decides. With equal epochs, the order of UIDs does, so that both sides come to
 * the same answer without talking to each other. */
bool model_cluster_yields(const struct model_cluster *c, const struct model_cluster *peer)
{
	bool decides = peer->authority == MODEL_AUTHORITY_SELF;

	if (peer->epoch != c->epoch)
		return peer->epoch > c->epoch &&
		       (decides || peer->authority == MODEL_AUTHORITY_FROZEN);
	/* A peer that does not know of c would continue to decide in any case. */
	return decides && (!str_eq(model_cluster_peer(peer), c->obj.uid) ||
				  strcmp(peer->obj.uid, c->obj.uid) < 0);
}
