package backing

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"belfry/test/kit/programs"
)

// OpenID is a provider of OpenID Connect that others have written, with one client.
type OpenID struct {
	Issuer                 string
	ClientID, ClientSecret string

	address string
	command func(redirect string) *exec.Cmd
	running *process
}

// newOpenID is a provider which is not started yet, since it is given the redirect URI of a belfry that is given its
// issuer.
func newOpenID(t testing.TB, path string) *OpenID {
	address := freeAddress(t)
	return &OpenID{Issuer: "http://" + address + path, ClientID: "belfry", ClientSecret: "s3cret of belfry's",
		address: address}
}

// Dex returns dex, which is not started yet. Its user is of some groups, and has to approve each login.
func Dex(t testing.TB, groups int) *OpenID {
	t.Helper()
	o := newOpenID(t, "/dex")
	program := must(t)(programs.Module("dex"))
	o.command = func(redirect string) *exec.Cmd {
		return exec.Command(program, "-listen", o.address, "-client", o.ClientID, "-secret", o.ClientSecret,
			"-redirect", redirect, "-groups", strconv.Itoa(groups))
	}
	return o
}

// OIDCProvider returns oidc-provider, which is not started yet. Its user is logged in and approves. Set changes what it
// does.
func OIDCProvider(t testing.TB) *OpenID {
	t.Helper()
	o := newOpenID(t, "")
	program := filepath.Join(NPM(t, "test/servers/oidc-provider"), "serve.js")
	o.command = func(redirect string) *exec.Cmd {
		host, port, _ := strings.Cut(o.address, ":")
		return exec.Command("node", program, host, port, o.ClientID, o.ClientSecret, redirect)
	}
	return o
}

// Start starts the provider for a client with a redirect URI. It ends with the test.
func (o *OpenID) Start(t testing.TB, redirect string) {
	t.Helper()
	o.running = start(t, o.command(redirect), func(ctx context.Context) error {
		return request(ctx, http.MethodGet, o.Issuer+"/.well-known/openid-configuration", "", http.StatusOK)
	})
}

// Kill ends the provider as a crash would.
func (o *OpenID) Kill() { o.running.kill() }

// Set sends oidc-provider a JSON object that says what it does from then on: see test/servers/oidc-provider/serve.js.
func (o *OpenID) Set(t testing.TB, settings string) {
	t.Helper()
	if err := request(t.Context(), http.MethodPost, o.Issuer+"/control", settings, http.StatusNoContent); err != nil {
		t.Fatal(err)
	}
}

// request makes a request that has to get a status.
func request(ctx context.Context, method, url, body string, want int) error {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != want {
		err = errors.New(url + ": " + res.Status + " " + string(text))
	}
	return err
}
