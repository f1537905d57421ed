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
#include <stdarg.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/kobj/key.h"
#include "tec/model/lost.h"
#include "tec/model/mark.h"
#include "tec/model/plain.h"

#define AT(m) offsetof(struct model_cluster, m)

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
		[CLUSTER_GUARD_MISSING] = "GuardMissing",
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

/* The state of one extraction: where strings and the first error are stored. After an error, what
 * is read no longer matters, so only the end of the extraction looks at it. */
struct reader {
	struct kobj_pack *pack;
	struct err *err;
	struct json_object *spec;
	struct json_object
		*mirror; /* of the (+) part, from the annotation; NULL: none or unreadable */
	bool lost;       /* spec lacks something that the mirror has */
};

/* Report a member. path is as for json_get(); people read it with dots. */
static void PRINTF_LIKE(3, 4) refuse(struct reader *r, const char *path, const char *why_fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	va_list ap;

	if (err_is_set(r->err))
		return;
	model_plain_field(&text, path);
	strbuf_addc(&text, ' ');
	va_start(ap, why_fmt);
	strbuf_vaddf(&text, why_fmt, ap);
	va_end(ap);
	(void)err_set(r->err, ERR_INVALID, "%s", strbuf_str(&text));
}

/* Read a string member; NULL when it is absent or null. */
static const char *read_string(struct reader *r, struct json_object *o, const char *path)
{
	const char *s = json_get_str(o, path);

	if (!s && json_get(o, path))
		refuse(r, path, "is not a string");
	return s;
}

/* An empty address counts as unset. Its form is checked where it is used. */
static void read_addr(struct reader *r, struct json_object *o, const char *path, size_t field)
{
	const char *s = read_string(r, o, path);

	if (s && strlen(s) > ADDR_MAX)
		refuse(r, path, "is too long for an address");
	kobj_pack_str(r->pack, field, s && s[0] ? s : NULL);
}

/* Read the name of a Secret or ConfigMap. An empty name is an error, not "unset". */
static void read_name(struct reader *r, struct json_object *o, const char *path, size_t field)
{
	const char *s = read_string(r, o, path);

	if (s && !kobj_name_valid(s, strlen(s)))
		refuse(r, path, "is not a valid object name");
	kobj_pack_str(r->pack, field, s);
}

/* A uid that Kubernetes gave to an object. */
static void read_uid(struct reader *r, struct json_object *o, const char *path, size_t field)
{
	const char *s = read_string(r, o, path);

	if (s && !uuid_valid(s, strlen(s)))
		refuse(r, path, "is not a UID");
	kobj_pack_str(r->pack, field, s);
}

/* Numbers are positive and at most max; dflt is used when the member is absent. */
static int read_int(struct reader *r, const char *path, int max, int dflt)
{
	struct json_object *v = json_get(r->spec, path);
	int64_t n = v ? json_object_get_int64(v) : dflt;

	if (v && !json_object_is_type(v, json_type_int))
		refuse(r, path, "is not a number");
	else if (v && (n < 1 || n > max))
		refuse(r, path, "is not between 1 and %d", max);
	return (int)n;
}

static int64_t read_day(struct reader *r, struct json_object *o, const char *path)
{
	const char *s = read_string(r, o, path);
	int64_t ms = 0;

	if (str_to_duration_ms(s ? s : "24h", &ms) < 0)
		refuse(r, path, "is not a duration such as 24h");
	return ms;
}

/* Read an enum as an index into names (NULL-terminated); 0 when absent, so the first name is the
 * default. */
static unsigned read_enum(
	struct reader *r, struct json_object *o, const char *path, const char *const *names)
{
	const char *s = read_string(r, o, path);

	for (unsigned i = 0; s && names[i]; i++)
		if (str_eq(names[i], s))
			return i;
	if (s)
		refuse(r, path, "has a value unknown to this version");
	return 0;
}

static struct json_object *read_list(struct reader *r, struct json_object *o, const char *path)
{
	struct json_object *v = json_get(o, path);

	if (v && !json_object_is_type(v, json_type_array))
		refuse(r, path, "is not a list");
	return json_get_arr(o, path);
}

/* Choose where to read a member of the (+) part: in the mirror, if spec lost something and the
 * mirror has the member, otherwise in spec. */
static struct json_object *kept(const struct reader *r, struct json_object *in_mirror)
{
	return r->lost && in_mirror ? r->mirror : r->spec;
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
static void read_enums(struct reader *r, struct model_cluster *c)
{
	static const char *const deploy[] = {"Managed", "External", NULL};
	static const char *const delivery[] = {"AdminAPI", "Volumes", NULL};
	static const char *const isolation[] = {"PerMachine", "Shared", NULL};
	static const char *const plaintext[] = {"Allow", "Refuse", NULL};
	static const char *const approval[] = {"Automatic", "Manual", NULL};
	static const char *const endorsement[] = {"None", "Optional", "Required", NULL};
	static const char *const machine[] = {"AtRequest", "AtKey", NULL};
	static const char *const guard[] = {"Enabled", "Disabled", NULL};
	struct json_object *spec = r->spec, *trustee = kept(r, json_get_obj(r->mirror, "trustee")),
			   *deciding = kept(r, json_get(r->mirror, "authority"));

	c->deploy = read_enum(r, spec, "trustee/deploy", deploy);
	c->delivery = read_enum(r, spec, "trustee/delivery", delivery);
	c->isolation = read_enum(r, spec, "trustee/keyIsolation", isolation);
	c->plaintext = read_enum(r, spec, "trustee/plaintext", plaintext);
	c->reg_mode = read_enum(r, spec, "registration/mode", reg_modes);
	c->approval = read_enum(r, spec, "registration/approval", approval);
	c->endorsement = read_enum(r, spec, "registration/endorsement", endorsement);
	c->reg_machine = read_enum(r, spec, "registration/machine", machine);
	c->guard = read_enum(r, trustee, "trustee/guard", guard);
	c->authority = read_enum(r, deciding, "authority", authorities);
}

/* The CRD stores no defaults: those that its descriptions name are filled in here. */
static void read_numbers(struct reader *r, struct model_cluster *c)
{
	c->pending_ttl_ms = read_day(r, r->spec, "registration/pendingTTL");
	c->trustee_port = read_int(r, "trusteeKbsPort", 65535, 8080);
	c->window = read_int(r, "trustee/window", 64, 0);
	c->register_port = read_int(r, "registerServerPort", 65535, 8000);
	c->ak_port = read_int(r, "attestationKeyRegisterPort", 65535, 8001);
	c->pending_limit = read_int(r, "registration/pendingLimit", INT_MAX, 10000);
	c->machine_limit = read_int(r, "registration/machineLimit", INT_MAX, 50000);
	c->waiting_keys = read_int(r, "registration/waitingKeysPerMachine", INT_MAX, 4);
}

/* maxStaleness is read even without a cluster to follow, so that a bad value is always reported.
 * The epoch orders handovers between clusters. It must not fall back to 0 when spec was pruned. */
static void read_follow(struct reader *r, struct model_cluster *c)
{
	struct json_object *from = kept(r, json_get_obj(r->mirror, "follow"));
	struct json_object *epoch = json_get(kept(r, json_get(r->mirror, "epoch")), "epoch");

	read_name(r, from, "follow/kubeconfigSecret", AT(follow_secret));
	read_name(r, from, "follow/namespace", AT(follow_namespace));
	c->follow_stale_ms = read_day(r, from, "follow/maxStaleness");
	c->epoch = epoch ? json_object_get_int64(epoch) : 0;
	if (epoch && (!json_object_is_type(epoch, json_type_int) || c->epoch < 0 ||
			     c->epoch > EPOCH_MAX))
		refuse(r, "epoch", "is not a number from 0 to 1000000000");
}

/* Each server needs an address; its CA and admin Secret are optional. */
static void read_servers(struct reader *r, struct model_cluster *c)
{
	struct json_object *list = read_list(r, r->spec, "trusteeServers");
	size_t n = json_len(list);

	if (n > MODEL_CLUSTER_SERVERS_MAX) {
		refuse(r, "trusteeServers", "has more than %d entries", MODEL_CLUSTER_SERVERS_MAX);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_at(list, i);
		size_t at = i * sizeof(c->server_addr[0]);
		const char *addr = json_get_str(e, "address");

		if (!addr || !addr[0])
			refuse(r, "trusteeServers", "contains an entry without an address");
		read_addr(r, e, "address", AT(server_addr) + at);
		read_name(r, e, "caSecret", AT(server_ca) + at);
		read_name(r, e, "adminSecret", AT(server_admin) + at);
	}
	c->n_servers = (unsigned)n;
}

/* A listener without a Secret serves plain HTTP, so a name that cannot be read must be an error. */
static void read_texts(struct reader *r)
{
	struct json_object *spec = r->spec;

	read_addr(r, spec, "publicTrusteeAddr", AT(public_trustee_addr));
	read_addr(r, spec, "publicRegisterAddr", AT(public_register_addr));
	read_addr(r, spec, "publicAttestationKeyRegisterAddr", AT(public_ak_addr));
	read_name(r, spec, "trusteeSecret", AT(trustee_secret));
	read_name(r, spec, "registerServerSecret", AT(register_secret));
	read_name(r, spec, "attestationKeyRegisterSecret", AT(ak_secret));
	read_name(r, spec, "registration/tokenSecret", AT(token_secret));
	read_name(r, spec, "registration/endorsementCAConfigMap", AT(endorsement_ca));
	read_uid(r, spec, "trustee/takeOver", AT(take_over));
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

/* Read which servers are lost. Who declares all of them lost means that spec no longer names them:
 * their absence is no loss. Must run before read_extended(). */
static void read_lost(struct reader *r, struct json_object *o, struct model_cluster *c)
{
	const char *text = kobj_annotation(o, MODEL_LOST_ANNOTATION);
	cleanup_json struct json_object *list = model_lost_list(text);

	kobj_pack_str(r->pack, AT(lost_servers), json_len(list) ? text : NULL);
	c->lost_since_s = model_lost_since_s(list);
	if (!json_get(r->spec, "trusteeServers") &&
		model_lost_all(list, json_get_arr(r->mirror, "trusteeServers")))
		json_object_object_del(r->mirror, "trusteeServers");
}

/* Keep the (+) members of spec as canonical JSON, and record whether the mirror has more: the path
 * of what it has and spec lacks. An unreadable annotation counts as a loss, because it may hide one.
 * Must run before the members are read, since it sets r->lost. */
static void read_extended(struct reader *r, struct json_object *o)
{
	static const char *const members[] = {"attestation", "follow", "registration", "tls",
		"trustee", "authority", "epoch", "trusteeServers"};
	cleanup_json struct json_object *ext = json_obj();
	cleanup_strbuf struct strbuf text = STRBUF_INIT, lost = STRBUF_INIT;
	const char *mirror = kobj_annotation(o, MODEL_EXTENDED_ANNOTATION);

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct json_object *v = json_get(r->spec, members[i]);

		if (v && i < 5 && !json_object_is_type(v, json_type_object))
			refuse(r, members[i], "is not an object");
		if (v)
			json_add(ext, members[i], json_object_get(v));
	}
	if (json_len(ext) > 0)
		json_canonical(&text, ext);
	if (r->mirror)
		lost_member(r->mirror, ext, &lost);
	else if (mirror)
		strbuf_adds(&lost, "(the annotation " MODEL_EXTENDED_ANNOTATION " is unreadable)");
	r->lost = lost.len > 0;
	kobj_pack_str(r->pack, AT(extended_spec), text.len ? text.data : NULL);
	kobj_pack_str(r->pack, AT(extended_mirror), mirror);
	kobj_pack_str(r->pack, AT(extended_lost), r->lost ? lost.data : NULL);
}

/* All members come from the same place: requirements that were pruned from spec stay in force.
 * Duplicate platforms are refused: each has one set of values. */
static void read_attestation(struct reader *r, struct model_cluster *c)
{
	static const char path[] = "attestation/platformConfigMaps";
	static const char *const pcr7[] = {"Ignore", "Require", NULL};
	static const char *const release[] = {"AnyTime", "OncePerBoot", NULL};
	struct json_object *from = kept(r, json_get_obj(r->mirror, "attestation"));
	struct json_object *names = read_list(r, from, path);
	size_t n = json_len(names);

	if (n > MODEL_PLATFORMS_MAX) {
		refuse(r, path, "has more than %d entries", MODEL_PLATFORMS_MAX);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_at(names, i);
		const char *name =
			json_object_is_type(e, json_type_string) ? json_object_get_string(e) : "";

		if (!kobj_name_valid(name, *name ? (size_t)json_object_get_string_len(e) : 0))
			refuse(r, path, "contains an entry that is not a valid object name");
		for (size_t k = 0; k < i; k++)
			if (json_object_equal(e, json_at(names, k)))
				refuse(r, path, "lists %s twice", name);
		kobj_pack_str(r->pack, AT(platform) + i * sizeof(c->platform[0]), name);
	}
	c->n_platforms = (unsigned)n;
	c->pcr7 = read_enum(r, from, "attestation/pcr7", pcr7);
	c->release = read_enum(r, from, "attestation/release", release);
}

/* The hashes are kept in one string, in the form that pki_cert_read_bundle() writes. Upper-case
 * digits are refused, because hashes are compared as text. */
static void read_tls(struct reader *r)
{
	struct json_object *from = kept(r, json_get_obj(r->mirror, "tls"));
	struct json_object *list = read_list(r, from, "tls/caSHA256");
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	size_t n = json_len(list);

	if (list && (n < 1 || n > MODEL_CLUSTER_CA_MAX))
		refuse(r, "tls/caSHA256", "must have 1 to %d entries", MODEL_CLUSTER_CA_MAX);
	for (size_t i = 0; i < n && !err_is_set(r->err); i++) {
		struct json_object *v = json_at(list, i);
		const char *s = json_object_get_string(v);

		if (!json_object_is_type(v, json_type_string) ||
			json_object_get_string_len(v) != SHA256_HEX_LEN ||
			strspn(s, "0123456789abcdef") != SHA256_HEX_LEN)
			refuse(r, "tls/caSHA256",
				"contains an entry that is not a lower-case hexadecimal SHA-256 digest");
		strbuf_addf(&text, "%s%s", i ? " " : "", s ? s : "");
	}
	kobj_pack_str(r->pack, AT(ca_sha256), text.len ? text.data : NULL);
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
	size_t field = AT(announced);

	json_each (all, name, value) {
		const char *secret = name + sizeof(MODEL_ANNOUNCED_PREFIX) - 1;

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
	return strbuf_steal(&text);
}

/* Facts are written when they change. Counters and the time "seen" change all the time, so the
 * controller decides how often to write those. */
void model_cluster_authority_texts(struct json_object *authority, char **facts, char **counts)
{
	static const char *const of_facts[] = {"digest", "machines", "attestationKeys", "images",
		"peer", "peerUID", "peerEpoch", NULL};
	static const char *const of_counts[] = {"behind", NULL};

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
	kobj_pack_str(r->pack, AT(authority_facts), facts);
	kobj_pack_str(r->pack, AT(authority_counts), counts);
	kobj_pack_str(r->pack, AT(authority_peer), json_get_str(authority, "peer"));
}

/* read_extended() comes first, because the others read from the mirror while something is lost. An
 * error makes the object refused as a whole. An adopt-before time in the future is for the
 * controllers to refuse: the model has no clock. */
struct kobj *model_cluster_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	cleanup_json struct json_object *none = json_obj(), *mirror = parse_mirror(o);
	struct json_object *spec = json_get(o, "spec");
	const char *before = kobj_annotation(o, MODEL_ADOPT_BEFORE_ANNOTATION);
	struct reader r = {&pack, err, spec ? spec : none, mirror, false};
	struct model_cluster c = {0};
	int64_t us = 0;

	if (kobj_meta_read(&pack, o, &c.obj, err) < 0)
		return NULL;
	if (!json_object_is_type(r.spec, json_type_object)) {
		err_set(err, ERR_INVALID, "spec is not an object");
		return NULL;
	}
	read_lost(&r, o, &c);
	read_extended(&r, o);
	read_texts(&r);
	read_servers(&r, &c);
	read_enums(&r, &c);
	read_numbers(&r, &c);
	read_attestation(&r, &c);
	read_tls(&r);
	read_follow(&r, &c);
	if (err_is_set(err))
		return NULL;
	c.adopt_before_bad = before && clock_parse(before, &us) < 0;
	c.adopt_before_s = before && !c.adopt_before_bad ? us / 1000000 : INT64_MIN;
	read_announced(&r, o, &c);
	read_authority(&r, o, &c);
	kobj_pack_str(&pack, AT(values_sha256), model_mark(o, MODEL_CLUSTER_VALUES_MARK));
	kobj_pack_str(&pack, AT(followed_uid), model_mark(o, MODEL_CLUSTER_FOLLOWED_MARK));
	kobj_pack_str(&pack, AT(retired_uid), model_mark(o, MODEL_CLUSTER_RETIRED_MARK));
	kobj_cond_read(&pack, o, model_cluster_cond_types, CLUSTER_N_CONDS, c.cond, AT(cond));
	return kobj_pack_finish(&pack, &c, sizeof(c));
}

/* Fields accepted for compatibility: the operator reports them instead of pretending that they
 * protect something. */
void model_cluster_unused_fields(const struct model_cluster *c, struct strbuf *out)
{
	const char *const set[] = {
		c->reg_mode == MODEL_REG_TOKEN ? "registration.mode Token" : NULL,
		c->token_secret ? "registration.tokenSecret" : NULL,
		c->endorsement != MODEL_ENDORSEMENT_NONE ? "registration.endorsement" : NULL,
		c->endorsement_ca ? "registration.endorsementCAConfigMap" : NULL,
	};

	for (size_t i = 0, n = 0; i < ARRAY_LEN(set); i++)
		if (set[i])
			strbuf_addf(out, "%s%s", n++ ? ", " : "", set[i]);
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
	       str_eq(model_cluster(was)->lost_servers, model_cluster(now)->lost_servers) &&
	       str_eq(model_cluster(was)->extended_mirror, model_cluster(now)->extended_mirror);
}

/* With one external Trustee for both clusters, the one that decides administers it. Until the followed
 * cluster is recorded, takeOver alone tells. */
bool model_cluster_leaves_trustee(const struct model_cluster *c)
{
	bool known = str_eq(c->take_over, c->followed_uid);

	if (c->deploy != MODEL_DEPLOY_EXTERNAL || !c->take_over)
		return false;
	return c->authority == MODEL_AUTHORITY_FOLLOWING
		       ? known || !c->followed_uid
		       : c->authority == MODEL_AUTHORITY_RETIRED && known;
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
