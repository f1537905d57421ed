/* SPDX-License-Identifier: MIT */
/* One table from reason to advice. The reasons are those that model/ defines; tests/show checks
 * that the two agree. Advice is printed after the condition's message and repeats nothing of it:
 * it adds a command, or what the operator cannot know. */
#include "config.h"

#include "tec/report/advice.h"

#include <string.h>

#include "tec/base/mem.h"

/* One row per kind and reason; a reason that needs no advice has no row. With passes set tecctl
 * shows the reason in yellow, and no check fails for it. */
static const struct advice {
	enum report_kind kind;
	const char *reason;
	const char *text; /* each % is replaced by the object's name */
	bool passes;      /* resolves without action; shown as "wait" instead of "no" */
} table[] = {
	{REPORT_CLUSTER, "Installing", "Wait.", true},
	{REPORT_CLUSTER, "Uninstalling", "Wait until all objects that it owns are deleted.", true},
	{REPORT_CLUSTER, "NonUnique", "To delete this one: kubectl delete tec %", false},
	{REPORT_CLUSTER, "GuardMissing", "To change spec: kubectl edit tec %", false},
	{REPORT_CLUSTER, "Conflict",
		"Follow the message; the operator then continues automatically.", false},
	{REPORT_CLUSTER, "NoAddressFound",
		"Set the address at which nodes reach Trustee: kubectl edit tec %", false},
	{REPORT_CLUSTER, "NotAvailable",
		"Check that Trustee runs and that the operator can reach it: tecctl doctor", false},
	{REPORT_CLUSTER, "Refused", "Follow the message.", false},
	{REPORT_CLUSTER, "Populating", "Wait.", true},
	{REPORT_CLUSTER, "NotServed", "See the condition Installed.", false},
	{REPORT_CLUSTER, "ModeManual", "No action needed.", true},
	{REPORT_CLUSTER, "NoRegistrationKey", "Provide what the message names as missing.", false},
	{REPORT_CLUSTER, "MachineLimitReached", "To see the Machines: tecctl machine list", false},
	{REPORT_CLUSTER, "PendingLimitReached",
		"To see the Machines and keys: tecctl machine list, tecctl key list", false},
	{REPORT_CLUSTER, "Frozen",
		"To let this operator decide again: kubectl patch tec % --type=merge -p '{\"spec\":{\"authority\":\"Self\"}}'",
		false},
	{REPORT_CLUSTER, "Freezing", "Wait.", true},
	{REPORT_CLUSTER, "Retiring", "Wait. To check each Trustee: tecctl doctor", true},
	{REPORT_CLUSTER, "FollowingBehind", "Wait.", true},
	{REPORT_CLUSTER, "SourceUnreachable",
		"Check the kubeconfig in the Secret that spec.follow names.", false},
	{REPORT_CLUSTER, "SourceDiffers",
		"Check which API server the kubeconfig in the Secret named by spec.follow points to.",
		false},
	{REPORT_CLUSTER, "SourceWentBack",
		"Before changing anything else, find out whether a backup was restored there.",
		false},
	{REPORT_CLUSTER, "PeerUnknown", "Wait until the other cluster can be read.", false},
	{REPORT_CLUSTER, "PeerDecides", "Make this cluster follow the one that decides.", false},
	{REPORT_CLUSTER, "Following",
		"No action needed. Register and approve nodes at the cluster that decides.", true},
	{REPORT_CLUSTER, "Retired", "No action needed.", true},
	{REPORT_CLUSTER, "SharedAmongNodes", "To change spec: kubectl edit tec %", true},
	{REPORT_CLUSTER, "SharedWithStrangers", "To change spec: kubectl edit tec %", false},

	{REPORT_MACHINE, "KeyPending", "Wait.", true},
	{REPORT_MACHINE, "KeyLost",
		"Without a backup of the Secret: tecctl machine delete %, then reinstall the node.",
		false},
	{REPORT_MACHINE, "KeyMalformed", "Follow the message.", false},
	{REPORT_MACHINE, "Conflict", "Follow the message.", false},
	{REPORT_MACHINE, "DuplicateID", "To delete this one: tecctl machine delete %", false},
	{REPORT_MACHINE, "InvalidID",
		"To correct the id: tecctl machine delete %, then create the Machine again.",
		false},
	{REPORT_MACHINE, "NoApprovedKey",
		"Boot the node so that it registers its key; approve the key if it waits for approval. See: tecctl why %",
		false},
	{REPORT_MACHINE, "NotAvailable", "Check Trustee: tecctl doctor", false},
	{REPORT_MACHINE, "Revoking", "Wait; for a server that is lost, follow the message.", true},
	{REPORT_MACHINE, "Waiting", "Wait until the preceding conditions are true.", true},
	{REPORT_MACHINE, "NotReady", "Check its other conditions: tecctl machine show %", false},

	{REPORT_KEY, "Registration", "Wait.", true},
	{REPORT_KEY, "MachineHasKey", "If this key belongs to the node: tecctl approve %", false},
	{REPORT_KEY, "ManualApproval",
		"If the key belongs to the node: tecctl approve %. Otherwise: tecctl deny %",
		false},
	{REPORT_KEY, "EndorsementFailed",
		"The TPM of this key is not endorsed by a trusted vendor. If you trust it: tecctl approve %",
		false},
	{REPORT_KEY, "NotApproved", "See the condition Approved.", false},
	{REPORT_KEY, "NotAvailable", "Check Trustee: tecctl doctor", false},
	{REPORT_KEY, "InvalidKey", "Run tecctl deny %, then let the node register again.", false},
	{REPORT_KEY, "Conflict", "Follow the message.", false},
	{REPORT_KEY, "TooManyKeys", "To find them: tecctl key list", false},

	{REPORT_IMAGE, "Computing", "Wait.", true},
	{REPORT_IMAGE, "NoDigestGiven",
		"Run kubectl delete ai %, then approve the image with its digest.", false},
	{REPORT_IMAGE, "ComputationFailed",
		"See the message; the computation is retried automatically.", false},
	{REPORT_IMAGE, "PodPending", "To see the Pod: kubectl describe pod", false},
	{REPORT_IMAGE, "ValuesAwaited", "Provide the values.", false},
	{REPORT_IMAGE, "Revoking", "Wait.", true},
	{REPORT_IMAGE, "TooManyEvents", "Follow the message.", false},
	{REPORT_IMAGE, "TooManyStates", "To see the images: tecctl image list", false},
	{REPORT_IMAGE, "ValuesChanged", "Check who can write ConfigMaps in this namespace.", false},
};

/* Reasons repeat between kinds ("Conflict", "NotAvailable"), so both are compared. */
static const struct advice *find(enum report_kind kind, const char *reason)
{
	for (size_t i = 0; reason && i < ARRAY_LEN(table); i++)
		if (table[i].kind == kind && str_eq(table[i].reason, reason))
			return &table[i];
	return NULL;
}

/* An unknown reason, as of a later operator, does not pass, so that people notice it. */
bool report_passes(enum report_kind kind, const char *reason)
{
	const struct advice *a = find(kind, reason);

	return a && a->passes;
}

/* The caller escapes the result, which contains the object's name as the API has it. */
bool report_advice(enum report_kind kind, const char *reason, const char *name, struct strbuf *out)
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
