package backing

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"belfry/test/kit/programs"
)

// MinIO starts MinIO with a bucket. It ends with the test.
func MinIO(t testing.TB) *S3Server {
	t.Helper()
	s := newS3(t, "MinIO")
	program := filepath.Join(must(t)(programs.Tools("minio")), "minio")
	s.mkdir(t, "certs", "data")
	for from, to := range map[string]string{s.CAFile: "public.crt", s.keyFile: "private.key"} {
		if err := os.Link(from, filepath.Join(s.folder, "certs", to)); err != nil {
			t.Fatal(err)
		}
	}
	s.command = func() *exec.Cmd {
		cmd := exec.Command(program, "server", "--quiet",
			"--address", s.address, "--certs-dir", filepath.Join(s.folder, "certs"), filepath.Join(s.folder, "data"))
		cmd.Env = []string{
			"MINIO_ROOT_USER=" + s.AccessKey, "MINIO_ROOT_PASSWORD=" + s.SecretKey, "MINIO_SITE_REGION=" + s.Region,
			"MINIO_BROWSER=off", "MINIO_UPDATE=off", "HOME=" + s.folder,
		}
		return cmd
	}
	s.ready = s.writes
	s.Restart(t)
	return s
}

// writes creates the bucket unless it exists, and checks that it takes an object
// and returns it: some parts of a server may start later than others.
func (s *S3Server) writes(ctx context.Context, client *http.Client) error {
	const probe = "/belfry-tests-probe"
	for _, step := range []struct {
		method, key, body string
		status            []int
	}{
		{http.MethodPut, "", "", []int{http.StatusOK, http.StatusConflict}},
		{http.MethodPut, probe, "probe", []int{http.StatusOK}},
		{http.MethodGet, probe, "", []int{http.StatusOK}},
		{http.MethodDelete, probe, "", []int{http.StatusNoContent}},
	} {
		if err := s.request(ctx, client, step.method, s.Endpoint+"/"+s.Bucket+step.key, step.body,
			step.status...); err != nil {
			return err
		}
	}
	return nil
}

// request sends a signed request.
func (s *S3Server) request(ctx context.Context, client *http.Client, method, url, body string, want ...int) error {
	const unsigned = "UNSIGNED-PAYLOAD"
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Amz-Content-Sha256", unsigned)
	keys := aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey}
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, unsigned, "s3", s.Region, time.Now()); err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	for _, status := range want {
		if res.StatusCode == status {
			return nil
		}
	}
	return fmt.Errorf("%s %s: %s: %s", method, url, res.Status, text)
}
