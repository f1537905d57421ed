/* SPDX-License-Identifier: MIT */
/* One table; the reasons are those of the contract (model/), and a test holds the two together. */
#include "config.h"

#include "tec/show/advice.h"

#include <string.h>

#include "tec/base/mem.h"

static const struct advice {
	enum show_kind kind;
	const char *reason;
	const char *text; /* % stands for the object's name */
	bool passes;
} table[] = {
	{SHOW_CLUSTER, "Installing", "It passes; the message says what is being made.", true},
	{SHOW_CLUSTER, "Uninstalling", "It passes when all it owns is deleted.", true},
	{SHOW_CLUSTER, "NonUnique",
		"One TrustedExecutionCluster is served in a namespace: kubectl delete tec %",
		false},
	{SHOW_CLUSTER, "Conflict", "Do what the message says; the operator goes on by itself then.",
		false},
	{SHOW_CLUSTER, "NoAddressFound",
		"Set spec.publicTrusteeAddr to the address at which nodes reach Trustee: kubectl edit tec %",
		false},
	{SHOW_CLUSTER, "NotAvailable",
		"See that Trustee runs and can be reached from the operator: tecctl doctor", false},
	{SHOW_CLUSTER, "Refused",
		"Trustee does not accept what the operator sends, or a TLS Secret is refused: do what the message says.",
		false},
	{SHOW_CLUSTER, "Populating", "It passes when all keys are sent.", true},
	{SHOW_CLUSTER, "NotServed", "See the condition Installed.", false},
	{SHOW_CLUSTER, "ModeManual",
		"Nothing is wrong: with spec.registration.mode Manual only administrators make Machines.",
		true},
	{SHOW_CLUSTER, "NoRegistrationKey", "See the message for what is missing.", false},
	{SHOW_CLUSTER, "MachineLimitReached",
		"Delete Machines that are no longer used (tecctl machine list), or raise spec.registration.machineLimit.",
		false},
	{SHOW_CLUSTER, "PendingLimitReached",
		"Delete what waits and is not yours (tecctl status), or raise spec.registration.pendingLimit.",
		false},
	{SHOW_CLUSTER, "Frozen",
		"When this operator is to decide again: kubectl patch tec % --type=merge -p '{\"spec\":{\"authority\":\"Self\"}}'",
		false},
	{SHOW_CLUSTER, "Freezing", "It passes when what was sent before is answered.", true},
	{SHOW_CLUSTER, "Retiring", "It passes when every Trustee has confirmed: tecctl doctor",
		true},
	{SHOW_CLUSTER, "FollowingBehind", "It passes when everything is copied.", true},
	{SHOW_CLUSTER, "SourceUnreachable",
		"Check the kubeconfig in the Secret that spec.follow names, and the way to that API server.",
		false},
	{SHOW_CLUSTER, "SourceDiffers",
		"Check which API server the kubeconfig in the Secret that spec.follow names leads to.",
		false},
	{SHOW_CLUSTER, "SourceWentBack",
		"Find out whether a backup was restored there before anything else is changed.",
		false},
	{SHOW_CLUSTER, "PeerUnknown",
		"It passes when the other operator is read. If that one is lost for good: tecctl promote --from-lost --to KUBECONFIG",
		false},
	{SHOW_CLUSTER, "PeerDecides",
		"Make this cluster follow the one that decides: tecctl follow --from KUBECONFIG --to KUBECONFIG",
		false},
	{SHOW_CLUSTER, "Following",
		"Nothing is wrong: another operator decides. Register and approve nodes there.",
		true},
	{SHOW_CLUSTER, "Retired",
		"Nothing is wrong: another operator took over. When no node uses this Trustee any more, delete the namespace.",
		true},
	{SHOW_CLUSTER, "SharedAmongNodes",
		"Choose spec.trustee.keyIsolation PerMachine, unless Trustee needs delivery Volumes.",
		true},
	{SHOW_CLUSTER, "SharedWithStrangers",
		"Set spec.trustee.keyIsolation PerMachine or spec.registration.approval Manual: kubectl edit tec %",
		false},

	{SHOW_MACHINE, "KeyPending", "It passes; the disk key is being made.", true},
	{SHOW_MACHINE, "KeyLost",
		"Put the Secret back from a backup. Without one the disk cannot be opened: tecctl machine delete %, then reinstall the node.",
		false},
	{SHOW_MACHINE, "KeyMalformed",
		"Put the Secret back as it was, from a backup; the operator never overwrites it.",
		false},
	{SHOW_MACHINE, "Conflict", "Do what the message says; it names the Secret to delete.",
		false},
	{SHOW_MACHINE, "DuplicateID",
		"Another Machine has the same id and holds it. Delete the one that is wrong: tecctl machine delete %",
		false},
	{SHOW_MACHINE, "InvalidID",
		"spec.id is not a UUID in lower case: tecctl machine delete %, and make it again.",
		false},
	{SHOW_MACHINE, "NoApprovedKey",
		"Boot the node, which registers its key; if a key waits for you, approve it. See: tecctl why %",
		false},
	{SHOW_MACHINE, "NotAvailable", "Trustee cannot be reached: tecctl doctor", false},
	{SHOW_MACHINE, "Revoking", "It passes when every Trustee has confirmed.", true},
	{SHOW_MACHINE, "Waiting", "It passes when the conditions before it are true.", true},
	{SHOW_MACHINE, "NotReady", "See its other conditions: tecctl machine show %", false},

	{SHOW_KEY, "Registration", "It passes when a Machine with its uuid is there.", true},
	{SHOW_KEY, "MachineHasKey",
		"Its Machine has another key, had one, or was restored from a backup. If the key is the node's: tecctl approve %",
		false},
	{SHOW_KEY, "ManualApproval", "If it is the node's: tecctl approve %. If not: tecctl deny %",
		false},
	{SHOW_KEY, "EndorsementFailed",
		"The key's TPM is not endorsed by the vendors that are trusted. If you trust it: tecctl approve %",
		false},
	{SHOW_KEY, "NotApproved", "See the condition Approved.", false},
	{SHOW_KEY, "NotAvailable", "Trustee cannot be reached: tecctl doctor", false},
	{SHOW_KEY, "InvalidKey",
		"The public key cannot be used: tecctl deny %, and let the node register again.",
		false},
	{SHOW_KEY, "Conflict", "Do what the message says; it names the object that is in the way.",
		false},
	{SHOW_KEY, "TooManyKeys",
		"Delete the keys that were made to look like this one: tecctl key list", false},

	{SHOW_IMAGE, "Computing", "It passes when the values are computed.", true},
	{SHOW_IMAGE, "NoDigestGiven",
		"Name the image with its digest (REGISTRY/NAME@sha256:...): kubectl delete ai %, and approve it again.",
		false},
	{SHOW_IMAGE, "ComputationFailed", "See the message; it is tried again by itself.", false},
	{SHOW_IMAGE, "PodPending", "See the message, and the Pod: kubectl describe pod", false},
	{SHOW_IMAGE, "ValuesAwaited", "Hand its values in: tecctl image approve --rootfs=DIR REF",
		false},
	{SHOW_IMAGE, "Revoking", "It passes when every Trustee has confirmed.", true},
	{SHOW_IMAGE, "TooManyEvents",
		"Remove platforms that no node has from spec.attestation.platformConfigMaps.",
		false},
	{SHOW_IMAGE, "TooManyStates", "Delete ApprovedImages that are no longer booted.", false},
	{SHOW_IMAGE, "ValuesChanged",
		"It passes when the values are computed again. See who can write ConfigMaps in this namespace.",
		false},
};

static const struct advice *find(enum show_kind kind, const char *reason)
{
	for (size_t i = 0; reason && i < ARRAY_LEN(table); i++)
		if (table[i].kind == kind && str_eq(table[i].reason, reason))
			return &table[i];
	return NULL;
}

bool show_passes(enum show_kind kind, const char *reason)
{
	const struct advice *a = find(kind, reason);

	return a && a->passes;
}

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
