/* SPDX-License-Identifier: MIT */
/* One table from reason to advice. The reasons are those that model/ defines; tests/show checks
 * that the two agree. Advice is printed after the condition's message and repeats nothing of it:
 * it adds a command, or what the operator cannot know. */
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
	{SHOW_CLUSTER, "Installing", "Wait.", true},
	{SHOW_CLUSTER, "Uninstalling", "Wait until all objects that it owns are deleted.", true},
	{SHOW_CLUSTER, "NonUnique", "To delete this one: kubectl delete tec %", false},
	{SHOW_CLUSTER, "Conflict", "Follow the message; the operator then continues automatically.",
		false},
	{SHOW_CLUSTER, "NoAddressFound",
		"Set the address at which nodes reach Trustee: kubectl edit tec %", false},
	{SHOW_CLUSTER, "NotAvailable",
		"Check that Trustee runs and that the operator can reach it: tecctl doctor", false},
	{SHOW_CLUSTER, "Refused", "Follow the message.", false},
	{SHOW_CLUSTER, "Populating", "Wait.", true},
	{SHOW_CLUSTER, "NotServed", "See the condition Installed.", false},
	{SHOW_CLUSTER, "ModeManual", "No action needed.", true},
	{SHOW_CLUSTER, "NoRegistrationKey", "Provide what the message names as missing.", false},
	{SHOW_CLUSTER, "MachineLimitReached", "To see the Machines: tecctl machine list", false},
	{SHOW_CLUSTER, "PendingLimitReached",
		"To see the Machines and keys: tecctl machine list, tecctl key list", false},
	{SHOW_CLUSTER, "Frozen",
		"To let this operator decide again: kubectl patch tec % --type=merge -p '{\"spec\":{\"authority\":\"Self\"}}'",
		false},
	{SHOW_CLUSTER, "Freezing", "Wait.", true},
	{SHOW_CLUSTER, "Retiring", "Wait. To check each Trustee: tecctl doctor", true},
	{SHOW_CLUSTER, "FollowingBehind", "Wait.", true},
	{SHOW_CLUSTER, "SourceUnreachable",
		"Check the kubeconfig in the Secret that spec.follow names.", false},
	{SHOW_CLUSTER, "SourceDiffers",
		"Check which API server the kubeconfig in the Secret named by spec.follow points to.",
		false},
	{SHOW_CLUSTER, "SourceWentBack",
		"Before changing anything else, find out whether a backup was restored there.",
		false},
	{SHOW_CLUSTER, "PeerUnknown", "Wait until the other cluster can be read.", false},
	{SHOW_CLUSTER, "PeerDecides", "Make this cluster follow the one that decides.", false},
	{SHOW_CLUSTER, "Following",
		"No action needed. Register and approve nodes at the cluster that decides.", true},
	{SHOW_CLUSTER, "Retired", "No action needed.", true},
	{SHOW_CLUSTER, "SharedAmongNodes", "To change spec: kubectl edit tec %", true},
	{SHOW_CLUSTER, "SharedWithStrangers", "To change spec: kubectl edit tec %", false},

	{SHOW_MACHINE, "KeyPending", "Wait.", true},
	{SHOW_MACHINE, "KeyLost",
		"Without a backup of the Secret: tecctl machine delete %, then reinstall the node.",
		false},
	{SHOW_MACHINE, "KeyMalformed", "Follow the message.", false},
	{SHOW_MACHINE, "Conflict", "Follow the message.", false},
	{SHOW_MACHINE, "DuplicateID", "To delete this one: tecctl machine delete %", false},
	{SHOW_MACHINE, "InvalidID",
		"To correct the id: tecctl machine delete %, then create the Machine again.",
		false},
	{SHOW_MACHINE, "NoApprovedKey",
		"Boot the node so that it registers its key; approve the key if it waits for approval. See: tecctl why %",
		false},
	{SHOW_MACHINE, "NotAvailable", "Check Trustee: tecctl doctor", false},
	{SHOW_MACHINE, "Revoking", "Wait.", true},
	{SHOW_MACHINE, "Waiting", "Wait until the preceding conditions are true.", true},
	{SHOW_MACHINE, "NotReady", "Check its other conditions: tecctl machine show %", false},

	{SHOW_KEY, "Registration", "Wait.", true},
	{SHOW_KEY, "MachineHasKey", "If this key belongs to the node: tecctl approve %", false},
	{SHOW_KEY, "ManualApproval",
		"If the key belongs to the node: tecctl approve %. Otherwise: tecctl deny %",
		false},
	{SHOW_KEY, "EndorsementFailed",
		"The TPM of this key is not endorsed by a trusted vendor. If you trust it: tecctl approve %",
		false},
	{SHOW_KEY, "NotApproved", "See the condition Approved.", false},
	{SHOW_KEY, "NotAvailable", "Check Trustee: tecctl doctor", false},
	{SHOW_KEY, "InvalidKey", "Run tecctl deny %, then let the node register again.", false},
	{SHOW_KEY, "Conflict", "Follow the message.", false},
	{SHOW_KEY, "TooManyKeys", "To find them: tecctl key list", false},

	{SHOW_IMAGE, "Computing", "Wait.", true},
	{SHOW_IMAGE, "NoDigestGiven",
		"Run kubectl delete ai %, then approve the image with its digest.", false},
	{SHOW_IMAGE, "ComputationFailed",
		"See the message; the computation is retried automatically.", false},
	{SHOW_IMAGE, "PodPending", "To see the Pod: kubectl describe pod", false},
	{SHOW_IMAGE, "ValuesAwaited", "Provide the values.", false},
	{SHOW_IMAGE, "Revoking", "Wait.", true},
	{SHOW_IMAGE, "TooManyEvents", "Follow the message.", false},
	{SHOW_IMAGE, "TooManyStates", "To see the images: tecctl image list", false},
	{SHOW_IMAGE, "ValuesChanged", "Check who can write ConfigMaps in this namespace.", false},
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
