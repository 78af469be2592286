package config

import (
	"strings"
	"testing"
)

// A place is in messages, so it has no password. A parameter that was ignored would have backups go elsewhere.
func TestThePlaceOfBackupsInAFlagIsRefusedUnlessAllOfItIsUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"s3://user:secret@bucket/prefix":                           "credentials in the environment",
		"s3://bucket/prefix?endpoint=http://user:secret@localhost": "without user and password",
		"s3://bucket/prefix?endpoint=localhost:9000":               "expected a URL such as http://",
		"s3://bucket/prefix?endpoint=ftp://localhost":              "expected a URL such as http://",
		"s3://bucket/prefix?endpont=http://localhost": "the parameter endpont is unknown; expected the " +
			"parameters endpoint and region",
		"s3://bucket?region=here&accessKey=secret": "the parameter accessKey is unknown",
		"s3://bucket?region=here&region=there":     "the parameter region is given 2 times",
		"s3://bucket?region=":                      "the parameter region is empty",
		"s3://bucket?region=%zz":                   "no valid query",
		"s3://bucket/a#b":                          "the URL has a fragment",
		"gs://bucket/prefix":                       "expected the path of a folder, or s3://bucket/prefix",
	} {
		if p, err := ParseBackupPlace(text); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	p, err := ParseBackupPlace("s3://bucket/a/b?endpoint=http://localhost:9000&region=here")
	if err != nil ||
		*p.S3 != (S3Storage{Bucket: "bucket", Prefix: "a/b/", Endpoint: "http://localhost:9000", Region: "here"}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// The retention removes what no backup has: also files that were uploaded after the backup.
func TestBackupsAreNotWhereFilesAre(t *testing.T) {
	for text, refused := range map[string]bool{
		"binaries: {files: {folder: /a}}\nbackup: " +
			"{folder: /a/}": true,
		"binaries: {files: {folder: /a}}\nbackup: " +
			"{folder: /b}": false,
		"binaries: {files: {type: S3Storage, bucket: a}}\nbackup: {s3: " +
			"{bucket: a}}": true,
		"binaries: {files: {type: S3Storage, bucket: a}}\nbackup: {s3: {bucket: a, " +
			"prefix: b/}}": false,
		"binaries: {files: {type: S3Storage, bucket: a}}\nbackup: {s3: {bucket: a, endpoint: " +
			"'http://localhost:9000'}}": false,
		"binaries: {files: {type: S3Storage, bucket: a, prefix: b/}}\nbackup: {s3: {bucket: a, region: here, " +
			"prefix: b/}}": true,
	} {
		_, err := Parse("belfry.yaml", []byte(text), environment)
		if got := err != nil &&
			strings.Contains(err.Error(), "is in the place of the files of binaries.files"); got != refused ||
			(err != nil) != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}
