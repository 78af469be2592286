package config

import (
	"strings"
	"testing"
)

// A place is in messages, so it has no password; and the flag takes no endpoint that the configuration refuses.
func TestThePlaceOfBackupsInAFlagHasNoPasswordAndARightEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"s3://user:secret@bucket/prefix":                           "credentials in the environment",
		"s3://bucket/prefix?endpoint=http://user:secret@localhost": "without user and password",
		"s3://bucket/prefix?endpoint=localhost:9000":               "expected a URL such as http://",
		"s3://bucket/prefix?endpoint=ftp://localhost":              "expected a URL such as http://",
	} {
		if p, err := ParseBackupPlace(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	p, err := ParseBackupPlace("s3://bucket/a/b?endpoint=http://localhost:9000&region=here")
	if err != nil || *p.S3 != (S3Storage{Bucket: "bucket", Prefix: "a/b/", Endpoint: "http://localhost:9000", Region: "here"}) {
		t.Errorf("%+v, %v", p, err)
	}
}
