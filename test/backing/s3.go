package backing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"belfry/test/kit/programs"
	"belfry/test/kit/tlskit"
)

// S3Server is a server of S3's protocol on a folder of its own. It speaks TLS, as
// S3 does. A test may kill it and start it again.
type S3Server struct {
	Name                 string // of the program
	Endpoint, Region     string
	Bucket               string // exists, and is empty at first
	AccessKey, SecretKey string
	RootCAs              *x509.CertPool // the authority of the server's certificate
	CAFile               string         // the same for other processes, as AWS_CA_BUNDLE

	address         string
	folder, keyFile string
	command         func() *exec.Cmd
	ready           func(context.Context, *http.Client) error
	process         *process
}

// The credentials of all servers. DynamoDB's accept any.
const (
	AccessKey = "belfry-tests"
	SecretKey = "a-secret-of-tests"
)

// S3Servers start the servers of S3's protocol that belfry is tested with, by name.
func S3Servers() map[string]func(testing.TB) *S3Server {
	return map[string]func(testing.TB) *S3Server{"versitygw": S3, "MinIO": MinIO}
}

// S3 starts Versity's gateway with a bucket. It ends with the test.
func S3(t testing.TB) *S3Server {
	t.Helper()
	s := newS3(t, "versitygw")
	program := filepath.Join(must(t)(programs.Tools("s3")), "versitygw")
	// A bucket is a folder; the metadata of objects is in another one, since not
	// every file system has extended attributes.
	s.mkdir(t, filepath.Join("data", s.Bucket), "meta")
	s.command = func() *exec.Cmd {
		cmd := exec.Command(program,
			"--port", s.address, "--region", s.Region, "--cert", s.CAFile, "--key", s.keyFile,
			"--health", "/health", "--keep-alive", "--quiet",
			"posix", "--sidecar", filepath.Join(s.folder, "meta"), filepath.Join(s.folder, "data"))
		// The server must not read AWS settings of the tests' environment.
		cmd.Env = []string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey}
		return cmd
	}
	s.ready = func(ctx context.Context, c *http.Client) error { return healthy(ctx, c, s.Endpoint+"/health") }
	s.Restart(t)
	return s
}

// newS3 returns a server that has a folder, a certificate and no program yet.
func newS3(t testing.TB, name string) *S3Server {
	t.Helper()
	s := &S3Server{
		Name: name, Region: "us-east-1", Bucket: "belfry",
		AccessKey: AccessKey, SecretKey: SecretKey,
		address: freeAddress(t), folder: t.TempDir(),
	}
	s.Endpoint = "https://" + s.address
	s.certify(t)
	return s
}

// mkdir creates folders in that of the server.
func (s *S3Server) mkdir(t testing.TB, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(s.folder, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// Kill ends the server as a crash would.
func (s *S3Server) Kill() { s.process.kill() }

// Restart starts the killed server again, on the same data and address, and
// waits until it answers.
func (s *S3Server) Restart(t testing.TB) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.RootCAs}, DisableKeepAlives: true,
	}}
	s.process = start(t, s.command(), func(ctx context.Context) error { return s.ready(ctx, client) })
}

func healthy(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	if closing := res.Body.Close(); err == nil {
		err = closing
	}
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s says %s", url, res.Status)
	}
	return err
}

// certify creates a self-signed certificate for the server.
func (s *S3Server) certify(t testing.TB) {
	t.Helper()
	s.CAFile, s.keyFile = filepath.Join(s.folder, "cert.pem"), filepath.Join(s.folder, "key.pem")
	tlskit.WriteValid(t, s.CAFile, s.keyFile, "127.0.0.1")
	s.RootCAs = tlskit.Pool(t, s.CAFile)
}
