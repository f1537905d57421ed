/* SPDX-License-Identifier: MIT */
/* One table from reason to advice. The reasons are those that model/ defines; tests/show checks
 * that the two agree. Advice is printed after the condition's message, so it does not repeat it. */
#include "config.h"

#include "tec/show/advice.h"

#include <string.h>

#include "tec/base/mem.h"

/* One row per kind and reason; a reason that needs no advice has no row. With passes set tecctl
 * shows the reason in yellow, and no check fails for it. */
static const struct advice {
	enum show_kind kind;
	const char *reason;
	const char *text; /* each % is replaced by the object's name */
	bool passes;      /* resolves without action; shown as "wait" instead of "no" */
} table[] = {
	{SHOW_CLUSTER, "Installing", "Wait; the message names what is being created.", true},
	{SHOW_CLUSTER, "Uninstalling", "Wait until all objects that it owns are deleted.", true},
	{SHOW_CLUSTER, "NonUnique",
		"Only one TrustedExecutionCluster is served per namespace: kubectl delete tec %",
		false},
	{SHOW_CLUSTER, "Conflict", "Follow the message; the operator then continues automatically.",
		false},
	{SHOW_CLUSTER, "NoAddressFound",
		"Set spec.publicTrusteeAddr to the address at which nodes reach Trustee: kubectl edit tec %",
		false},
	{SHOW_CLUSTER, "NotAvailable",
		"Check that Trustee runs and that the operator can reach it: tecctl doctor", false},
	{SHOW_CLUSTER, "Refused",
		"Trustee rejects the operator's requests, or a TLS Secret is unusable: follow the message.",
		false},
	{SHOW_CLUSTER, "Populating", "Wait until all keys are sent.", true},
	{SHOW_CLUSTER, "NotServed", "See the condition Installed.", false},
	{SHOW_CLUSTER, "ModeManual",
		"No action needed: with spec.registration.mode Manual only administrators create Machines.",
		true},
	{SHOW_CLUSTER, "NoRegistrationKey", "Provide what the message names as missing.", false},
	{SHOW_CLUSTER, "MachineLimitReached",
		"Delete unused Machines (tecctl machine list), or raise spec.registration.machineLimit.",
		false},
	{SHOW_CLUSTER, "PendingLimitReached",
		"Delete waiting registrations that are not yours (tecctl status), or raise spec.registration.pendingLimit.",
		false},
	{SHOW_CLUSTER, "Frozen",
		"To let this operator decide again: kubectl patch tec % --type=merge -p '{\"spec\":{\"authority\":\"Self\"}}'",
		false},
	{SHOW_CLUSTER, "Freezing", "Wait until all outstanding requests are answered.", true},
	{SHOW_CLUSTER, "Retiring", "Wait until every Trustee has confirmed: tecctl doctor", true},
	{SHOW_CLUSTER, "FollowingBehind", "Wait until everything is copied.", true},
	{SHOW_CLUSTER, "SourceUnreachable",
		"Check the kubeconfig in the Secret that spec.follow names, and the network path to that API server.",
		false},
	{SHOW_CLUSTER, "SourceDiffers",
		"Check which API server the kubeconfig in the Secret named by spec.follow points to.",
		false},
	{SHOW_CLUSTER, "SourceWentBack",
		"Before changing anything else, find out whether a backup was restored there.",
		false},
	{SHOW_CLUSTER, "PeerUnknown",
		"Wait until the other cluster can be read. If it is lost permanently: tecctl promote --from-lost --to KUBECONFIG",
		false},
	{SHOW_CLUSTER, "PeerDecides",
		"Make this cluster follow the one that decides: tecctl follow --from KUBECONFIG --to KUBECONFIG",
		false},
	{SHOW_CLUSTER, "Following",
		"No action needed: another operator decides. Register and approve nodes there.",
		true},
	{SHOW_CLUSTER, "Retired",
		"No action needed: another operator took over. Delete the namespace once no node uses this Trustee.",
		true},
	{SHOW_CLUSTER, "SharedAmongNodes",
		"Set spec.trustee.keyIsolation to PerMachine, unless Trustee needs delivery Volumes.",
		true},
	{SHOW_CLUSTER, "SharedWithStrangers",
		"Set spec.trustee.keyIsolation to PerMachine or spec.registration.approval to Manual: kubectl edit tec %",
		false},

	{SHOW_MACHINE, "KeyPending", "Wait; the disk key is being created.", true},
	{SHOW_MACHINE, "KeyLost",
		"Restore the Secret from a backup. Without a backup the disk cannot be unlocked: tecctl machine delete %, then reinstall the node.",
		false},
	{SHOW_MACHINE, "KeyMalformed",
		"Restore the Secret from a backup; the operator never overwrites it.", false},
	{SHOW_MACHINE, "Conflict", "Follow the message; it names the Secret to delete.", false},
	{SHOW_MACHINE, "DuplicateID",
		"Another Machine already holds this id. Delete the wrong one: tecctl machine delete %",
		false},
	{SHOW_MACHINE, "InvalidID",
		"spec.id is not a lower-case UUID: tecctl machine delete %, then create it again.",
		false},
	{SHOW_MACHINE, "NoApprovedKey",
		"Boot the node so that it registers its key; approve the key if it waits for approval. See: tecctl why %",
		false},
	{SHOW_MACHINE, "NotAvailable", "Trustee is unreachable: tecctl doctor", false},
	{SHOW_MACHINE, "Revoking", "Wait until every Trustee has confirmed.", true},
	{SHOW_MACHINE, "Waiting", "Wait until the preceding conditions are true.", true},
	{SHOW_MACHINE, "NotReady", "Check its other conditions: tecctl machine show %", false},

	{SHOW_KEY, "Registration", "Wait until a Machine with this UUID exists.", true},
	{SHOW_KEY, "MachineHasKey",
		"The Machine has or had another key, or was restored from a backup. If this key belongs to the node: tecctl approve %",
		false},
	{SHOW_KEY, "ManualApproval",
		"If the key belongs to the node: tecctl approve %. Otherwise: tecctl deny %",
		false},
	{SHOW_KEY, "EndorsementFailed",
		"The TPM of this key is not endorsed by a trusted vendor. If you trust it: tecctl approve %",
		false},
	{SHOW_KEY, "NotApproved", "See the condition Approved.", false},
	{SHOW_KEY, "NotAvailable", "Trustee is unreachable: tecctl doctor", false},
	{SHOW_KEY, "InvalidKey",
		"The public key is unusable: tecctl deny %, then let the node register again.",
		false},
	{SHOW_KEY, "Conflict", "Follow the message; it names the conflicting object.", false},
	{SHOW_KEY, "TooManyKeys", "Delete the duplicates of this key: tecctl key list", false},

	{SHOW_IMAGE, "Computing", "Wait until the values are computed.", true},
	{SHOW_IMAGE, "NoDigestGiven",
		"Give the image with its digest (REGISTRY/NAME@sha256:...): kubectl delete ai %, then approve it again.",
		false},
	{SHOW_IMAGE, "ComputationFailed",
		"See the message; the computation is retried automatically.", false},
	{SHOW_IMAGE, "PodPending", "See the message and the Pod: kubectl describe pod", false},
	{SHOW_IMAGE, "ValuesAwaited", "Provide its values: tecctl image approve --rootfs=DIR REF",
		false},
	{SHOW_IMAGE, "Revoking", "Wait until every Trustee has confirmed.", true},
	{SHOW_IMAGE, "TooManyEvents",
		"Remove platforms that no node uses from spec.attestation.platformConfigMaps.",
		false},
	{SHOW_IMAGE, "TooManyStates", "Delete ApprovedImages that no node boots any more.", false},
	{SHOW_IMAGE, "ValuesChanged",
		"Wait until the values are recomputed. Check who can write ConfigMaps in this namespace.",
		false},
};

/* Reasons repeat between kinds ("Conflict", "NotAvailable"), so both are compared. */
static const struct advice *find(enum show_kind kind, const char *reason)
{
	for (size_t i = 0; reason && i < ARRAY_LEN(table); i++)
		if (table[i].kind == kind && str_eq(table[i].reason, reason))
			return &table[i];
	return NULL;
}

/* An unknown reason, as of a later operator, does not pass, so that people notice it. */
bool show_passes(enum show_kind kind, const char *reason)
{
	const struct advice *a = find(kind, reason);

	return a && a->passes;
}

/* The caller escapes the result, which contains the object's name as the API has it. */
bool show_advice(enum show_kind kind, const char *reason, const char *name, struct strbuf *out)
{
	const struct advice *a = find(kind, reason);

	if (!a)
		return false;
	for (const char *p = a->text; *p; p++) {
		if (*p == '%')
			strbuf_adds(out, name);
		else
			strbuf_addc(out, *p);
	}
	return true;
}
