package s3storage_test

import (
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/backing"
)

func TestInvalidOptionsAreRefused(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", "none")
	for name, o := range map[string]s3storage.Options{
		"no bucket":                 {Region: "eu-central-1"},
		"no region":                 {Bucket: "files", AccessKey: "a", SecretKey: "b"},
		"no region anywhere":        {Bucket: "files"},
		"half of a key":             {Bucket: "files", Region: "eu-central-1", AccessKey: "a"},
		"the other half":            {Bucket: "files", Region: "eu-central-1", SecretKey: "b"},
		"a prefix that is too long": {Bucket: "files", Region: "eu-central-1", Prefix: strings.Repeat("x", 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s3storage.Open(t.Context(), o)
			wantKind(t, err, errs.Invalid)
		})
	}
}

// The errors of a refusing server say what to correct, and contain no secret.
func testRefusals(t *testing.T, server *backing.S3Server) {
	p := front(t, server, true)
	for name, test := range map[string]struct {
		change func(*s3storage.Options)
		says   string
	}{
		"an unknown access key": {func(o *s3storage.Options) { o.AccessKey = "SOMEBODY-ELSE" },
			"does not know the access key"},
		"a wrong secret key": {func(o *s3storage.Options) { o.SecretKey = "WRONG-SECRET" },
			"does not accept the secret key"},
		"no such bucket": {func(o *s3storage.Options) { o.Bucket = "elsewhere" }, "does not exist"},
		"another region": {func(o *s3storage.Options) { o.Region = "mars-north-1" }, "is in another region"},
	} {
		t.Run(name, func(t *testing.T) {
			o := p.options(server)
			test.change(&o)
			s := open(t, o)
			for act, do := range acts(s, random("small", 10), random("large", s3storage.PartSize+100)) {
				err := do(t.Context())
				wantKind(t, err, errs.Internal)
				for _, part := range []string{test.says, o.Bucket, o.Endpoint} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %q does not say %q", act, err, part)
					}
				}
				for _, secret := range []string{o.AccessKey, o.SecretKey, "Signature="} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%s: %q contains the secret %q", act, err, secret)
					}
				}
			}
		})
	}
	t.Run("a permission is missing", func(t *testing.T) {
		s := open(t, p.options(server))
		p.set(func(w http.ResponseWriter, r *http.Request) {
			if operation(r) == "Head" && strings.Contains(r.URL.Path, "contents") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			p.pass.ServeHTTP(w, r)
		})
		_, _, err := s.Stat(t.Context(), hashOf(nil))
		wantKind(t, err, errs.Internal)
		if !strings.Contains(err.Error(), "lack a permission") {
			t.Errorf("%q does not say what to do", err)
		}
	})
}

// With credentials in the options the AWS configuration is not used.
func TestConfiguredCredentialsIgnoreTheEnvironment(t *testing.T) {
	server := backing.S3(t)
	t.Setenv("AWS_PROFILE", "none")
	t.Setenv("AWS_REGION", "mars-north-1")
	t.Setenv("AWS_ENDPOINT_URL", "https://127.0.0.1:1")
	t.Setenv("AWS_CA_BUNDLE", "none")
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "else")
	must(t, open(t, options(server)).Ping(t.Context()))
}

func TestCredentialsOfTheEnvironmentAreUsed(t *testing.T) {
	server := backing.S3(t)
	for name, value := range map[string]string{
		"AWS_PROFILE": "", "AWS_SHARED_CREDENTIALS_FILE": "none", "AWS_CONFIG_FILE": "none",
		"AWS_REGION": server.Region, "AWS_CA_BUNDLE": server.CAFile, "AWS_ENDPOINT_URL_S3": server.Endpoint,
		"AWS_ACCESS_KEY_ID": server.AccessKey, "AWS_SECRET_ACCESS_KEY": server.SecretKey, "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
	c := random("a", 100)
	s := open(t, s3storage.Options{Bucket: server.Bucket})
	must(t, put(t.Context(), s, c))
	holds(t, s, c)
	s = open(t, options(server))
	holds(t, s, c)
}

func TestMissingCredentialsAreUnavailable(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_PROFILE": "", "AWS_SHARED_CREDENTIALS_FILE": "none", "AWS_CONFIG_FILE": "none", "AWS_CA_BUNDLE": "",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "",
	} {
		t.Setenv(name, value)
	}
	s := open(t, s3storage.Options{Bucket: "files", Endpoint: "http://127.0.0.1:1"})
	err := s.Ping(t.Context())
	wantKind(t, err, errs.Unavailable)
	for _, part := range []string{`"files"`, "http://127.0.0.1:1", "credentials"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestUnknownCertificateIsRefused(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	o := fastRetry(options(server))
	o.RootCAs = nil
	wantKind(t, open(t, o).Ping(t.Context()), errs.Unavailable)
}

// Servers on the same machine or network may have no TLS.
func TestPlainHTTPWorks(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	s := open(t, front(t, server, false).options(server))
	for _, c := range [][]byte{nil, random("small", 100), random("large", s3storage.PartSize+100)} {
		must(t, put(t.Context(), s, c))
		holds(t, s, c)
	}
}
