#!/bin/sh
# SPDX-License-Identifier: MIT
# What is in an image of Debian, as an SPDX 2.3 document: its packages as dpkg knows them, and ours. Run in the image.
# Usage: sbom.sh NAME VERSION [REVISION] >FILE; $SOURCE_DATE_EPOCH is its date, so the same image says the same.
set -eu
LC_ALL=C
export LC_ALL

name=$1
version=$2
revision=${3:-}
arch=$(dpkg --print-architecture)
# NAME VERSION ARCHITECTURE SOURCE SOURCE-VERSION
list=$(dpkg-query --show --showformat \
	'${db:Status-Status} ${Package} ${Version} ${Architecture} ${source:Package} ${source:Version}\n' |
	sed -n 's/^installed //p' | sort)
[ -n "$list" ] || { echo "sbom.sh: dpkg knows no package" >&2; exit 1; }
hash=$(printf '%s\n' "$name $version $revision $arch" "$list" | sha256sum | cut -c1-32)

cat <<-END
	SPDXVersion: SPDX-2.3
	DataLicense: CC0-1.0
	SPDXID: SPDXRef-DOCUMENT
	DocumentName: $name-$version
	DocumentNamespace: https://github.com/trusted-execution-clusters/operator/sbom/$name-$version-$arch-$hash
	Creator: Tool: dpkg-query-$(dpkg-query --show --showformat '${Version}' dpkg)
	Created: $(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)

	PackageName: $name
	SPDXID: SPDXRef-main
	PackageVersion: $version
	PackageDownloadLocation: NOASSERTION
	PackageSourceInfo: ${revision:+revision }${revision:-no revision was named}
	FilesAnalyzed: false
	PackageLicenseDeclared: MIT
	Relationship: SPDXRef-DOCUMENT DESCRIBES SPDXRef-main
END
printf '%s\n' "$list" | awk '
	function url(s) { gsub(/\+/, "%2B", s); gsub(/:/, "%3A", s); return s }
	{
		id = $1; gsub(/\+/, "-plus-", id); gsub(/[^A-Za-z0-9.-]/, "-", id)
		printf "\nPackageName: %s\nSPDXID: SPDXRef-deb-%s\nPackageVersion: %s\n", $1, id, $2
		printf "PackageSupplier: Organization: Debian\nPackageDownloadLocation: NOASSERTION\nFilesAnalyzed: false\n"
		printf "PackageSourceInfo: built from source package %s %s\n", $4, $5
		printf "ExternalRef: PACKAGE-MANAGER purl pkg:deb/debian/%s@%s?arch=%s\n", url($1), url($2), $3
		printf "Relationship: SPDXRef-main DEPENDS_ON SPDXRef-deb-%s\n", id
	}'
