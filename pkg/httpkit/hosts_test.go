package httpkit_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"belfry/pkg/httpkit"
)

func refused(hosts *httpkit.Hosts, host, path, local string) error {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	req.Host = host
	if local != "" {
		address, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			panic(err)
		}
		req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(address)))
	}
	return hosts.Refuse("/readyz")(&httpkit.Exchange{Request: req})
}

func TestOnlyRequestsForAConfiguredHostAreServed(t *testing.T) {
	hosts := httpkit.NewHosts("https://App.example.com/api", "belfry", "10.0.0.9", "2001:DB8::1")
	for _, host := range []string{
		"app.example.com", "APP.EXAMPLE.COM:443", "app.example.com.", "app.example.com.:8080", "belfry", "Belfry:8080",
		"10.0.0.9:80",
		"[2001:db8::1]", "[2001:db8:0::1]:8080", "localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1",
		"127.0.0.1:1", "127.9.9.9:80",
		"[::1]", "[::1]:8080", "[::ffff:127.0.0.1]:80", "192.168.1.5:8080", "192.168.1.5",
	} {
		if err := refused(hosts, host, "/books", "192.168.1.5:8080"); err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
	for _, host := range []string{
		"", ":", ":8080", "evil.example", "evil.example:8080", "example.com", "x.app.example.com",
		"app.example.com.evil.example", "localhost.evil.example",
		"xlocalhost", "127.0.0.1.evil.example", "192.168.1.6:8080", "0.0.0.0", "[::]:80", "2130706433", "0x7f.1",
		"localhost:80:80", "[localhost", "::1]x", "evil.example\x00localhost", "app.example.com..", "*",
	} {
		err := refused(hosts, host, "/books", "192.168.1.5:8080")
		var problem interface{ Problem() httpkit.Problem }
		if !errors.As(err, &problem) {
			t.Errorf("%q: %v", host, err)
			continue
		}
		p := problem.Problem()
		if p.Status != 421 || p.Type != "misdirected" || !strings.Contains(p.Detail, "hosts") ||
			!strings.Contains(p.Detail, "baseURL") || !strings.Contains(p.Detail, host) {
			t.Errorf("%q: %+v", host, p)
		}
	}
}

func TestAnAddressIsServedWhereTheClientConnectedToItOnly(t *testing.T) {
	hosts := httpkit.NewHosts("")
	for local, want := range map[string]bool{
		"192.168.1.5:8080": true, "192.168.1.6:8080": false, "[::ffff:192.168.1.5]:8080": true, "127.0.0.1:8080": false,
		"": false,
	} {
		if err := refused(hosts, "192.168.1.5:80", "/", local); (err == nil) != want {
			t.Errorf("connected to %q: %v", local, err)
		}
	}
	if err := refused(hosts, "[fe80::1]", "/", "[fe80::1%lo]:8080"); err != nil {
		t.Error(err)
	}
}

func TestProbesMayNameAnyHost(t *testing.T) {
	hosts := httpkit.NewHosts("")
	if err := refused(hosts, "evil.example", "/readyz", ""); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/readyz/", "/readyzx", "/", "/books/readyz"} {
		if refused(hosts, "evil.example", path, "") == nil {
			t.Errorf("%s is exempt", path)
		}
	}
}

func TestEveryHostIsServedOnRequestOnly(t *testing.T) {
	if err := refused(httpkit.NewHosts("", httpkit.AnyHost), "evil.example", "/", ""); err != nil {
		t.Error(err)
	}
	if err := refused(nil, "evil.example", "/", ""); err != nil {
		t.Error(err)
	}
}
