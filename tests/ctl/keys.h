/* SPDX-License-Identifier: MIT */
/* Public keys of throw-away RSA keys, made for these tests only; nobody has the private halves. */
#ifndef TEC_TESTS_CTL_KEYS_H
#define TEC_TESTS_CTL_KEYS_H

#include <string.h>

#include "tec/base/mem.h"

static const char *const test_pem[] = {
	"-----BEGIN PUBLIC KEY-----\n"
	"MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwUAVS6am2HKFSV17KTr6\n"
	"2G6eEAZI27NK+gMlK8esP7JEr41X7L0D40KbMnjqg5AHeCtz4yt07xrdZ/tfADay\n"
	"9xGoVMwcY9K31VLHNxzwsuh0HId+XKXzs+Oqcn2UrTv+lOTIe25vZ52VKDnx2i7r\n"
	"J5QlnsfDDsYo9U0xXNrJCZZt8bpUxuT15ljcddyVznxyDrcZFHFaWw91iVi6jV1j\n"
	"EyLFlHhv71g1e19/pBSq6xSEoQoVHBJK7XDeGBxQAuyQQABWAf3XEExJA9dogQT7\n"
	"NdczOeUym+YyudHFUaePk4GBXxcOxft37lOtElg7XU+ygX/w0aeVT+4irTYqEFwi\n"
	"+QIDAQAB\n"
	"-----END PUBLIC KEY-----\n",
	"-----BEGIN PUBLIC KEY-----\n"
	"MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAvv+BJj9KpHJbpMynCP6p\n"
	"haKjRxZuPxEbwFoSSq2kdQ851N/b6R/IqFPz1wAqJk7sDCJYzKTqt2cGl8bSoODW\n"
	"vRcyHh87tAjtdNUmYueHUkT4tQ4rrI9+OYFWAbh4RnpV93yX3bsMpmq/cFonyHpC\n"
	"OBXQQbsRVqVYtoUBUkpiyB845TpICr8Tfn/bKXaq7e9Wz1yEqjXt2tv4XEHo9y/+\n"
	"ACBRyhlFSw9NoSSMsPsisqBxl6KqowgR9o6v4sUNAgZg41kJX0xAXrVeiUjnWNep\n"
	"WCM23zWW2ib+NwVbExTJA1HrO2yv2UOgx5xJJISVGMKp7PLn7/GNuJvcPa6oOByR\n"
	"AQIDAQAB\n"
	"-----END PUBLIC KEY-----\n",
	"-----BEGIN PUBLIC KEY-----\n"
	"MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAqSiLR3e/9/XLhjVg1eqi\n"
	"sZRnGzo0vKA/MRbMVQcJkj424wmb38FvIoaFq6YX8NLi+Rls2Cit0+OqwirTGW46\n"
	"Y53oXlHp0yCpu70Er8xe4MYjFndm+430yy+8Logik3qKmVoWkmorcF1Lcze7KRKP\n"
	"gY5i/RX/n70Pwn5vVq6LRD2emH1kIk1StNrS1zbtAfZV3VNDyPEXSch39EaQko2y\n"
	"DgSz+HuX4Xk5NS8PmWaKsAnfedwBqA8u4q5Tk2ofDZxAuwkzD6pMG+mK4uuwIQML\n"
	"2ALPQfzd1qmUJ4KMyWOQYr0/nXqmjhERKihhkvHozhc3K+DwTZBA51z2abL/O4kp\n"
	"kwIDAQAB\n"
	"-----END PUBLIC KEY-----\n",
	"-----BEGIN PUBLIC KEY-----\n"
	"MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAufd3QxJeS0pt/l5DDjeK\n"
	"DiPqS90SNy0GWqe2DhzRmvk9NAV0On+gCG2PYcJVDHeJWmjslpf66TPvCQVjAbSN\n"
	"nf3sEVp2pu/bv87fo7ZZeax+JnJaMg32J0W9TI0JDQS2OhmXjzhXCKyY4W3nHxiL\n"
	"wrzcnyMoKb6cihTW1oqVOa81/+u09GjATgr/M6MVxOFQHl54BdGCBTXAQq1sBv0B\n"
	"9+p9GvCmzM7Q6q8IhVEGK5flCrVOoHCJZonesOS4iOxiXk5m0EllPvDj9GZVH9Cp\n"
	"BOgxltrIdbyODoME2Gvsx/BIpCsggNaGAb+iFkdhRXpEF6ikGogOuyy+diPWDoDk\n"
	"/QIDAQAB\n"
	"-----END PUBLIC KEY-----\n",
};

/* The n-th other key with the name of the first: only the last bits of the modulus differ. */
static inline char *same_name_as_first(unsigned n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	cleanup_free char *pem = xstrdup(test_pem[0]);
	char *tail = strstr(pem, "IDAQAB");
	const char *digit;

	tail -= tail[-8] == '\n' ? 9 : 8;
	digit = strchr(digits, *tail);
	*tail = digits[(size_t)(digit - digits + 1 + n) % 64];
	return steal_ptr(&pem);
}

#endif
