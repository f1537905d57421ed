/* SPDX-License-Identifier: MIT */
/* Public keys for tests of srv/: three that are accepted, three that are not. Their private halves
 * were never kept. */
#ifndef TESTS_SRV_KEYS_H
#define TESTS_SRV_KEYS_H

#define KEY_A_LINES                                                                                \
	"MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAqZpAdSjjmkPJJqtcjFcd\n"                       \
	"rxn/CY1iWM/U/LPq+mtRX4X/GEWg0IGBK8HgULt52GdC0iN9XFbCIKWJ9pK4/nw8\n"                       \
	"f7zp4iq+ue8WSij1CX2TdEnfoF37CQAwgiLRkLSJ5OE3sK2ktOLZ1KScoBW4f9mD\n"                       \
	"oNSd/GlB0LhRAiaq7pk3y3RvPE5fqmFpu5aHqX+ovmQELigTiEJZELxzDR13qr3/\n"                       \
	"h4W8rJT0TNj9VbbkEtI1FhOhOKQsn2cY/Uu18PVplXvR3DoSt+SYDL0Fq5lMoQnS\n"                       \
	"f15BuiX/N59D3tBNWynxoznWFaC75uXtCMoN0QGpcRfqArzSLy05QgzWoMvNwhRp\n"                       \
	"LQIDAQAB\n"
#define KEY_A "-----BEGIN PUBLIC KEY-----\n" KEY_A_LINES "-----END PUBLIC KEY-----\n"

#define KEY_B_LINES                                                                                \
	"MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA6g0HEbtgO2CYMXLiU08z\n"                       \
	"w0/EzJCEljt3FE0J1wBXHRpEhfHiwEjNA2gVR/XKF69Hf8Rir2/O0OKhC/KPZftJ\n"                       \
	"2TZ9iewcNACFXqjvhMgKztEM1E8VJ3NemorPYYNN4ZL8IHjpJ9O+q2GWhU5fv0Rl\n"                       \
	"1hPs7j1i1vYEITD8zVDcBr5r7s1tTUPUqfE7whncRg6Bl/56btGe4zQqIbaBCpJI\n"                       \
	"KgVnEF1M3azOULswaJpdQHBQRRPbuCn0MveldgurvwWxrSX0oQqxL3HCE5f3FEd/\n"                       \
	"1PveUyl/5A7n4c60SDd1VwFhbKnQMvQZLOsM47YAhAcQa3Vm0T2b0uGBhQfG0MZy\n"                       \
	"iwIDAQAB\n"
#define KEY_B "-----BEGIN PUBLIC KEY-----\n" KEY_B_LINES "-----END PUBLIC KEY-----\n"

#define KEY_C_LINES                                                                                \
	"MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsFNPTsyuYTrQl4GA1O0A\n"                       \
	"Z5pQMWthq7woHtj/jnsNOV1wqv3Jb2x0V1gk74sBeDzNU3iCyav3SXhugCeCefgt\n"                       \
	"omtuVRjLI9Hq/g8BWh2H5TVDzSQOKrQHMBe/5ggfiC1YuTvXL7SuwvFjQ1eq2Toa\n"                       \
	"lr2ZNdATvn2pytm+nduGPHWLUBqDfnI01pHRxw3uw7GRRf06J4JhRAjo34nH8BPj\n"                       \
	"S1ugvP+6yJQ2oLIruAbMTIxEKlPq1jCs3+CylumPG0y3tWl8Zbv6pi+f5mnXF1mi\n"                       \
	"l9CLLqdhCQme4pM/q3OPZsZ5S5Lc4Gld19Z55cmzHkqjTdaNP33c5s069Cjk8+Lv\n"                       \
	"RwIDAQAB\n"
#define KEY_C "-----BEGIN PUBLIC KEY-----\n" KEY_C_LINES "-----END PUBLIC KEY-----\n"

#define KEY_1024_LINES                                                                             \
	"MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDq0t+BUmpAAFNKl7ISSGJFPLUZ\n"                       \
	"TxK3svgDcf3bIZyFAkOmhstMjhBA6LS2XJSqC7B7wOFcawZ2gJZj5feKI77SHaP7\n"                       \
	"iQzw8LWHrghYp29kFb80wrx3yb9J7KXDMf9RJiru10RQ3FS+mMHdKxkAnyprJt6P\n"                       \
	"9Q0jGDHB26JeN/raNwIDAQAB\n"
#define KEY_1024 "-----BEGIN PUBLIC KEY-----\n" KEY_1024_LINES "-----END PUBLIC KEY-----\n"

#define KEY_E3_LINES                                                                               \
	"MIIBIDANBgkqhkiG9w0BAQEFAAOCAQ0AMIIBCAKCAQEAwyldJfGD7YSUp4f1mAWi\n"                       \
	"peLKlzNjDgOEQqDeNrponDrhyV4Fa82bcswVPT6wAqBzsn1Jm+b7CLcebufbJEjT\n"                       \
	"vP/M90Qx2PIUdBdqshsWHXNLnzYqIzodnP4yhMxRwPWkvTd9LDdHaVE83PUmdyPh\n"                       \
	"LwyQodcMiv4lxnfCnZ+r+7Otng6mClydHCtFE1l8D6GHIlICbzYxGnLpLbPk+drZ\n"                       \
	"2kb5myYSgCfVEueYRXv3UVsIBEmIM0T90jCIL8Y4jd6a/CpkvjPNlLI9Mr5CMJNU\n"                       \
	"Ih7z+WcYjytb72oB3+ngrNJKdEOVgs/dfX1dS/lChHa+/zve0/2shX6Rgp9BIOuX\n"                       \
	"WQIBAw==\n"
#define KEY_E3 "-----BEGIN PUBLIC KEY-----\n" KEY_E3_LINES "-----END PUBLIC KEY-----\n"

#define KEY_EC_LINES                                                                               \
	"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdSw3XaVu3Cp8JHuXQO/jvtjaAOAz\n"                       \
	"qqrPiJ2XEk/duRPp6ZBpK1m3/KbS+j3GPa39dwMgG2t/GgVBDt6qrw7vuA==\n"
#define KEY_EC "-----BEGIN PUBLIC KEY-----\n" KEY_EC_LINES "-----END PUBLIC KEY-----\n"

#endif
